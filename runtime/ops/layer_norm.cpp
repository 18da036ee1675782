#include "palladium/ops/layer_norm.hpp"

#include "runtime/ops/rows.hpp"

namespace palladium::ops {

Kernel layer_norm(LayerNormOptions options) {
  const auto body = [=](Ref x, Ref weight, Refs bias, Ref o) {
    const Value v = f32(x[_]);
    const Value centred = v - mean(v, {.axis = 1, .keepdims = true});
    const Value variance = mean(centred * centred, {.axis = 1, .keepdims = true});
    Value y = centred * rsqrt(variance + options.epsilon) * f32(weight[_]);
    if (options.bias) y = y + f32(bias[0][_]);
    o[_] = y.astype(o.dtype());
  };
  const auto call = [=](const ShapeDtype& x, std::initializer_list<ShapeDtype> columns) {
    require_floats("layer_norm", "x", x);
    const Rows rows(x);
    PallasCallOptions of{.name = "layer_norm",
                         .out_type = x,
                         .grid = rows.grid(),
                         .in_specs = {rows.blocks()},
                         .out_specs = {rows.blocks()},
                         .compiler_params = {.expect = {.spills = 0}}};
    const char* names[] = {"weight", "bias"};
    for (const ShapeDtype& c : columns) {
      require_columns("layer_norm", names[of.in_specs.size() - 1], c, rows.n);
      of.in_specs.push_back(rows.columns());
    }
    return Call{body, std::move(of)};
  };
  if (!options.bias)
    return pallas_call([=](ShapeDtype x, ShapeDtype weight) { return call(x, {weight}); });
  return pallas_call([=](ShapeDtype x, ShapeDtype weight, ShapeDtype bias) {
    return call(x, {weight, bias});
  });
}

}  // namespace palladium::ops
