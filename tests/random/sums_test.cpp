// Sums of products in loops drawn at random: several sums, each in a carry, in scratch or in an
// output, of products that share operands, scaled, under conditions, read in between; along an
// axis of the grid or in a loop of the body; begun and finished in every way. Interpreter and
// emulator agree, races on, and no order is found in which those who work on one wait wrongly.
//
// PALLADIUM_TEST_CALLS=10000 tries 2000 of them, a fifth, 500-600 those from 500 to 599, of which
// one in three runs on sm_80.
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/protocol.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

enum class Held { carry, registers, shared, output };
enum class Style { grid, loop, two_axes };

struct Drawn {
  std::uint64_t seed = 0;
  DType type = f16;
  Style style = Style::grid;
  int m = 64, n = 64, depth = 64, steps = 1, inner = 1;
  bool square = false, symbolic = false, each = false, trans_b = false;
  std::vector<Held> sums = {};
  std::vector<bool> rounds = {};  // by sum, what is stored of it
  CompilerParams params = {};

  DType sum_type() const { return type.is_float() ? f32 : i32; }
};

Drawn drawn(std::uint64_t seed) {
  Random random(seed);
  Drawn d{.seed = seed};
  d.type = random.pick({f16, f16, bf16, bf16, f8e4m3, i8});
  d.square = random.chance(50);
  d.style = random.pick(
      {Style::grid, Style::grid, Style::grid, Style::loop, Style::loop, Style::two_axes});
  d.m = random.pick({64, 64, 64, 128});
  d.n = random.pick({16, 32, 64, 64, 128});
  d.depth = random.pick({16, 32, 64}) * 2 / d.type.bytes();
  if (d.square) d.m = d.n = d.depth = 64;
  d.trans_b = !d.square && random.chance(40);
  d.steps = random.pick({1, 2, 3, 4, 5});
  if (d.style == Style::two_axes) d.inner = random.pick({1, 2, 3});
  d.symbolic = d.style == Style::grid && random.chance(40);
  d.each = random.chance(40);
  const int sums = random.pick({1, 1, 2, 2, 3});
  for (int i = 0; i < sums; ++i) {
    d.sums.push_back(
        d.style == Style::loop
            ? random.pick({Held::carry, Held::carry, Held::registers, Held::shared, Held::output})
            : random.pick({Held::registers, Held::shared, Held::output}));
    d.rounds.push_back(d.sums.back() != Held::output && d.type.is_float() && random.chance(40));
  }
  d.params = {.num_warps = random.pick({0, 0, 4, 8}),
              .num_stages = random.pick({0, 0, 1, 2, 3}),
              .persistent = random.chance(25)};
  if (random.chance(60)) d.params.warp_specialize = random.chance(75);
  return d;
}

/// The body of such a kernel, while it is recorded. What it does is drawn meanwhile.
class SumsBody {
 public:
  SumsBody(const Drawn& d, const Refs& refs) : d_(d), random_(d.seed * 31 + 7) {
    int at = 0;
    for (int i = 0; i < 4; ++i) operands_.push_back(refs[at++]);
    for (std::size_t i = 0; i < d.sums.size(); ++i) outputs_.push_back(refs[at++]);
    if (d.each) each_.push_back(refs[at++]);
    for (std::size_t i = 0; i < d.sums.size(); ++i)
      held_.push_back(is_scratch(d.sums[i]) ? refs[at++] : outputs_[i]);
  }

  static bool is_scratch(Held h) { return h == Held::registers || h == Held::shared; }

  void run() {
    if (d_.style == Style::loop) return in_loop();
    const int axis = d_.style == Style::grid ? 1 : 2;
    k_ = program_id(axis);
    count_ = num_programs(axis);
    block_ = d_.style == Style::grid ? k_ : program_id(1) * d_.inner + k_;
    for (std::size_t i = 0; i < held_.size(); ++i) begin(i);
    iteration({});
    for (std::size_t i = 0; i < held_.size(); ++i) finish(i);
  }

 private:
  // What is loaded in a region is known in it alone.
  template <class F>
  auto inside(const F& f) {
    return [this, &f] {
      const std::vector<std::optional<Value>> before = loaded_;
      if constexpr (std::is_void_v<decltype(f())>) {
        f();
        loaded_ = before;
      } else {
        const auto result = f();
        loaded_ = before;
        return result;
      }
    };
  }
  template <class F>
  void if_(const Value& condition, const F& f) {
    when(condition, inside(f));
  }

  Value zero() const { return zeros({d_.m, d_.n}, d_.sum_type()); }

