// Sums beside products, carried through a loop: threads add up parts of their own and meet behind
// it. Interpreter and emulator agree, races on, for any number of iterations.
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/emit.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/targets.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

enum class Along { rows, columns, all };

struct Kind {
  Along along = Along::rows;
  bool of_a = true, squared = false, keepdims = true, told_again = false;
  DType dtype = bf16;
  float begin = 0;
  std::int64_t rows = 128, columns = 128, depth = 64, steps = 6;
  int num_warps = 8, num_stages = 0;
};

Shape sums_of(const Kind& k) {
  const Shape operand = k.of_a ? Shape{k.rows, k.depth} : Shape{k.depth, k.columns};
  if (k.along == Along::all) return {1};
  const bool columns = k.along == Along::columns;
  const std::int64_t left = operand[columns ? 1 : 0];
  if (!k.keepdims) return {left};
  return columns ? Shape{1, left} : Shape{left, 1};
}

// a @ b, and of one of them sums of rows, of columns or of all.
graph::Graph graph_of(const Kind& k) {
  const Shape shape = sums_of(k);
  const auto body = [=](Ref a, Ref b, Ref o, Ref sums) {
    const auto add = [&](Index l, Value sum, Value left) {
      const Slice now = ds(l * k.depth, k.depth);
      const Value x = a[{_, now}], y = b[{now, _}];
      Value wide = (k.of_a ? x : y).astype(f32);
      if (k.squared) wide = wide * wide;
      const Value all =
          k.along == Along::all
              ? palladium::sum(wide, {.axis = 1}).reshape({1, k.of_a ? k.rows : k.depth})
              : wide;
      const int axis = k.along == Along::columns ? 0 : 1;
      Value part =
          palladium::sum(all, {.axis = axis, .keepdims = k.keepdims && k.along != Along::all});
      if (k.told_again) part = part + palladium::max(abs(left)) * 0.0f;
      return carry(sum + dot(x, y), left + part);
    };
    const auto [sum, left] =
        loop(0, k.steps, add, zeros({k.rows, k.columns}, f32), full(shape, k.begin, f32));
    o[_] = sum;
    sums[_] = left;
  };
  const std::int64_t n = std::max<std::int64_t>(k.steps, 1) * k.depth;
  return traced(body,
                {.name = "sums",
                 .out_type = {{{k.rows, k.columns}, f32}, {shape, f32}},
                 .compiler_params = {.num_warps = k.num_warps, .num_stages = k.num_stages}},
                {array({k.rows, n}, k.dtype), array({n, k.columns}, k.dtype)});
}

std::string text_of(const graph::Graph& g, int cc = 90) {
  return cuda::emit(g, {.compute_capability = cc}).text;
}

/// What stands between the first product and the end of its loop.
std::string behind_product(const std::string& text) {
  const std::size_t begin = text.find("pl::wgmma_commit()");
  return begin == text.npos ? "" : text.substr(begin, text.find("wgmma_wait<0>", begin) - begin);
}

}  // namespace

TEST_CASE("threads that add up beside products do not meet in the loop") {
  for (const Along along : {Along::rows, Along::columns})
    for (const bool of_a : {false, true}) {
      CAPTURE(static_cast<int>(along), of_a);
      const std::string text = behind_product(text_of(graph_of({.along = along, .of_a = of_a})));
      CHECK_THAT(text, ContainsSubstring("wgmma_wait<1>") && !ContainsSubstring("program_sync") &&
                           !ContainsSubstring("reduce_lanes") &&
                           !ContainsSubstring("reduce_warps"));
    }
}

TEST_CASE("sums beside products are right after any number of iterations") {
  for (const std::int64_t steps : {0, 1, 2, 5, 6, 13})
    for (const Along along : {Along::rows, Along::columns}) {
      CAPTURE(steps, static_cast<int>(along));
      const graph::Graph g = graph_of({.along = along, .squared = true, .steps = steps});
      for (const int cc : {80, 90}) CHECK(on_all_targets(g, {}, cc) == "");
    }
}

