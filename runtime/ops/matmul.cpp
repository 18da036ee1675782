#include "palladium/ops/matmul.hpp"

#include "palladium/palladium.hpp"
#include "runtime/ops/arguments.hpp"
#include "runtime/ops/blocks.hpp"

namespace palladium::ops {
namespace {

Call product(const ShapeDtype& a, const ShapeDtype& b, const ShapeDtype* bias,
             MatmulOptions options) {
  const bool turned = options.trans_b;
  check_matmul(a, b, bias, options);
  const Dim m = a.shape[0], k = a.shape[1], n = b.shape[turned ? 0 : 1];
  const DType wide = a.dtype == f64 ? f64 : f32;
  const MatmulBlocks blocks = blocks_of(a.dtype, m, n, k, options);
  const int bm = blocks.m, bn = blocks.n, bk = blocks.k;
  const Length depth = length_of(k, bk);
  const bool any = depth.most > 0;
  const auto body = [=](Ref a, Ref b, Refs bias, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      const Value part = turned ? b[{_, now}] : b[{now, _}];
      return sum + dot(a[{_, now}], part, {.trans_b = turned, .precision = options.precision});
    };
    Value sum = zeros({bm, bn}, wide);
    if (any) sum = loop(0, size_of(cdiv(k, bk)), add, sum);
    if (options.bias) sum = sum + bias[0][_].astype(wide);
    o[_] = activated(sum, options.activation).astype(o.dtype());
  };
  const auto left = [](Index i, Index) { return Indices{i, 0}; };
  const auto right = [=](Index, Index j) { return turned ? Indices{j, 0} : Indices{0, j}; };
  const auto both = [](Index i, Index j) { return Indices{i, j}; };
  PallasCallOptions of{
      .name = "matmul",
      .out_type = {{m, n}, options.out_dtype},
      .grid = {cdiv(m, bm), cdiv(n, bn)},
      .in_specs = {{{bm, depth.all}, left, {.fill = 0}},  // beyond k there are zeros
                   {{turned ? BlockDim(bn) : depth.all, turned ? depth.all : BlockDim(bn)},
                    right,
                    {.fill = 0}}},
      .out_specs = {{{bm, bn}, both}},
      .compiler_params = {.num_stages = blocks.stages,
                          .persistent = blocks.persistent,
                          .split_k = blocks.split_k}};
  if (blocks.are_chosen) of.compiler_params.expect = expected(a.dtype.bytes() == 2 && any);
  if (bias != nullptr) of.in_specs.push_back({{bn}, [](Index, Index j) { return j; }});
  return {body, std::move(of)};
}

}  // namespace

Kernel matmul(MatmulOptions options) {
  if (!options.bias)
    return pallas_call([=](ShapeDtype a, ShapeDtype b) { return product(a, b, nullptr, options); });
  return pallas_call(
      [=](ShapeDtype a, ShapeDtype b, ShapeDtype bias) { return product(a, b, &bias, options); });
}

}  // namespace palladium::ops