  void in_loop() {
    count_ = Value(d_.steps);
    std::vector<Value> carried;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      starts_outside_.push_back(random_.chance(60));
      ends_outside_.push_back(random_.chance(60));
      if (d_.sums[i] == Held::carry)
        carried.push_back(zero());
      else if (starts_outside_[i])
        held_[i][_] = zero();
    }
    const auto step = [&](const Value& k, std::vector<Value> sums) {
      k_ = block_ = k;
      for (std::size_t i = 0; i < held_.size(); ++i)
        if (d_.sums[i] != Held::carry && !starts_outside_[i]) begin(i);
      iteration(std::move(sums));
      for (std::size_t i = 0; i < held_.size(); ++i)
        if (is_scratch(d_.sums[i]) && !ends_outside_[i]) finish(i);
      return carried_;
    };
    carried = looped(carried, step);
    std::size_t next = 0;
    loaded_.clear();
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (d_.sums[i] == Held::carry)
        store(i, carried[next++]);
      else if (is_scratch(d_.sums[i]) && ends_outside_[i])
        store(i, held_[i][_]);
    }
  }

  template <class F>
  std::vector<Value> looped(const std::vector<Value>& x, const F& step) const {
    if (x.empty()) {
      loop(0, d_.steps, [&](Index k) { (void)step(k, {}); });
      return {};
    }
    if (x.size() == 1)
      return {loop(
          0, d_.steps, [&](Index k, Value a) { return step(k, {a})[0]; }, x[0])};
    if (x.size() == 2) {
      const auto [a, b] = loop(
          0, d_.steps,
          [&](Index k, Value p, Value q) {
            const std::vector<Value> r = step(k, {p, q});
            return carry(r[0], r[1]);
          },
          x[0], x[1]);
      return {a, b};
    }
    const auto [a, b, c] = loop(
        0, d_.steps,
        [&](Index k, Value p, Value q, Value r) {
          const std::vector<Value> s = step(k, {p, q, r});
          return carry(s[0], s[1], s[2]);
        },
        x[0], x[1], x[2]);
    return {a, b, c};
  }

  Value is_first() const { return k_ == 0; }
  Value is_last() {
    switch (random_.between(0, 4)) {
    case 0: return k_ == count_ - 1;
    case 1: return k_ + 1 == count_;
    case 2: return count_ - 1 == k_;
    case 3: return k_ >= count_ - 1;
    default:
      if (d_.symbolic) return count_ == k_ + 1;
      return k_ == (d_.style == Style::two_axes ? d_.inner : d_.steps) - 1;
    }
  }

  void begin(std::size_t i) {
    const Ref s = held_[i];
    if (d_.style == Style::two_axes && d_.sums[i] == Held::output) {
      when((program_id(1) == 0) & is_first(), [&] { s[_] = zero(); });
      return;
    }
    switch (random_.pick({0, 0, 0, 0, 1, 2, 3})) {
    case 0: when(is_first(), [&] { s[_] = zero(); }); break;
    case 1: when(is_first(), [&] { s[_] = full({d_.m, d_.n}, 3, d_.sum_type()); }); break;
    case 2:
      when(is_first(), [&] { s[_] = zero(); });
      when(k_ == 2, [&] { s[_] = zero(); });
      break;
    default: when(k_ % 2 == 0, [&] { s[_] = zero(); });
    }
  }

  // One after the other; of carries what they are next.
  void iteration(std::vector<Value> sums) {
    loaded_.assign(operands_.size(), std::nullopt);
    carried_.clear();
    std::size_t next = 0;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (d_.sums[i] == Held::carry)
        carried_.push_back(next_carry(sums[next++]));
      else
        update(held_[i]);
      if (random_.chance(20)) look(i);
    }
  }

  void look(std::size_t i) {
    if (!d_.each) return;
    const Value seen = d_.sums[i] == Held::carry ? carried_.back() : Value(held_[i][_]);
    if (d_.style == Style::loop)
      each_[0][{_, ds(block_ * d_.n, d_.n)}] = seen;
    else
      each_[0][_] = seen;
  }

  Value next_carry(const Value& sum) {
    if (random_.chance(80)) return added(sum);
    const auto adds = [&] { return added(sum); };
    return cond(k_ % 2 == 0, inside(adds), [&] { return sum; });
  }

  void add_to(const Ref& s) {
    const Value old = s[_], next = added(old);
    s[_] = next;
  }

  void update(const Ref& s) {
    switch (random_.pick({0, 0, 0, 0, 0, 1, 2, 3, 4})) {
    case 0: add_to(s); break;
    case 1: if_(k_ % 2 == 0, [&] { add_to(s); }); break;
    case 2: {
      const Value t = term();
      if_(k_ % 2 == 1, [&] { s[_] = s[_] + t; });
      break;
    }
    case 3: {  // what it was is wanted behind the store
      const Value before = s[_];
      add_to(s);
      if (d_.each && d_.style != Style::loop) each_[0][_] = before;
      break;
    }
    default: add_to(s), add_to(s);
    }
  }

  Value added(const Value& sum) {
    const Value old = scaled(sum), t = term();
    return random_.chance(70) ? old + t : t + old;
  }

  Value scaled(const Value& sum) {
    switch (random_.pick({0, 0, 0, 0, 1, 2, 3})) {
    case 0: return sum;
    case 1: return sum * 2;
    case 2: return where(k_ == 1, zero(), sum);
    default: return sum * (k_ % 3).astype(d_.sum_type());
    }
  }

  Value term() {
    Value t = product();
    if (random_.chance(20)) t = t + product();
    if (random_.chance(10)) t = t * 2;
    if (random_.chance(10)) t = -t;
    if (random_.chance(15))
      t = t + pl::sum(operand(left()).astype(d_.sum_type()), {.axis = {1}, .keepdims = true});
    return t;
  }

  std::size_t left() {
    return static_cast<std::size_t>(d_.square ? random_.between(0, 3) : random_.between(0, 1));
  }
  std::size_t right() {
    return static_cast<std::size_t>(d_.square ? random_.between(0, 3) : random_.between(2, 3));
  }

  Value product() {
    const bool turns = d_.square && random_.chance(30);
    const bool trans_b = d_.square ? random_.chance(40) : d_.trans_b;
    Value x = changed(operand(left()));
    if (d_.square && d_.type.bytes() == 2 && random_.chance(20)) {
      const bool is_turned = random_.chance(50);
      const Value inner = dot(x, operand(right()), {.trans_b = is_turned});
      x = (inner * 0.0625f).astype(d_.type);
    }
    const Value y = changed(operand(right()));
    return dot(x, y,
               {.trans_a = turns, .trans_b = trans_b, .preferred_element_type = d_.sum_type()});
  }

  Value changed(const Value& x) {
    if (!d_.type.is_float() || d_.type.bytes() == 1 || random_.chance(80)) return x;
    return random_.chance(50) ? relu(x) : x * 2;
  }

  // As the iteration has loaded it, or once more.
  Value operand(std::size_t i) {
    std::optional<Value>& known = loaded_[i];
    if (known.has_value() && random_.chance(80)) return *known;
    const Ref of = operands_[i];
    const bool columns = i < 2 || d_.square || d_.trans_b;  // the axis k of its array is the last
    Value x = of[_];
    if (d_.style == Style::loop) {
      const Slice part = ds(block_ * d_.depth, d_.depth);
      x = columns ? Value(of[{_, part}]) : Value(of[{part, _}]);
    }
    known = x;
    return x;
  }

  void finish(std::size_t i) {
    if (d_.sums[i] == Held::output) return;
    const Ref held = held_[i];
    const Value last = is_last();
    if_(last, [&] {
      Value s = held[_];
      if (random_.chance(15)) s = s * (k_ + 1).astype(d_.sum_type());
      if (random_.chance(15))
        s = s + pl::sum(operand(left()).astype(d_.sum_type()), {.axis = {1}, .keepdims = true});
      store(i, s);
    });
    if (random_.chance(10)) held[_] = held[_] * 2;
  }

  void store(std::size_t i, Value s) {
    if (random_.chance(20)) s = s - pl::max(s, {.axis = {1}, .keepdims = true});
    outputs_[i][_] = d_.rounds[i] ? (s * 0.0625f).astype(d_.type) : s;
  }

  const Drawn& d_;
  Random random_;
  std::vector<Ref> operands_, outputs_, held_;
  std::vector<Ref> each_;
  Value k_, count_, block_;
  std::vector<std::optional<Value>> loaded_;
  std::vector<Value> carried_;
  std::vector<bool> starts_outside_, ends_outside_;
};

