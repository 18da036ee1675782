#include "palladium/ops/matmul.hpp"

#include "palladium/palladium.hpp"

namespace palladium::ops {
namespace {

Value activated(const Value& x, Activation activation) {
  if (activation == Activation::relu) return relu(x);
  if (activation == Activation::gelu) return gelu(x);
  return activation == Activation::silu ? silu(x) : x;
}

Call product(const ShapeDtype& a, const ShapeDtype& b, const ShapeDtype* bias,
             MatmulOptions options) {
  const auto [m, columns] = a.shape.unpack<2>();
  const auto [rows, n] = b.shape.unpack<2>();
  if (columns != rows)
    throw CompileError("matmul: a has " + std::to_string(columns.value()) + " columns and b has " +
                       std::to_string(rows.value()) + " rows; as many of both are needed");
  if (!options.out_dtype.is_float())
    throw CompileError(std::string("matmul: out_dtype is ") + options.out_dtype.name() +
                       "; a float is needed");
  const DType wide = a.dtype == f64 ? f64 : f32;
  // What tensor cores multiply in larger blocks is read less often.
  const bool large = a.dtype.bytes() <= 2;
  const int bm = large ? 128 : 64, bn = bm, bk = large ? 64 : 32;
  const std::int64_t k = columns, steps = cdiv(k, bk), depth = steps * bk + (k == 0);
  const auto body = [=](Ref a, Ref b, Refs bias, Ref o) {
    const auto add = [&](Index l, Value sum) {
      return sum + dot(a[{_, ds(l * bk, bk)}], b[{ds(l * bk, bk), _}]);
    };
    Value sum = zeros({bm, bn}, wide);
    if (k > 0) sum = loop(0, steps, add, sum);
    if (options.bias) sum = sum + bias[0][_].astype(wide);
    o[_] = activated(sum, options.activation).astype(o.dtype());
  };
  const auto left = [](Index i, Index) { return Indices{i, 0}; };
  const auto right = [](Index, Index j) { return Indices{0, j}; };
  const auto both = [](Index i, Index j) { return Indices{i, j}; };
  PallasCallOptions of{.name = "matmul",
                       .out_type = {{m, n}, options.out_dtype},
                       .grid = {cdiv(m, bm), cdiv(n, bn)},
                       .in_specs = {{{bm, depth}, left, {.fill = 0}},  // beyond k there are zeros
                                    {{depth, bn}, right, {.fill = 0}}},
                       .out_specs = {{{bm, bn}, both}}};
  if (bias != nullptr) {
    require_equal(bias->shape.unpack<1>()[0], n);
    of.in_specs.push_back({{bn}, [](Index, Index j) { return j; }});
  }
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
