#include "palladium/ops/rms_norm.hpp"

#include "runtime/ops/rows.hpp"

namespace palladium::ops {

Kernel rms_norm(RmsNormOptions options) {
  return pallas_call(
      [=](Ref x, Ref weight, Ref o) {
        const Value v = f32(x[_]);
        const Value squares = mean(v * v, {.axis = 1, .keepdims = true});
        o[_] = (v * rsqrt(squares + options.epsilon) * f32(weight[_])).astype(o.dtype());
      },
      [](ShapeDtype x, ShapeDtype weight) {
        require_floats("rms_norm", "x", x);
        const Rows rows(x);
        require_columns("rms_norm", "weight", weight, rows.n);
        return PallasCallOptions{.name = "rms_norm",
                                 .out_type = x,
                                 .grid = rows.grid(),
                                 .in_specs = {rows.blocks(), rows.columns()},
                                 .out_specs = {rows.blocks()},
                                 .compiler_params = {.expect = {.spills = 0}}};
      });
}

}  // namespace palladium::ops
