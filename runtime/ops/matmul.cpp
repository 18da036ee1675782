#include "palladium/ops/matmul.hpp"

#include <algorithm>

#include "palladium/palladium.hpp"
#include "runtime/ops/arguments.hpp"

namespace palladium::ops {
namespace {

Value activated(const Value& x, Activation activation) {
  if (activation == Activation::relu) return relu(x);
  if (activation == Activation::gelu) return gelu(x);
  return activation == Activation::silu ? silu(x) : x;
}

Call product(const ShapeDtype& a, const ShapeDtype& b, const ShapeDtype* bias,
             MatmulOptions options) {
  const bool turned = options.trans_b;
  check_matmul(a, b, bias, options);
  const Dim m = a.shape[0], n = b.shape[turned ? 0 : 1];
  const DType wide = a.dtype == f64 ? f64 : f32;
  // Tensor cores get larger blocks, read less often; one is stored while the next one is fetched.
  const bool large = a.dtype.bytes() <= 2 || options.precision == tf32;
  const bool along_k = turned && a.dtype.bytes() == 1;  // a row has 128 bytes
  const int bm = large ? 128 : 64, bn = bm, bk = along_k ? 128 : a.dtype.bytes() <= 2 ? 64 : 32;
  // One kernel serves all lengths up to a power of two.
  constexpr std::int64_t shortest = 4096;
  const Dim k = a.shape[1];
  const std::int64_t most = k.is_static() ? k.value() : size_class(k, shortest);
  const BlockDim depth = k.is_static() ? BlockDim(align_to(most, bk) + (most == 0))
                                       : bounded(k, std::max<std::int64_t>(most, 1));
  const auto body = [=](Ref a, Ref b, Refs bias, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * bk, bk);
      const Value part = turned ? b[{_, now}] : b[{now, _}];
      return sum + dot(a[{_, now}], part, {.trans_b = turned, .precision = options.precision});
    };
    const Value none = zeros({bm, bn}, wide);
    Value sum = most > 0 ? loop(0, size_of(cdiv(k, bk)), add, none) : none;
    if (options.bias) sum = sum + bias[0][_].astype(wide);
    o[_] = activated(sum, options.activation).astype(o.dtype());
  };
  const BlockDim columns = bn;
  const auto left = [](Index i, Index) { return Indices{i, 0}; };
  const auto right = [=](Index, Index j) { return turned ? Indices{j, 0} : Indices{0, j}; };
  const auto both = [](Index i, Index j) { return Indices{i, j}; };
  PallasCallOptions of{
      .name = "matmul",
      .out_type = {{m, n}, options.out_dtype},
      .grid = {cdiv(m, bm), cdiv(n, bn)},
      .in_specs = {{{bm, depth}, left, {.fill = 0}},  // beyond k there are zeros
                   {{turned ? columns : depth, turned ? depth : columns}, right, {.fill = 0}}},
      .out_specs = {{{bm, bn}, both}},
      .compiler_params = {.persistent = large,
                          .expect = expected(a.dtype.bytes() == 2 && most > 0)}};
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
