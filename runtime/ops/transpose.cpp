#include "palladium/ops/transpose.hpp"

#include "palladium/palladium.hpp"

namespace palladium::ops {

Kernel transpose() {
  return pallas_call(
      [](Ref x, Ref o) { o[_] = palladium::transpose(x[_]); },
      [](ShapeDtype x) {
        constexpr int side = 64;
        const auto [m, n] = x.shape.unpack<2>();
        const BlockSpec tile{{side, side}, [](Index i, Index j) { return Indices{i, j}; }};
        const BlockSpec turned{{side, side}, [](Index i, Index j) { return Indices{j, i}; }};
        return PallasCallOptions{.name = "transpose",
                                 .out_type = {{n, m}, x.dtype},
                                 .grid = {cdiv(m, side), cdiv(n, side)},
                                 .in_specs = {tile},
                                 .out_specs = {turned},
                                 .compiler_params = {.expect = {.spills = 0}}};
      });
}

}  // namespace palladium::ops
