#include "palladium/ops/blur.hpp"

#include "palladium/palladium.hpp"

namespace palladium::ops {

Kernel blur() {
  constexpr int rows = 16, columns = 64, radius = 2;
  return pallas_call([](ShapeDtype image) {
    if (image.dtype != u8)
      throw CompileError(std::string("blur: the image is of ") + image.dtype.name() +
                         "; u8 is needed");
    const auto [height, width] = image.shape.unpack<2>();
    auto body = [=](Ref x, Ref o) {
      const Value row = iota(i32, {rows, columns}, 0) + program_id(0) * rows;
      const Value column = iota(i32, {rows, columns}, 1) + program_id(1) * columns;
      Value total = zeros({rows, columns}, i32), count = zeros({rows, columns}, i32);
      for (int dy = -radius; dy <= radius; ++dy)
        for (int dx = -radius; dx <= radius; ++dx) {
          const Value inside =
              (row + dy >= 0) & (row + dy < height) & (column + dx >= 0) & (column + dx < width);
          const Value tap = i32(x[{ds(radius + dy, rows), ds(radius + dx, columns)}]);
          total += where(inside, tap, 0);
          count += where(inside, 1, 0);
        }
      o[_] = u8((total + count / 2) / count);
    };
    const Padding halo{radius, radius};
    return Call{
        body,
        {.name = "blur",
         .out_type = image,
         .grid = {cdiv(height, rows), cdiv(width, columns)},
         .in_specs = {{{Element(rows + 2 * radius, halo), Element(columns + 2 * radius, halo)},
                       [](Index i, Index j) {
                         return Indices{i * rows, j * columns};
                       }}},
         .out_specs = {{{rows, columns},
                        [](Index i, Index j) {
                          return Indices{i, j};
                        }}},
         .compiler_params = {.expect = {.spills = 0}}}};
  });
}

}  // namespace palladium::ops
