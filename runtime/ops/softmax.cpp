#include "palladium/ops/softmax.hpp"

#include "runtime/ops/rows.hpp"

namespace palladium::ops {

Kernel softmax() {
  return pallas_call(
      [](Ref x, Ref o) {
        Value v = f32(x[_]);
        Value e = exp(v - max(v, {.axis = 1, .keepdims = true}));
        o[_] = (e / sum(e, {.axis = 1, .keepdims = true})).astype(o.dtype());
      },
      [](ShapeDtype x) {
        require_floats("softmax", "x", x);
        const Rows rows(x);
        return PallasCallOptions{.name = "softmax",
                                 .out_type = x,
                                 .grid = rows.grid(),
                                 .in_specs = {rows.blocks()},
                                 .out_specs = {rows.blocks()},
                                 .compiler_params = {.expect = {.spills = 0}}};
      });
}

}  // namespace palladium::ops
