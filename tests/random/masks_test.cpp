// Loops whose bodies ask conditions on elements, drawn at random: sums of coordinates, of the
// number of the iteration, of program ids and of prefetched numbers are compared, and what is
// chosen by that is added up, so that no iteration may miss, be another or come in another order.
// Interpreter = emulator = plain loops, where numbers wrap, loops are empty or begin at the least
// number, too.
//
// PALLADIUM_TEST_CALLS=10000 tries a tenth as many; PALLADIUM_TEST_MASKS=17 that one again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/error.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"

namespace palladium::test::masks {
namespace {

constexpr int programs = 3, columns = 32, rows = 64, depth = 32, most_blocks = 8;

std::int32_t wrapped(std::int64_t n) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(n));
}

/// An integer of each element, or a condition on it.
struct Node {
  enum Kind {
    constant,
    row,
    column,
    iteration,
    program,
    loaded,
    plus,
    minus,
    times,
    larger,
    smaller,
    less,
    at_most,
    equal,
    both,
    either,
    no
  } kind = constant;
  std::int64_t number = 0;
  int a = -1, b = -1;
};
using Nodes = std::vector<Node>;

enum class Style { loop, product, grid };

struct Drawn {
  Style style = Style::loop;
  Nodes nodes = {};
  std::vector<int> conditions = {};
  std::vector<int> polarity = {};            // of each: which branch is a constant, or none is
  std::int64_t low = 0, low_by_program = 0;  // low + low_by_program * program
  std::int64_t count = 0, count_by_program = 0, step = 1;
  std::int32_t numbers[programs] = {};
  int num_warps = 0;

  std::int64_t begin(std::int64_t program) const { return low + low_by_program * program; }
  std::int64_t end(std::int64_t program) const {
    const std::int64_t n = count + count_by_program * program;
    return n < 0 ? begin(program) - 1
                 : std::min<std::int64_t>(begin(program) + n * step, INT32_MAX);
  }
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  Drawn run() {
    d_.style = random_.pick({Style::loop, Style::loop, Style::product, Style::grid});
    d_.step = d_.style == Style::grid ? 1 : random_.pick({1, 1, 1, 2, 3, 64});
    if (d_.style != Style::grid) {
      d_.low_by_program = random_.pick({0, 0, 1, 2, -3});
      d_.low = random_.pick<std::int64_t>(
          {0, 0, 0, 1, -4, 100, INT32_MIN + 8, INT32_MAX - 40, INT32_MAX - 6 * d_.step - 6});
      d_.count_by_program = random_.pick({0, 1, 2, -1});
    }
    d_.count = random_.pick({-1, 0, 1, 2, 3, 4});
    if (d_.style == Style::grid) d_.count = random_.between(1, 6);
    for (std::int32_t& n : d_.numbers) n = random_.between(-200, 400);
    d_.num_warps = random_.pick({0, 0, 4, 8});
    const int conditions = random_.pick({1, 1, 2});
    for (int i = 0; i < conditions; ++i) {
      d_.conditions.push_back(condition(2));
      d_.polarity.push_back(random_.between(0, 2));
    }
    return d_;
  }

 private:
  int add(Node n) {
    d_.nodes.push_back(n);
    return static_cast<int>(d_.nodes.size()) - 1;
  }
  int two(Node::Kind kind, int a, int b) { return add({kind, 0, a, b}); }

  int condition(int depth) {
    if (depth > 0 && random_.chance(40)) {
      const int a = condition(depth - 1);
      if (random_.chance(25)) return two(Node::no, a, -1);
      const Node::Kind kind = random_.pick({Node::both, Node::both, Node::either});
      return two(kind, a, condition(depth - 1));
    }
    const int a = number(2), b = number(2);
    return two(random_.pick({Node::less, Node::at_most, Node::at_most, Node::less, Node::equal}), a,
               b);
  }

