// Kernels that mix what the others try one by one: odd tiles, several dtypes, sums of two kinds.
#include <catch2/catch_test_macros.hpp>

#include "tests/user_kernels/along_k.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

constexpr std::int64_t steps = 5;

// A decaying sum in the output, beside a row of biases and a column of gates of the step.
graph::Graph decaying() {
  const auto body = [](Ref x, Ref w, Ref bias, Ref gate, Ref o) {
    const Value k = program_id(1);
    when(k == 0, [&] { o[_] = pl::full({96, 80}, 0.5f, f32); });
    o[_] = dot(x[_], w[_]) + o[_] * 0.5f;
    o[_] += bias[_] * gate[_].astype(f32);
  };
  return traced(body,
                {.name = "decaying",
                 .out_type = ShapeDtype{{150, 80}, f32},
                 .grid = {2, steps},
                 .in_specs = {{{96, 48},
                               [](Index i, Index k) {
                                 return Indices{i, k};
                               }},
                              {{48, 80},
                               [](Index, Index k) {
                                 return Indices{k, 0};
                               }},
                              {{1, 80},
                               [](Index, Index k) {
                                 return Indices{k, 0};
                               }},
                              {{96, 1},
                               [](Index i, Index) {
                                 return Indices{i, 0};
                               }}},
                 .out_specs = {{{96, 80},
                                [](Index i, Index) {
                                  return Indices{i, 0};
                                }}}},
                {array({150, 48 * steps}, f16), array({48 * steps, 80}, f16),
                 array({steps, 80}, f32), array({150, 1}, i8)});
}

// Weights of 8 bits with a scale for each group of K and column, both sums in shared memory.
graph::Graph quantised() {
  const auto body = [](Ref x, Ref w, Ref scale, Ref o, Ref low, Ref high) {
    const Value k = program_id(1);
    when(k == 0, [&] { low[_] = pl::zeros({64, 192}, f32); });
    when(k == 0, [&] { high[_] = pl::zeros({64, 192}, f32); });
    const Value rows = x[_];
    const Value weights = (w[_].astype(f32) * scale[_]).astype(bf16);
    low[_] += dot(rows, weights);
    high[_] = pl::maximum(high[_], dot(rows, w[_].astype(bf16)));
    when(k + 1 == pl::num_programs(1), [&] { o[_] = (low[_] - high[_]).astype(bf16); });
  };
  const auto along_k = [](Index, Index k) { return Indices{k, 0}; };
  return traced(
      body,
      {.name = "quantised",
       .out_type = ShapeDtype{{128, 192}, bf16},
       .grid = {2, steps},
       .in_specs = {{{64, 32},
                     [](Index i, Index k) {
                       return Indices{i, k};
                     }},
                    {{32, 192}, along_k},
                    {{1, 192}, along_k}},
       .out_specs = {{{64, 192},
                      [](Index i, Index) {
                        return Indices{i, 0};
                      }}},
       .scratch_shapes = {gpu::SMEM({64, 192}, f32), gpu::SMEM({64, 192}, f32)}},
      {array({128, 32 * steps}, bf16), array({32 * steps, 192}, i8), array({steps, 192}, f32)});
}

// From a computed number on, blocks of one array on both sides, scaled by rows that the table
// chooses, in persistent blocks.
graph::Graph gathered() {
  const auto body = [](Ref table, Ref x, Ref rows, Ref o) {
    const auto step = [&](Index l, Value sum) {
      const Value block = x[{ds(pl::remainder(table[l], static_cast<int>(steps)) * 64, 64), _}];
      const Value scaled = sum * rows[{ds(l, 1), _}];
      return scaled + dot(block, block, {.trans_b = true}) +
             dot(block, x[{ds(l * 64, 64), _}], {.trans_b = true});
    };
    o[_] = loop(program_id(0), steps, step, pl::zeros({64, 64}, f32)).astype(f16);
  };
  const auto whole = [](Index) { return Indices{0, 0}; };
  return traced(body,
                {.name = "gathered",
                 .out_type = ShapeDtype{{64 * 7, 64}, f16},
                 .grid = {7},
                 .in_specs = {{{steps}, [](Index) { return Indices{0}; }},
                              {{64 * steps, 48}, whole},
                              {{steps, 64}, whole}},
                 .out_specs = {{{64, 64},
                                [](Index i) {
                                  return Indices{i, 0};
                                }}},
                 .compiler_params = {.persistent = true}},
                {array({steps}, i32), array({64 * steps, 48}, f16), array({steps, 64}, f32)});
}

}  // namespace

TEST_CASE("mixed kernels agree on every target") {
  for (const int cc : {80, 90}) {
    CAPTURE(cc);
    CHECK(problem_of(decaying(), {}, cc) == "");
    CHECK(problem_of(quantised(), {}, cc) == "");
    CHECK(problem_of(gathered(), {}, cc) == "");
  }
}