// Blocks of m x depth and of depth x n, or all of 64 x 64, along k.
BlockSpec block_of(const Drawn& d, bool is_left) {
  const bool columns = is_left || d.square || d.trans_b;
  const int rows = is_left ? d.m : d.n;
  const auto at = [=](const Index& i, const Index& k) {
    const Index row = is_left ? i : Index(0);
    return columns ? Indices{row, k} : Indices{k, row};
  };
  if (d.style == Style::loop) {
    const int whole = d.depth * d.steps;
    const auto map = [=](Index i) { return at(i, 0); };
    return columns ? BlockSpec{{rows, whole}, map} : BlockSpec{{whole, rows}, map};
  }
  const int high = columns ? rows : d.depth, wide = columns ? d.depth : rows;
  if (d.style == Style::grid)
    return BlockSpec{{high, wide}, [=](Index i, Index k) { return at(i, k); }};
  return BlockSpec{{high, wide}, [=](Index i, Index k, Index l) { return at(i, k * d.inner + l); }};
}

BlockSpec output_of(const Drawn& d, bool each) {
  if (d.style == Style::loop)
    return BlockSpec{{d.m, each ? d.n * d.steps : d.n}, [](Index i) { return Indices{i, 0}; }};
  if (d.style == Style::grid)
    return BlockSpec{{d.m, d.n}, [=](Index i, Index k) { return Indices{i, each ? k : Index(0)}; }};
  return BlockSpec{{d.m, d.n}, [=](Index i, Index k, Index l) {
                     return Indices{i, each ? k * d.inner + l : Index(0)};
                   }};
}

