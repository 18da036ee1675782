#include "palladium/ops/softmax.hpp"

#include "palladium/palladium.hpp"

namespace palladium::ops {

Kernel softmax() {
  return pallas_call(
      [](Ref x, Ref o) {
        Value v = f32(x[_]);
        Value e = exp(v - max(v, {.axis = 1, .keepdims = true}));
        o[_] = (e / sum(e, {.axis = 1, .keepdims = true})).astype(o.dtype());
      },
      [](ShapeDtype x) {
        if (!x.dtype.is_float())
          throw CompileError(std::string("softmax: x is of ") + x.dtype.name() +
                             "; floats are needed");
        const auto [m, n] = x.shape.unpack<2>();
        const BlockSpec row{{1, n}, [](Index i) { return Indices{i, 0}; }};
        return PallasCallOptions{
            .name = "softmax", .out_type = x, .grid = {m}, .in_specs = {row}, .out_specs = {row}};
      });
}

}  // namespace palladium::ops
