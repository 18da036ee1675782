// What layers do with the sums of products before they store them.
#include <cmath>

#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {
namespace {

Value product_of(Ref x, Ref w, const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto add = [&, bk = bk](Index l, Value sum) {
    const Slice now = ds(l * bk, bk);
    return sum + dot(x[{_, now}], w[{now, _}]);
  };
  return loop(0, p.k / bk, add, zeros({bm, bn}, f32));
}

BlockSpec rows_of(std::int64_t rows, std::int64_t columns) {
  return {{rows, columns}, [](Index i, Index) { return Indices{i, 0}; }};
}
BlockSpec columns_of(std::int64_t rows, std::int64_t columns) {
  return {{rows, columns}, [](Index, Index j) { return Indices{0, j}; }};
}

}  // namespace

UserKernel projection_rotary(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const std::int64_t half = bn / 2;
  const auto body = [=](Ref x, Ref w, Ref cosines, Ref sines, Ref o) {
    const Value heads = product_of(x, w, p), c = cosines[_], s = sines[_];
    const std::vector<Value> h = split(heads, 2, 1);
    o[_] = concatenate({h[0] * c - h[1] * s, h[1] * c + h[0] * s}, 1).astype(bf16);
  };
  const BlockSpec out{{bm, bn}, [](Index i, Index j) { return Indices{i, j}; }};
  return {pallas_call(body, {.name = "projection_rotary",
                             .out_type = {{p.m, p.n}, bf16},
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {rows_of(bm, p.k), columns_of(p.k, bn), rows_of(bm, half),
                                          rows_of(bm, half)},
                             .out_specs = {out}}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}, {{p.m, half}, f32}, {{p.m, half}, f32}}};
}

UserKernel product_norm(const Sizes& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref x, Ref w, Ref bias, Ref residual, Ref scale, Ref o) {
    const ReduceOptions by_row{.axis = 1, .keepdims = true};
    const Value sums = product_of(x, w, p) + bias[_].astype(f32);
    const Value v = sums * logistic(1.702f * sums) + residual[_].astype(f32);
    const Value centred = v - mean(v, by_row);
    o[_] = (centred * rsqrt(mean(centred * centred, by_row) + 1e-5f) * scale[_].astype(f32))
               .astype(bf16);
  };
  const BlockSpec row = columns_of(1, bn), block{{bm, bn}, [](Index i, Index j) {
                                                   return Indices{i, j};
                                                 }};
  return {pallas_call(body, {.name = "product_norm",
                             .out_type = {{p.m, p.n}, bf16},
                             .grid = {p.m / bm, p.n / bn},
                             .in_specs = {rows_of(bm, p.k), columns_of(p.k, bn), row, block, row},
                             .out_specs = {block},
                             .compiler_params = {.approx_math = true}}),
          {{{p.m, p.k}, bf16},
           {{p.k, p.n}, bf16},
           {{1, p.n}, bf16},
           {{p.m, p.n}, bf16},
           {{1, p.n}, bf16}}};
}

}  // namespace palladium::user_kernels