  int number(int depth) {
    if (depth == 0) return leaf();
    switch (random_.between(0, 9)) {
    case 0: return of_numbers(Node::larger, depth - 1);
    case 1: return of_numbers(Node::smaller, depth - 1);
    case 2: return of_numbers(Node::minus, depth - 1);
    case 3: return leaf();
    case 4:
      return add({Node::times,
                  random_.pick<std::int64_t>({2, -1, 3, 16, -5, 1 << 20, 1 << 29, INT32_MIN}),
                  number(depth - 1), -1});
    default: return of_numbers(Node::plus, depth - 1);
    }
  }

  // Drawn in one order, whatever compiles it.
  int of_numbers(Node::Kind kind, int depth) {
    const int b = number(depth), a = number(depth);
    return two(kind, a, b);
  }

  int leaf() {
    switch (random_.between(0, 9)) {
    case 0: return add({Node::row});
    case 1: return add({Node::column});
    case 2: return add({Node::program});
    case 3: return add({Node::loaded});
    case 4:
      return add({Node::constant,
                  random_.pick<std::int64_t>({INT32_MAX, INT32_MIN, INT32_MAX - 90, 1 << 30})});
    case 5: return add({Node::constant, random_.between(-100, 300)});
    default: {
      const int i = add({Node::iteration});
      const auto by = random_.pick<std::int64_t>({1, 1, -1, 32, 32, 64, -32, 7});
      if (by == 1) return i;
      return add({Node::times, by, i, -1});
    }
    }
  }

  Random random_;
  Drawn d_;
};

/// As a kernel records it.
class Recorded {
 public:
  Recorded(const Drawn& d, const Value& loaded, const Value& iteration)
      : d_(d), loaded_(loaded), iteration_(iteration) {}

  Value of(int n) const {
    const Node& x = d_.nodes[static_cast<std::size_t>(n)];
    const auto a = [&] { return of(x.a); };
    const auto b = [&] { return of(x.b); };
    switch (x.kind) {
    case Node::constant: return full({1, 1}, static_cast<int>(x.number), i32);
    case Node::row: return iota(i32, {rows, 1}, 0);
    case Node::column: return iota(i32, {1, columns}, 1);
    case Node::iteration: return iteration_;
    case Node::program: return program_id(0);
    case Node::loaded: return loaded_;
    case Node::plus: return a() + b();
    case Node::minus: return a() - b();
    case Node::times: return a() * static_cast<int>(x.number);
    case Node::larger: return maximum(a(), b());
    case Node::smaller: return minimum(a(), b());
    case Node::less: return a() < b();
    case Node::at_most: return a() <= b();
    case Node::equal: return a() == b();
    case Node::both: return a() & b();
    case Node::either: return a() | b();
    case Node::no: return !a();
    }
    return {};
  }

  /// What an iteration makes of a sum, with all that a block adds to it.
  Value next(Value sum, const Value& block) const {
    for (std::size_t i = 0; i < d_.conditions.size(); ++i) {
      const Value c = of(d_.conditions[i]) & full({rows, columns}, true, bool_);
      const Value x = block + iteration_ * 7, constant = full({rows, columns}, -9, i32);
      const int p = d_.polarity[i];
      sum = sum * 3 + (p == 0   ? where(c, x, constant)
                       : p == 1 ? where(c, constant, x)
                                : where(c, x, sum));
    }
    return sum;
  }

 private:
  const Drawn& d_;
  Value loaded_, iteration_;
};

/// As plain loops compute it.
struct Meant {
  const Drawn& d;
  std::int64_t r, c, program, iteration;

