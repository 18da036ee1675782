// Products that stand one behind the other in the text of a kernel, in no loop.
#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {

using pl::_;

UserKernel convolution_taps(const Taps& p) {
  const auto body = [=](Ref x, Ref w, Ref o) {
    const Value image = program_id(0), row = program_id(1);
    Value sum = zeros({p.width, p.filters}, f32);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        sum = sum + dot(x[{image, row + i, ds(j, p.width), _}], w[{i, j, _, _}]);
    o[_] = relu(sum).astype(bf16);
  };
  const BlockSpec whole, rows{{squeezed, squeezed, p.width, p.filters}, [](Index n, Index i) {
                                return Indices{n, i, 0, 0};
                              }};
  return {pallas_call(body, {.name = "convolution_taps",
                             .out_type = {{p.images, p.height, p.width, p.filters}, bf16},
                             .grid = {p.images, p.height},
                             .in_specs = {whole, whole},
                             .out_specs = {rows}}),
          {{{p.images, p.height + 2, p.width + 2, p.channels}, bf16},
           {{3, 3, p.channels, p.filters}, bf16}}};
}

}  // namespace palladium::user_kernels
