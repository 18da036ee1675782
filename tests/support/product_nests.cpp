#include "tests/support/product_nests.hpp"

#include <algorithm>
#include <functional>

namespace palladium::test {

using pl::_;
using Kind = NestStep::Kind;

namespace {

constexpr float most = 1 << 18;  // so that sums are exact

}  // namespace

// ---- drawn

namespace {

class Drawing {
 public:
  Drawing(Random& random, bool counts_turns) : random_(random), counts_turns_(counts_turns) {}

  std::vector<NestStep> steps(int depth, bool may_hold) {
    std::vector<NestStep> all;
    for (int left = random_.between(1, depth == 0 ? 3 : 2); left > 0; --left)
      all.push_back(step(depth, may_hold));
    return all;
  }

 private:
  NestStep step(int depth, bool may_hold) {
    NestStep s;
    if (depth == 0 || (depth < 3 && random_.chance(45)))
      s.kind = Kind::loop;
    else
      s.kind = random_.pick({Kind::product, Kind::product, Kind::product, Kind::scaled, Kind::fresh,
                             Kind::chosen, Kind::held, Kind::stored});
    if (s.kind == Kind::held && !may_hold) s.kind = Kind::product;
    s.row = number(depth, ProductNests::rows);
    s.depth = number(depth, ProductNests::depths);
    s.column = number(depth, ProductNests::columns);
    s.is_of_held = holds_ && random_.chance(60);
    if (s.kind == Kind::stored) s.row = number(depth, ProductNests::slots);
    if (s.kind == Kind::loop) {
      s.low = random_.chance(70) ? NestNumber{} : number(depth, 3);
      s.high = random_.chance(50) ? NestNumber{.constant = random_.between(0, 5), .below = 6}
                                  : number(depth, 6);
      s.body = steps(depth + 1, may_hold);
    }
    if (s.kind == Kind::fresh || s.kind == Kind::chosen)
      s.body = steps(std::max(depth, 2), may_hold);
    if (s.kind == Kind::held) {
      const bool outside = std::exchange(holds_, true);
      s.body = steps(depth, false);
      holds_ = outside;
    }
    return s;
  }

  NestNumber number(int depth, int below) {
    NestNumber n{.constant = random_.below(3), .below = below};
    n.by_program = random_.pick({0, 0, 1});
    n.by_turn = counts_turns_ ? random_.pick({0, 0, 1}) : 0;
    for (int i = 0; i < depth; ++i) n.by_loop.push_back(random_.pick({0, 1, 1, 2}));
    n.is_loaded = random_.chance(10);
    return n;
  }

  Random& random_;
  const bool counts_turns_;
  bool holds_ = false;
};

}  // namespace

ProductNests ProductNests::drawn(Random& random) {
  ProductNests p;
  p.dtype = random.pick({f16, bf16, f8e4m3, f32});
  p.bm = random.pick({64, 64, 128});
  p.bn = random.pick({32, 64, 128});
  p.bk = random.pick({32, 64});
  p.programs = random.between(1, 3);
  p.num_warps = random.pick({0, 0, 4, 8});
  p.num_stages = random.pick({0, 0, 2, 3, 4});
  p.trans_b = random.chance(50);
  p.persistent = random.chance(30);
  p.counts_turns = random.chance(20);
  p.is_sequential = random.chance(30);
  if (random.chance(60)) p.specialize = random.chance(70);
  p.body = Drawing(random, p.counts_turns).steps(0, true);
  return p;
}

// ---- said

namespace {

std::string text_of(const NestNumber& n) {
  std::string all = std::to_string(n.constant);
  if (n.by_program != 0) all += " + " + std::to_string(n.by_program) + "p";
  if (n.by_turn != 0) all += " + " + std::to_string(n.by_turn) + "t";
  for (std::size_t i = 0; i < n.by_loop.size(); ++i)
    if (n.by_loop[i] != 0) all += " + " + std::to_string(n.by_loop[i]) + "i" + std::to_string(i);
  return (n.is_loaded ? "[" + all + "]" : "(" + all + ")") + "%" + std::to_string(n.below);
}

std::string text_of(const std::vector<NestStep>& steps, const std::string& indent) {
  std::string all;
  for (const NestStep& s : steps) {
    all += indent;
    switch (s.kind) {
    case Kind::product:
      all += "sum += " + (s.is_of_held ? "held" : "a" + text_of(s.row) + "," + text_of(s.depth)) +
             " b" + text_of(s.depth) + "," + text_of(s.column);
      break;
    case Kind::scaled: all += "sum += sum, clamped"; break;
    case Kind::loop: all += "for " + text_of(s.low) + " to " + text_of(s.high); break;
    case Kind::fresh: all += "sum += of zeros"; break;
    case Kind::chosen: all += "if odd " + text_of(s.row); break;
    case Kind::held: all += "hold a" + text_of(s.row) + "," + text_of(s.depth); break;
    case Kind::stored: all += "o" + text_of(s.row) + " = sum"; break;
    }
    all += "\n" + text_of(s.body, indent + "  ");
  }
  return all;
}

}  // namespace

std::string ProductNests::text() const {
  std::string all = std::string(dtype.name()) + " " + std::to_string(bm) + "x" +
                    std::to_string(bn) + "x" + std::to_string(bk) + ", " +
                    std::to_string(programs) + " programs, " + std::to_string(num_warps) +
                    " warps, " + std::to_string(num_stages) + " stages";
  if (trans_b) all += ", b [n, k]";
  if (persistent) all += ", persistent";
  if (is_sequential) all += ", sequential";
  if (specialize) all += *specialize ? ", a producer" : ", no producer";
  return all + "\n" + text_of(body, "  ");
}

// ---- as a kernel

namespace {

struct Sum {
  Value sum, turn;
};

class Body {
 public:
  Body(const ProductNests& p, Ref a, Ref b, Ref numbers, Ref o)
      : p_(p), a_(a), b_(b), numbers_(numbers), o_(o) {}