TEST_CASE("sums of any kind beside products are right") {
  const Kind kinds[] = {
      {.along = Along::all},
      {.begin = 3},
      {.along = Along::columns, .of_a = false, .begin = -2},
      {.keepdims = false},
      {.along = Along::columns, .keepdims = false, .begin = 1},
      {.told_again = true},
      {.of_a = false, .squared = true, .dtype = f16, .num_warps = 4},
      {.along = Along::columns, .rows = 64, .columns = 96, .depth = 48, .num_warps = 4},
      {.rows = 192, .columns = 64, .depth = 80},
      {.dtype = f8e4m3, .depth = 128},
      {.along = Along::columns, .num_stages = 2},
      {.num_stages = 1},
  };
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    CAPTURE(i);
    const graph::Graph g = graph_of(kinds[i]);
    for (const int cc : {80, 90}) CHECK(on_all_targets(g, {}, cc) == "");
  }
}

TEST_CASE("what a loop asks of its sum in between is whole") {
  CHECK_THAT(text_of(graph_of({.told_again = true})), ContainsSubstring("reduce_"));
  const graph::Graph g = traced(
      [](Ref a, Ref b, Ref o, Ref each) {
        const auto add = [&](Index l, Value sum, Value left) {
          const Value x = a[{_, ds(l * 64, 64)}];
          const Value now = left + palladium::sum(x.astype(f32), {.axis = 1});
          each[l] = now;
          return carry(sum + dot(x, b[{ds(l * 64, 64), _}]), now);
        };
        const auto [sum, left] = loop(0, 4, add, zeros({64, 64}, f32), zeros({64}, f32));
        o[_] = sum * left.reshape({64, 1});
      },
      {.name = "each", .out_type = {{{64, 64}, f32}, {{4, 64}, f32}}},
      {array({64, 256}, bf16), array({256, 64}, bf16)});
  for (const int cc : {80, 90}) CHECK(on_all_targets(g, {}, cc) == "");
}

namespace {

/// Folds of what rows of memory hold, chunk by chunk, in a loop with no product.
struct Chunks {
  std::int64_t rows = 4, chunk = 256, steps = 5;
  DType dtype = bf16;
  int axis = 1, num_warps = 0;
  bool keepdims = true, stores = false;
  float begin = 0;

  static Chunks drawn(Random& random) {
    return {.rows = random.pick({1, 3, 4, 16, 64}),
            .chunk = random.pick({8, 40, 64, 100, 256, 1000, 2048}),
            .steps = random.between(0, 6),
            .dtype = random.chance(50) ? bf16 : f32,
            .axis = random.between(0, 1),
            .num_warps = random.pick({0, 4, 8}),
            .keepdims = random.chance(60),
            .stores = random.chance(25),
            .begin = static_cast<float>(random.between(-3, 3))};
  }
  std::string text() const {
    return std::to_string(steps) + " chunks of " + std::to_string(rows) + "x" +
           std::to_string(chunk) + " of " + std::string(dtype.name()) + " along " +
           std::to_string(axis) + (keepdims ? "" : ", dropped") + (stores ? ", stored" : "") +
           ", from " + std::to_string(begin) + ", " + std::to_string(num_warps) + " warps";
  }
  std::int64_t results() const { return axis == 0 ? chunk : rows; }
  Shape kept() const {
    if (!keepdims) return {results()};
    return axis == 0 ? Shape{1, chunk} : Shape{rows, 1};
  }

