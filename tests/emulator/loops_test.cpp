// What leaves the loops that would repeat it is what each of their iterations would have computed.
#include <catch2/catch_test_macros.hpp>

#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

// One program over whole arrays.
graph::Graph whole(const Body& body, std::vector<trace::ArgumentType> in, OutType out) {
  return traced(body, {.name = "whole", .out_type = std::move(out)}, in);
}

// A row of blocks of 64 for each of the first axis; the second, sequential, goes along the row.
graph::Graph along_rows(const Body& body, const ShapeDtype& x, const ShapeDtype& factors) {
  const BlockSpec block{{1, 64}, [](Index i, Index j) { return Indices{i, j}; }};
  const BlockSpec row{{1, 64}, [](Index i, Index) { return Indices{i, 0}; }};
  return traced(body,
                {.name = "along_rows",
                 .out_type = x,
                 .grid = {x.shape[0], cdiv(x.shape[1], 64)},
                 .in_specs = {block, row},
                 .out_specs = {block},
                 .compiler_params = {.dimension_semantics = {parallel, sequential}}},
                {{x, false}, {factors, false}});
}

}  // namespace

TEST_CASE("factors that a loop loads in each iteration are those that were there before it") {
  for (const DType t : {f32, f16, i32}) {
    CAPTURE(t.name());
    CHECK(on_all_targets(whole(
              [](Ref x, Ref factors, Ref o) {
                Value sum = loop(
                    0, 8,
                    [&](Value i, Value sum) {
                      Value f = factors[_];
                      Value square = f * f;
                      return Value(sum + square * x[{i, _}]);
                    },
                    full({300}, 0, x.dtype()));
                o[_] = sum;
              },
              {array({8, 300}, t), array({300}, t)}, ShapeDtype{{300}, t})) == "");
  }
}

TEST_CASE("a loop of no iteration reads nothing, whatever stands in it") {
  for (const int iterations : {0, 1, 3})
    CHECK(on_all_targets(whole(
              [=](Ref x, Ref places, Ref o) {
                o[_] = full({64}, 0, f32);
                // The second place lies outside of x and no iteration comes to it.
                Value outside = max(places[_]) + 100;
                loop(0, outside * 0 + iterations, [&](Value) {
                  o[_] = exp(x[{0, _}]) + max(x[{1, _}]) * 2;
                  when(outside < 0, [&] { o[_] = x[{outside, _}]; });
                });
              },
              {array({8, 64}), array({4}, i32)}, ShapeDtype{{64}, f32})) == "");
}

TEST_CASE("a row of factors is loaded before the sequential axis that goes along it") {
  const Body body = [](Ref x, Ref factors, Ref o) {
    Value f = exp(factors[_]);
    o[_] = x[_] * f + sum(factors[_]);
  };
  CHECK(on_all_targets(along_rows(body, {{3, 512}, f32}, {{3, 64}, f32})) == "");
  CHECK(on_all_targets(along_rows(body, {{3, 500}, f32}, {{3, 50}, f32})) == "");
  CHECK(on_all_targets(along_rows(body, {{dim("m"), dim("n")}, f16}, {{dim("m"), 64}, f16}),
                       {5, 321}, 80) == "");
}

TEST_CASE("an operand is staged once for loops of products, one behind the other and nested") {
  CHECK(on_all_targets(whole(
            [](Ref a, Ref b, Ref o) {
              Value left = a[_] * 2;
              Value zeros = full({32, 48}, 0, f32);
              Value first = loop(
                  0, 3,
                  [&](Value i, Value sum) {
                    return sum + dot(left, b[{i, _, _}]);
                  },
                  zeros);
              Value second = loop(
                  0, 2,
                  [&](Value i, Value sum) {
                    return loop(
                        0, 2,
                        [&](Value j, Value sum) {
                          return sum + dot(left, b[{i + j, _, _}]);
                        },
                        sum);
                  },
                  zeros);
              o[_] = first - second;
            },
            {array({32, 40}, f16), array({3, 40, 48}, f16)}, ShapeDtype{{32, 48}, f32})) == "");
}

TEST_CASE("an operand that is staged under a condition is there again behind it") {
  for (const int iterations : {0, 2})
    CHECK(on_all_targets(whole(
              [=](Ref a, Ref b, Ref o) {
                Value left = a[_];
                o[_] = full({32, 32}, 0, f32);
                const auto add = [&](Value i) { o[_] = o[_] + dot(left, b[{i, _, _}]); };
                when(b[{0, 0, 0}] > 1000, [&] { loop(0, 2, add); });
                loop(0, iterations, add);
              },
              {array({32, 32}, f16), array({2, 32, 32}, f16)}, ShapeDtype{{32, 32}, f32})) == "");
}

TEST_CASE("stores of a loop that overlap come in the order of its iterations") {
  for (const std::int64_t step : {1, 3, 32, 64})
    CHECK(on_all_targets(whole(
              [=](Ref x, Ref o) {
                loop(0, 8, {}, [&](Value i) { o[{pl::ds(i * step, 64)}] = x[{i, _}]; });
              },
              {array({8, 64}, f32)}, ShapeDtype{{7 * step + 64}, f32})) == "");
}

TEST_CASE("blocks that overlap are stored in the order of the axis that goes through them") {
  for (const Space space : {Space::automatic, Space::smem})
    for (const std::int64_t step : {3, 8, 96}) {
      CAPTURE(step, static_cast<int>(space));
      const BlockSpec overlapping{
          {Element(96)}, [=](Index i) { return i * step; }, {.memory_space = {space}}};
      CHECK(on_all_targets(traced([](Ref x, Ref o) { o[_] = x[_]; },
                                  {.name = "overlapping",
                                   .out_type = ShapeDtype{{7 * step + 96}, f32},
                                   .grid = {8},
                                   .in_specs = {BlockSpec{{pl::squeezed, 96},
                                                          [](Index i) {
                                                            return Indices{i, 0};
                                                          }}},
                                   .out_specs = {overlapping},
                                   .compiler_params = {.dimension_semantics = {sequential}}},
                                  {array({8, 96}, f32)})) == "");
    }
}