  void run() {
    const Sum all = steps(p_.body, {zeros({p_.bm, p_.bn}, f32), Value(0).astype(i32)});
    o_[{0, _, _}] = all.sum;
  }

 private:
  Sum steps(const std::vector<NestStep>& list, Sum now) {
    for (const NestStep& s : list) now = step(s, now);
    return now;
  }

  Sum step(const NestStep& s, Sum now) {
    switch (s.kind) {
    case Kind::product: return {now.sum + product(s, now.turn), now.turn + 1};
    case Kind::scaled: return {clamp(-most, now.sum + now.sum, most), now.turn};
    case Kind::loop: return looped(s, now);
    case Kind::fresh: {
      const Sum made = steps(s.body, {zeros({p_.bm, p_.bn}, f32), now.turn});
      return {now.sum + made.sum, made.turn};
    }
    case Kind::chosen: {
      const auto [sum, turn] = cond(
          number(s.row, now.turn) % 2 == 1,
          [&] {
            const Sum made = steps(s.body, now);
            return carry(made.sum, made.turn);
          },
          [&] { return carry(now.sum, now.turn); });
      return {sum, turn};
    }
    case Kind::held: {
      held_ = left(s, now.turn);
      return steps(s.body, now);
    }
    case Kind::stored: o_[{number(s.row, now.turn), _, _}] = now.sum; return now;
    }
    return now;
  }

  Sum looped(const NestStep& s, Sum now) {
    const Value low = number(s.low, now.turn), high = number(s.high, now.turn);
    if (!p_.counts_turns) {
      now.sum = loop(
          low, high,
          [&](Index i, Value sum) {
            loops_.push_back(i);
            const Sum made = steps(s.body, {sum, now.turn});
            loops_.pop_back();
            return made.sum;
          },
          now.sum);
      return now;
    }
    const auto [sum, turn] = loop(
        low, high,
        [&](Index i, Value sum, Value turn) {
          loops_.push_back(i);
          const Sum made = steps(s.body, {sum, turn});
          loops_.pop_back();
          return carry(made.sum, made.turn);
        },
        now.sum, now.turn);
    return {sum, turn};
  }

  Value left(const NestStep& s, Value turn) {
    return a_[{ds(number(s.row, turn) * p_.bm, p_.bm), ds(number(s.depth, turn) * p_.bk, p_.bk)}];
  }

  Value product(const NestStep& s, Value turn) {
    const Value l = s.is_of_held ? *held_ : left(s, turn);
    const Slice k = ds(number(s.depth, turn) * p_.bk, p_.bk),
                n = ds(number(s.column, turn) * p_.bn, p_.bn);
    return dot(l, p_.trans_b ? b_[{n, k}] : b_[{k, n}],
               {.trans_b = p_.trans_b, .precision = p_.dtype == f32 ? tf32 : ieee});
  }

  Value number(const NestNumber& n, Value turn) {
    Value sum = Value(n.constant).astype(i32);
    if (n.by_program != 0) sum = sum + program_id(0) * n.by_program;
    if (n.by_turn != 0 && p_.counts_turns) sum = sum + turn * n.by_turn;
    for (std::size_t i = 0; i < n.by_loop.size() && i < loops_.size(); ++i)
      if (n.by_loop[i] != 0) sum = sum + loops_[i] * n.by_loop[i];
    if (n.is_loaded) sum = numbers_[{sum % ProductNests::loaded}];
    return sum % n.below;
  }