graph::Graph kernel(const Drawn& d) {
  const Dim steps = d.symbolic ? dim("steps", {.at_most = 64}) : Dim(d.steps),
            all = steps * d.inner;
  PallasCallOptions options{.name = "sums", .compiler_params = d.params};
  std::vector<trace::ArgumentType> types;
  for (int i = 0; i < 4; ++i) {
    const bool is_left = i < 2, columns = is_left || d.square || d.trans_b;
    const Dim rows = is_left ? 2 * d.m : d.n, k = all * d.depth;
    options.in_specs.push_back(block_of(d, is_left));
    types.push_back(array(columns ? Shape{rows, k} : Shape{k, rows}, d.type));
  }
  std::vector<ShapeDtype> outputs;
  for (std::size_t i = 0; i < d.sums.size(); ++i) {
    outputs.push_back({{2 * d.m, d.n}, d.rounds[i] ? d.type : d.sum_type()});
    options.out_specs.push_back(output_of(d, false));
  }
  if (d.each) {
    outputs.push_back({{2 * d.m, all * d.n}, d.sum_type()});
    options.out_specs.push_back(output_of(d, true));
  }
  options.out_type = outputs;
  for (const Held held : d.sums)
    if (SumsBody::is_scratch(held))
      options.scratch_types.list.push_back(
          {"", (held == Held::shared ? gpu::SMEM : gpu::REGS)({d.m, d.n}, d.sum_type())});
  std::vector<Semantics>& order = options.compiler_params.dimension_semantics;
  options.grid = {2};
  order = {parallel};
  if (d.style != Style::loop) options.grid.sizes.push_back(steps), order.push_back(sequential);
  if (d.style == Style::two_axes)
    options.grid.sizes.push_back(d.inner), order.push_back(sequential);
  return traced([=](Refs refs) { SumsBody(d, refs).run(); }, options, types);
}

struct Seeds {
  std::uint64_t first, end;
};

Seeds asked() {
  const char* many = std::getenv("PALLADIUM_TEST_CALLS");
  if (many == nullptr) return {1, 31};
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(many, &end, 10);
  return *end == '-' ? Seeds{n, std::strtoull(end + 1, nullptr, 10)} : Seeds{1, n / 5 + 1};
}

/// What is wrong with the kernel; "refused" if no program has so much room.
std::string problem_of(const Drawn& d, int cc) {
  const graph::Graph g = kernel(d);
  std::optional<lowered::Program> l;
  try {
    l = cuda::lower(g, {.compute_capability = cc});
  } catch (const CompileError& e) {
    return std::string(e.what()).find("choose") != std::string::npos ||
                   std::string(e.what()).find("at most 192 are") != std::string::npos
               ? "refused"
               : e.what();
  }
  const lowered::Protocol p = lowered::protocol_of(*l);
  std::string found =
      p.verdict == lowered::Protocol::Verdict::counterexample
          ? lowered::to_text(p)
          : on_all_targets(
                g, d.symbolic ? std::vector<std::int64_t>{d.steps} : std::vector<std::int64_t>{},
                cc);
  return found.empty() ? "" : found + "\n" + graph::to_text(g);
}

void check(Seeds seeds) {
  int refused = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const int cc = seed % 3 == 2 ? 80 : 90;
    INFO("seed " << seed << " on " << cc);
    try {
      const std::string found = problem_of(drawn(seed), cc);
      if (found == "refused")
        ++refused;
      else
        CHECK(found == "");
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
  CHECK(refused * 3 <= static_cast<int>(seeds.end - seeds.first));
}

}  // namespace

// In two parts, which run at once.
TEST_CASE("random sums of products agree") {
  const auto [first, end] = asked();
  check({first, first + (end - first) / 2});
}

TEST_CASE("more random sums of products agree") {
  const auto [first, end] = asked();
  check({first + (end - first) / 2, end});
}
