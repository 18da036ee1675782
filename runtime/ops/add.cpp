#include "palladium/ops/add.hpp"

#include "palladium/palladium.hpp"

namespace palladium::ops {

Kernel add() {
  constexpr int block = 1024;
  return pallas_call([](Ref x, Ref y, Ref o) { o[_] = x[_] + y[_]; },
                     [](ShapeDtype x, ShapeDtype y) {
                       require_equal(x, y);
                       const auto [n] = x.shape.unpack<1>();
                       const BlockSpec piece{{block}, [](Index i) { return i; }};
                       return PallasCallOptions{.name = "add",
                                                .out_type = x,
                                                .grid = {cdiv(n, block)},
                                                .in_specs = {piece, piece},
                                                .out_specs = {piece},
                                                .compiler_params = {.expect = {.spills = 0}}};
                     });
}

}  // namespace palladium::ops