  const ProductNests& p_;
  Ref a_, b_, numbers_, o_;
  std::vector<Value> loops_;
  std::optional<Value> held_;
};

}  // namespace

Kernel ProductNests::kernel() const {
  const BlockSpec whole({.memory_space = plgpu::GMEM});
  const BlockSpec own{{squeezed, slots, bm, bn}, [](Index i) { return Indices{i, 0, 0, 0}; }};
  const auto body = [p = *this](Ref a, Ref b, Ref numbers, Ref, Ref o) {
    Body(p, a, b, numbers, o).run();
  };
  return pallas_call(
      body, {.name = "product_nests",
             .out_type = {shape_of_o(), f32},
             .grid = {programs},
             .in_specs = {whole, whole, whole, own},
             .out_specs = {own},
             .input_output_aliases = {{3, 0}},
             .compiler_params = {.dimension_semantics = {is_sequential ? sequential : parallel},
                                 .num_warps = num_warps,
                                 .num_stages = num_stages,
                                 .warp_specialize = specialize,
                                 .persistent = persistent && !is_sequential}});
}

// ---- by plain loops

namespace {

class Plain {
 public:
  Plain(const ProductNests& p, const Array& a, const Array& b, const Array& numbers, Array& o)
      : p_(p),
        a_(a.data<float>()),
        b_(b.data<float>()),
        numbers_(numbers.data<std::int32_t>()),
        o_(o.data<float>()) {}

  void run(int program) {
    program_ = program;
    sum_.assign(static_cast<std::size_t>(p_.bm * p_.bn), 0);
    turn_ = 0;
    steps(p_.body);
    store(0);
  }

 private:
  void steps(const std::vector<NestStep>& list) {
    for (const NestStep& s : list) step(s);
  }

  void step(const NestStep& s) {
    switch (s.kind) {
    case Kind::product:
      add(s.is_of_held ? held_row_ : number(s.row), s.is_of_held ? held_depth_ : number(s.depth),
          number(s.depth), number(s.column));
      ++turn_;
      return;
    case Kind::scaled:
      for (float& x : sum_) x = std::clamp(x + x, -most, most);
      return;
    case Kind::loop: {
      const int low = number(s.low), high = number(s.high);
      for (int i = low; i < high; ++i) {
        loops_.push_back(i);
        steps(s.body);
        loops_.pop_back();
      }
      return;
    }
    case Kind::fresh: {
      const std::vector<float> outside = sum_;
      std::ranges::fill(sum_, 0.0f);
      steps(s.body);
      for (std::size_t e = 0; e < sum_.size(); ++e) sum_[e] += outside[e];
      return;
    }
    case Kind::chosen:
      if (number(s.row) % 2 == 1) steps(s.body);
      return;
    case Kind::held:
      held_row_ = number(s.row);
      held_depth_ = number(s.depth);
      return steps(s.body);
    case Kind::stored: return store(number(s.row));
    }
  }

  void add(int row, int left, int depth, int column) {
    const std::int64_t k = ProductNests::depths * p_.bk, n = ProductNests::columns * p_.bn;
    for (std::int64_t i = 0; i < p_.bm; ++i)
      for (std::int64_t l = 0; l < p_.bk; ++l) {
        const float x = a_[(row * p_.bm + i) * k + left * p_.bk + l];
        for (std::int64_t j = 0; j < p_.bn; ++j) {
          const std::int64_t r = depth * p_.bk + l, c = column * p_.bn + j;
          sum_[static_cast<std::size_t>(i * p_.bn + j)] +=
              x * b_[p_.trans_b ? c * k + r : r * n + c];
        }
      }
  }

  void store(int slot) {
    const std::int64_t block = p_.bm * p_.bn;
    std::ranges::copy(sum_, o_ + (program_ * ProductNests::slots + slot) * block);
  }

  int number(const NestNumber& n) const {
    int sum = n.constant + n.by_program * program_;
    if (p_.counts_turns) sum += n.by_turn * turn_;
    for (std::size_t i = 0; i < n.by_loop.size() && i < loops_.size(); ++i)
      sum += n.by_loop[i] * loops_[i];
    if (n.is_loaded) sum = numbers_[sum % ProductNests::loaded];
    return sum % n.below;
  }

  const ProductNests& p_;
  const float *a_, *b_;
  const std::int32_t* numbers_;
  float* o_;
  std::vector<float> sum_;
  std::vector<int> loops_;
  int program_ = 0, turn_ = 0, held_row_ = 0, held_depth_ = 0;
};

}  // namespace

Array ProductNests::expected(const Array& a, const Array& b, const Array& numbers,
                             const Array& o) const {
  Array all = o.copy();
  Plain plain(*this, a, b, numbers, all);
  for (int p = 0; p < programs; ++p) plain.run(p);
  return all;
}

}  // namespace palladium::test