  Kernel kernel() const {
    const Chunks c = *this;
    const auto body = [c](Ref x, Ref sums, Ref squares, Ref most, Ref least, Ref copy) {
      const ReduceOptions over{.axis = c.axis, .keepdims = c.keepdims};
      const Value begin = full(c.kept(), c.begin, f32);
      const auto step = [&](Index i, Value s, Value q, Value m, Value l) {
        const Slice now = ds(i * static_cast<int>(c.chunk), c.chunk);
        const Value v = x[{_, now}].astype(f32);
        if (c.stores) copy[{_, now}] = v;
        return carry(s + sum(v, over), q + sum(v * v, over), maximum(m, max(v, over)),
                     minimum(min(v + 1.0f, over), l));
      };
      const auto [s, q, m, l] =
          loop(0, static_cast<int>(c.steps), step, begin, zeros(c.kept(), f32), begin, begin);
      sums[_] = s, squares[_] = q, most[_] = m, least[_] = l;
    };
    const ShapeDtype result{kept(), f32};
    return pallas_call(body, {.name = "chunks",
                              .out_type = {result, result, result, result, {shape(), f32}},
                              .compiler_params = {.num_warps = num_warps}});
  }
  Shape shape() const { return {rows, chunk * std::max<std::int64_t>(steps, 1)}; }
};

void check(const Chunks& c) {
  CAPTURE(c.text());
  Random random(static_cast<std::uint64_t>(c.rows * 31 + c.chunk));
  const Array x = make_array<float>(c.shape(), [&](auto) { return random.between(-2, 2); });
  const auto n = static_cast<std::size_t>(c.results());
  std::vector<float> sums(n, c.begin), squares(n), most(n, c.begin), least(n, c.begin);
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.chunk * c.steps; ++j) {
      const float v = x.data<float>()[i * c.chunk * c.steps + j];
      const auto at = static_cast<std::size_t>(c.axis == 0 ? j % c.chunk : i);
      sums[at] += v, squares[at] += v * v;
      most[at] = std::max(most[at], v), least[at] = std::min(least[at], v + 1);
    }
  for_each_target("chunks", [&](Target target) {
    const auto [s, q, m, l, copy] =
        c.kernel().on(target)(on(target, x.astype(c.dtype))).unpack<5>();
    const auto is = [&](const Array& made, const std::vector<float>& expected) {
      const Array a = on_cpu(made);
      for (std::size_t e = 0; e < expected.size(); ++e) {
        INFO("element " << e);
        REQUIRE(a.data<float>()[e] == expected[e]);
      }
    };
    is(s, sums), is(q, squares), is(m, most), is(l, least);
  });
}

}  // namespace

TEST_CASE("folds that a loop without products carries meet behind it") {
  // Of one row, or of columns, all threads would wait for each other in each iteration.
  for (const Chunks& c :
       {Chunks{.rows = 1, .chunk = 1024}, Chunks{.rows = 64, .chunk = 64, .axis = 0}}) {
    const std::string text =
        c.kernel().lower(ShapeDtype{c.shape(), bf16}).cuda_source({.arch = "sm_90a"});
    CAPTURE(c.text(), text);
    const std::size_t loop = text.find("PL_NOUNROLL for");
    REQUIRE(loop != std::string::npos);
    const std::string body = text.substr(loop, text.find("\n  }\n", loop) - loop);
    CHECK(body.find("sync") == std::string::npos);
    CHECK(body.find("reduce_warps") == std::string::npos);
    CHECK(text.find("reduce_warps") != std::string::npos);
    // What several carries add, they share.
    if (c.rows == 1) CHECK(body.find("load_global") == body.rfind("load_global"));
  }
  check({});
  check({.rows = 1});
  check({.rows = 1, .steps = 0, .begin = 2});
  check({.rows = 16, .axis = 0});
}

TEST_CASE("a vector that is reshaped for the rows it multiplies keeps no sum in its loop") {
  for (const std::int64_t rows : {1, 2}) {
    const graph::Graph g = traced(
        [&](Ref a, Ref x, Ref o) {
          const auto add = [&](Index i, Value sum) {
            const Slice now = ds(i * 1024, 1024);
            return sum +
                   palladium::sum(a[{_, now}].astype(f32) * x[now].astype(f32).reshape({1, 1024}),
                                  {.axis = 1});
          };
          o[_] = loop(0, 4, add, zeros({rows}, f32));
        },
        {.name = "gemv", .out_type = {{{rows}, f32}}},
        {array({rows, 4096}, bf16), array({4096}, bf16)});
    const std::string text = text_of(g);
    CAPTURE(text);
    const std::size_t loop = text.find("PL_NOUNROLL for");
    REQUIRE(loop != std::string::npos);
    const std::string body = text.substr(loop, text.find("\n  }\n", loop) - loop);
    CHECK(body.find("reduce_") == std::string::npos);
    for (const int cc : {80, 90}) CHECK(on_all_targets(g, {}, cc) == "");
  }
}

TEST_CASE("drawn folds of rows, chunk by chunk, are those of plain loops") {
  for_seeds(1, 24, [](std::uint64_t seed) {
    Random random(seed);
    check(Chunks::drawn(random));
  });
}
