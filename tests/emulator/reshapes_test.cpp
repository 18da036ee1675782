// Values that are reshaped between memory and memory: interpreter and emulator agree, whether views
// of memory have the finer shapes or threads hand elements on.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

using Operation = std::function<Value(Value)>;

/// By programs of one block each, of rows of which the last program has fewer.
struct Blocks {
  std::vector<std::int64_t> in, out;  // of a program
  DType from = f32, to = f32;
  std::int64_t missing = 1;  // of the first dimension
  Semantics order = parallel;
};

Shape shape_of(const std::vector<std::int64_t>& extents) {
  Shape shape;
  for (const std::int64_t n : extents) shape.push_back(n);
  return shape;
}

ShapeDtype array_of(std::vector<std::int64_t> block, DType t, std::int64_t missing) {
  block[0] = 3 * block[0] - missing;
  return {shape_of(block), t};
}

BlockSpec spec_of(const std::vector<std::int64_t>& block) {
  const std::size_t rank = block.size();
  const auto rows = [rank](Index i) {
    std::vector<Value> all(rank, Value(0));
    all[0] = i;
    return Indices(all);
  };
  return BlockSpec::of({block.begin(), block.end()}, rows, {.fill = 0});
}

/// A kernel of f, and what it is called with.
struct Case {
  Blocks blocks;
  Operation f;

  ShapeDtype input() const { return array_of(blocks.in, blocks.from, blocks.missing); }
  Body body() const {
    return [f = f](Ref x, Ref o) { o[_] = f(x[_]); };
  }
  PallasCallOptions options() const {
    return {.name = "reshaped",
            .out_type = array_of(blocks.out, blocks.to, blocks.missing),
            .grid = {3},
            .in_specs = {spec_of(blocks.in)},
            .out_specs = {spec_of(blocks.out)},
            .compiler_params = {.dimension_semantics = {blocks.order}}};
  }
};

bool moves_reshapes(const Case& c) {
  bool found = false;
  (void)cuda::lower(traced(c.body(), c.options(), {{c.input(), false}}), {.compute_capability = 90},
                    [&](const passes::PassRun& run, const lowered::Program& l) {
                      if (std::string_view(run.pass) == "move_reshapes")
                        found |= std::ranges::any_of(l.graph.insts, [](const graph::Inst& i) {
                          return i.op == graph::Op::RefReshape;
                        });
                    });
  return found;
}

// All targets give what the interpreter does of small numbers.
void compare(const Case& c) {
  const Kernel k = pallas_call(c.body(), c.options());
  std::vector<float> expected;
  for_each_target("reshapes", [&](Target target) {
    Random random(7);
    const Array x = make_array<float>(c.input().shape, [&](auto) { return random.between(-9, 9); });
    const Array o = on_cpu(k.on(target)(on(target, x.astype(c.blocks.from)))).astype(f32);
    if (expected.empty()) expected.assign(o.data<float>(), o.data<float>() + o.size());
    for (std::int64_t i = 0; i < o.size(); ++i) {
      INFO("element " << i);
      REQUIRE(o.data<float>()[i] == expected[static_cast<std::size_t>(i)]);
    }
  });
}

void check(const Blocks& b, bool moves, const Operation& f) {
  const Case c{b, f};
  CHECK(moves_reshapes(c) == moves);
  compare(c);
}

// Never -0, which the greatest may be, or 0.
Value less_its_greatest(const Value& x, int axis) {
  return x - max(x, {.axis = axis, .keepdims = true}) + 0.0f;
}

// ---- random chains of operations

constexpr std::size_t most_dimensions = 5;

// Dimension d and the next one change places.
Axes swapped(std::size_t rank, std::size_t d) {
  int o[most_dimensions] = {0, 1, 2, 3, 4};
  std::swap(o[d], o[d + 1]);
  switch (rank) {
  case 2: return {o[0], o[1]};
  case 3: return {o[0], o[1], o[2]};
  case 4: return {o[0], o[1], o[2], o[3]};
  default: return {o[0], o[1], o[2], o[3], o[4]};
  }
}

class Chain {
 public:
  explicit Chain(std::uint64_t seed) : random_(seed) {}

  std::vector<std::int64_t> first() {
    shape_ = {random_.pick({2, 4, 8, 12}), random_.pick({16, 32, 48, 64, 96})};
    return shape_;
  }
  Value apply(Value x) {
    for (int n = random_.between(2, 7); n > 0; --n) x = step(std::move(x));
    while (shape_.size() > 3) {
      shape_[0] *= shape_[1];
      shape_.erase(shape_.begin() + 1);
    }
    return x.reshape(shape_of(shape_));
  }
  const std::vector<std::int64_t>& last() const { return shape_; }

 private:
  std::size_t any() {
    return static_cast<std::size_t>(random_.below(static_cast<int>(shape_.size())));
  }

  Value step(Value x) {
    const std::size_t d = any();
    const auto at = static_cast<std::ptrdiff_t>(d);
    const int axis = static_cast<int>(d);
    const std::int64_t extent = shape_[d];
    switch (random_.below(8)) {
    case 0:
    case 1: {
      const std::int64_t by = random_.pick({2, 3, 4, 8});
      if (extent % by != 0 || shape_.size() == most_dimensions) return x + 1.0f;
      shape_[d] = random_.chance(50) ? by : extent / by;
      shape_.insert(shape_.begin() + at + 1, extent / shape_[d]);
      return x.reshape(shape_of(shape_));
    }
    case 2:
      if (d + 1 == shape_.size()) return x * 2.0f;
      shape_[d] *= shape_[d + 1];
      shape_.erase(shape_.begin() + at + 1);
      return x.reshape(shape_of(shape_));
    case 3: return less_its_greatest(x, axis);
    case 4: return where(iota(i32, shape_of(shape_), axis) < static_cast<int>(extent / 2), x, -x);
    case 5: {
      if (extent % 2 != 0) return x - 1.0f;
      const std::vector<Value> halves = split(x, 2, axis);
      return concatenate({halves[1], halves[0]}, axis);
    }
    case 6:
      if (d + 1 == shape_.size()) return x;
      std::swap(shape_[d], shape_[d + 1]);
      return transpose(x, swapped(shape_.size(), d));
    default: return x + iota(i32, shape_of(shape_), axis).astype(f32);
    }
  }