  std::int64_t of(int n) const {
    const Node& x = d.nodes[static_cast<std::size_t>(n)];
    const auto a = [&] { return of(x.a); };
    const auto b = [&] { return of(x.b); };
    switch (x.kind) {
    case Node::constant: return x.number;
    case Node::row: return r;
    case Node::column: return c;
    case Node::iteration: return iteration;
    case Node::program: return program;
    case Node::loaded: return d.numbers[program];
    case Node::plus: return wrapped(a() + b());
    case Node::minus: return wrapped(a() - b());
    case Node::times: return wrapped(a() * x.number);
    case Node::larger: return std::max(a(), b());
    case Node::smaller: return std::min(a(), b());
    case Node::less: return a() < b();
    case Node::at_most: return a() <= b();
    case Node::equal: return a() == b();
    case Node::both: return a() & b();
    case Node::either: return a() | b();
    case Node::no: return !a();
    }
    return 0;
  }

  std::int64_t next(std::int64_t sum, std::int64_t block) const {
    for (std::size_t i = 0; i < d.conditions.size(); ++i) {
      const bool holds = of(d.conditions[i]) != 0;
      const std::int64_t x = wrapped(block + iteration * 7);
      const int p = d.polarity[i];
      const std::int64_t chosen = holds == (p == 1) ? (p == 2 ? sum : -9) : x;
      sum = wrapped(sum * 3 + chosen);
    }
    return sum;
  }
};

Kernel kernel_of(const Drawn& d) {
  const auto body = [=](Ref numbers, Ref a, Ref b, Ref o) {
    const Value p = program_id(0), loaded = numbers[p];
    const auto own = [&] {
      return iota(i32, {rows, columns}, 0) * 5 + iota(i32, {rows, columns}, 1);
    };
    if (d.style == Style::grid) {
      const Value i = program_id(1);
      when(i == 0, [&] { o[_] = zeros({rows, columns}, i32); });
      o[_] = Recorded(d, loaded, i).next(o[_], own());
      return;
    }
    const Value low = p * static_cast<int>(d.low_by_program) + static_cast<int>(d.low);
    const Value count = p * static_cast<int>(d.count_by_program) + static_cast<int>(d.count);
    // No sum that wraps: numbers near the largest have a step that does not.
    const Value room = (Value(INT32_MAX) - maximum(low, 0)) / static_cast<int>(d.step);
    const Value steps = maximum(minimum(count, room), 0) * static_cast<int>(d.step);
    const Value end =
        where(count < 0, low - 1, where(count <= room, low + steps, Value(INT32_MAX)));
    o[_] = loop(
        low, end, {.step = d.step},
        [&](Index i, Value sum) {
          if (d.style == Style::loop) return Recorded(d, loaded, i).next(sum, own());
          const Value at = (i - low) / static_cast<int>(d.step) * columns;
          const Value block =
              dot(a[_], b[{ds(at, columns), _}], {.trans_b = true, .preferred_element_type = i32});
          return Recorded(d, loaded, i).next(sum, block);
        },
        zeros({rows, columns}, i32));
  };
  const bool grid = d.style == Style::grid;
  const auto first = [](Index i, Ref) { return Indices{i, 0}; };
  const auto first_of_two = [](Index i, Index, Ref) { return Indices{i, 0}; };
  const auto all = [](Index, Ref) { return Indices{0, 0}; };
  const auto all_of_two = [](Index, Index, Ref) { return Indices{0, 0}; };
  const auto spec = [&](int high, int wide, bool shared) {
    if (grid)
      return shared ? BlockSpec{{high, wide}, all_of_two} : BlockSpec{{high, wide}, first_of_two};
    return shared ? BlockSpec{{high, wide}, all} : BlockSpec{{high, wide}, first};
  };
  PallasCallOptions options{
      .name = "masks",
      .out_type = ShapeDtype{{programs * rows, columns}, i32},
      .num_scalar_prefetch = 1,
      .in_specs = {spec(rows, depth, true), spec(most_blocks * columns, depth, true)},
      .out_specs = {spec(rows, columns, false)}};
  options.grid = {programs};
  options.compiler_params.num_warps = d.num_warps;
  options.compiler_params.dimension_semantics = {parallel};
  if (grid) {
    options.grid.sizes.push_back(d.count);
    options.compiler_params.dimension_semantics.push_back(sequential);
  }
  return pallas_call(body, options);
}