  Random random_;
  std::vector<std::int64_t> shape_;
};

}  // namespace

TEST_CASE("groups of rows are scaled without handing their elements on") {
  const Blocks b{.in = {4, 256}, .out = {4, 256}, .to = f8e4m3};
  check(b, true, [](Value x) {
    const Value groups = x.reshape({4, 4, 64});
    const Value most = maximum(max(abs(groups), {.axis = 2, .keepdims = true}), 1e-6f);
    return (groups * (448.0f / most)).reshape({4, 256}).astype(f8e4m3);
  });
}

TEST_CASE("halves of rows change places where they are stored") {
  const Blocks b{.in = {4, 128}, .out = {4, 128}, .from = bf16, .to = bf16};
  check(b, true, [](Value x) { return flip(x.reshape({4, 2, 64}), 1).reshape({4, 128}); });
  check(b, true, [](Value x) {
    const Value pairs = x.reshape({4, 2, 64});
    const Value low = take(pairs, 0, 1), high = take(pairs, 1, 1);
    return stack({low - high, low + high}, 1).reshape({4, 128});
  });
}

TEST_CASE("numbers of elements are those of the shape that is written") {
  const Blocks b{.in = {4, 128}, .out = {4, 2, 64}};
  check(b, true, [](Value x) {
    const Value number = iota(i32, {4, 128}, 1);
    return where(number < 70, x, number.astype(f32)).reshape({4, 2, 64});
  });
}

TEST_CASE("rows and groups of them are folded, and turned, in one kernel") {
  const Blocks b{.in = {16, 128}, .out = {128, 16}, .missing = 0};
  check(b, true, [](Value x) {
    const Value fours = less_its_greatest(x.reshape({4, 4, 128}), 1);
    return less_its_greatest(fours.reshape({16, 128}), 1).transpose();
  });
}

TEST_CASE("pairs of neighbours are no rows to access by") {
  const Blocks b{.in = {4, 128}, .out = {4, 128}};
  check(b, false, [](Value x) {
    return less_its_greatest(x.reshape({4, 64, 2}), 2).reshape({4, 128});
  });
}

TEST_CASE("what is scanned, or kept from program to program, has the shape that is written") {
  const Blocks b{.in = {4, 128}, .out = {4, 128}};
  check(b, false, [](Value x) {
    return cumsum(less_its_greatest(x.reshape({4, 2, 64}), 2).reshape({4, 128}), {.axis = 1});
  });
  Blocks in_order = b;
  in_order.order = sequential;
  check(in_order, false, [](Value x) {
    return less_its_greatest(x.reshape({4, 2, 64}), 2).reshape({4, 128});
  });
}

TEST_CASE("what all threads want of a few elements is read from where others put it") {
  constexpr std::int64_t n = 64, depth = 16, steps = 2;
  const Kernel distances = pallas_call(
      [](Ref a, Ref b, Ref o) {
        o[_] = loop(
            0, steps,
            [&](Index l, Value sums) {
              const Slice now = ds(l * depth, depth);
              const Value x = a[{_, now}].reshape({n, 1, depth});
              const Value y = b[{_, now}].reshape({1, n, depth});
              return sums + sum(abs(x - y), {.axis = 2});
            },
            zeros({n, n}, f32));
      },
      {.name = "distances", .out_type = {{n, n}, f32}});
  for_each_target("distances", [&](Target target) {
    Random random(7);
    const auto small = [&](auto) { return random.between(-9, 9); };
    const Array a = make_array<float>({n, steps * depth}, small),
                b = make_array<float>({n, steps * depth}, small),
                o = on_cpu(distances.on(target)(on(target, a), on(target, b)));
    for (std::int64_t i = 0; i < n * n; ++i) {
      float expected = 0;
      for (std::int64_t k = 0; k < steps * depth; ++k)
        expected += std::abs(a.data<float>()[i / n * steps * depth + k] -
                             b.data<float>()[i % n * steps * depth + k]);
      INFO("element " << i);
      REQUIRE(o.data<float>()[i] == expected);
    }
  });
}

TEST_CASE("random chains of reshapes and what stands between them give one result") {
  int drawn = 0, moved = 0;
  for_seeds(1, 160, [&](std::uint64_t seed) {
    const auto shapes = std::make_shared<Chain>(seed);
    Blocks b;
    b.in = shapes->first();
    b.missing = static_cast<std::int64_t>(seed % 2);
    // Of which shape the result is: known behind a first trace.
    (void)traced([=](Ref x, Ref o) { o[_] = sum(shapes->apply(x[_])).reshape({1}); },
                 {.name = "shapes", .out_type = ShapeDtype{{1}, f32}},
                 {{{shape_of(b.in), f32}, false}});
    b.out = shapes->last();
    if (b.out[0] <= b.missing) b.missing = 0;
    const Case c{b, [seed](Value x) {
                   Chain chain(seed);
                   (void)chain.first();
                   return chain.apply(std::move(x));
                 }};
    ++drawn;
    moved += moves_reshapes(c);
    compare(c);
  });
  CHECK(moved * 4 > drawn);
}