std::vector<std::int32_t> meant(const Drawn& d, const Array& a, const Array& b) {
  std::vector<std::int32_t> all;
  const auto product = [&](std::int64_t r, std::int64_t c) {
    std::int64_t sum = 0;
    for (int k = 0; k < depth; ++k)
      sum += a.data<std::int8_t>()[r * depth + k] * b.data<std::int8_t>()[c * depth + k];
    return sum;
  };
  for (std::int64_t p = 0; p < programs; ++p)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        std::int64_t sum = 0;
        const bool grid = d.style == Style::grid;
        const std::int64_t low = grid ? 0 : d.begin(p), end = grid ? d.count : d.end(p);
        for (std::int64_t i = low, n = 0; i < end; i += d.step, ++n)
          sum = Meant{d, r, c, p, i}.next(
              sum, d.style == Style::product ? product(r, n * columns + c) : 5 * r + c);
        all.push_back(static_cast<std::int32_t>(sum));
      }
  return all;
}

int loops_known(const lowered::Statements& list) {
  int count = 0;
  for (const lowered::Statement& s : list) {
    if (const auto* const loop = std::get_if<lowered::Loop>(&s.what)) count += !loop->known.empty();
    if (const auto* const loop = std::get_if<lowered::GridLoop>(&s.what))
      count += !loop->known.empty();
    lowered::for_each_body(s, [&](const lowered::Statements& body) { count += loops_known(body); });
  }
  return count;
}

bool is_split(const Kernel& k, const std::vector<ArgType>& types, int cc) {
  const graph::Graph g = graph::from_json(k.lower(types).json());
  const lowered::Program l = cuda::lower(g, {.compute_capability = cc});
  int count = 0;
  for_each_list(l, [&](const lowered::Statements& list) { count += loops_known(list); });
  return count > 0;
}

std::string problem_of(std::uint64_t seed, bool emulated, int& split) try {
  const Drawn d = Draw(seed).run();
  Random random(seed + 5);
  Array numbers = Array::empty({programs}, i32), a = Array::empty({rows, depth}, i8),
        b = Array::empty({most_blocks * columns, depth}, i8);
  std::copy(std::begin(d.numbers), std::end(d.numbers), numbers.data<std::int32_t>());
  for (const Array* const x : {&a, &b})
    for (std::int64_t i = 0; i < x->size(); ++i)
      x->data<std::int8_t>()[i] = static_cast<std::int8_t>(random.between(-9, 9));
  const Kernel k = kernel_of(d);
  split += is_split(k, {numbers.type(), a.type(), b.type()}, 90);
  const std::vector<std::int32_t> expected = meant(d, a, b);
  for (const Target target : {Target::interpreter, Target::emulator}) {
    if (target == Target::emulator && !emulated) continue;
    const Array found = k.on(target)(numbers, a, b);
    const std::int32_t* const at = found.data<std::int32_t>();
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (at[i] != expected[i])
        return fmt::format("{}: element {} is {}, not {}",
                           target == Target::interpreter ? "interpreter" : "emulator", i, at[i],
                           expected[i]);
  }
  return "";
} catch (const Error& e) {
  return e.what();
}

}  // namespace

TEST_CASE("loops whose elements ask random conditions compute what plain loops do") {
  std::uint64_t first = 1, last = 60;
  if (const char* many = std::getenv("PALLADIUM_TEST_CALLS"))
    last = std::max<std::uint64_t>(60, std::strtoull(many, nullptr, 10) / 10);
  const char* const one = std::getenv("PALLADIUM_TEST_MASKS");
  if (one != nullptr) first = last = std::strtoull(one, nullptr, 10);
  int split = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("PALLADIUM_TEST_MASKS=" << seed);
    CHECK(problem_of(seed, true, split) == "");
  }
  if (one == nullptr) CHECK(split * 4 > static_cast<int>(last));
}

}  // namespace palladium::test::masks
