#include "palladium/ops/blur.hpp"

#include "palladium/palladium.hpp"
#include "runtime/ops/arguments.hpp"

namespace palladium::ops {

Kernel blur() {
  constexpr int rows = 16, columns = 64, radius = 2;
  return pallas_call([](ShapeDtype image) {
    if (image.dtype != u8)
      throw CompileError(std::string("blur: the image is of ") + image.dtype.name() +
                         "; u8 is needed");
    const auto [m, n] = image.shape.unpack<2>();
    auto body = [=](Ref x, Ref o) {
      const Value height = size_of(image.shape[0]), width = size_of(image.shape[1]);
      const Value top = program_id(0) * rows, left = program_id(1) * columns;
      Value total = zeros({rows, columns}, i32);
      for (int dy = -radius; dy <= radius; ++dy)
        for (int dx = -radius; dx <= radius; ++dx)
          total += i32(x[{ds(radius + dy, rows), ds(radius + dx, columns)}]);
      // As many pixels as are in the image, of which there are all but at its border.
      constexpr int side = 2 * radius + 1, all = side * side;
      const auto inside = [](const Value& first, const Value& size, int block) {
        return (first >= radius) & (first + (block + radius) <= size);
      };
      const auto count = [](const Value& at, const Value& size) {
        return minimum(at + radius, size - 1) - maximum(at - radius, 0) + 1;
      };
      const Value is_inside = inside(top, height, rows) & inside(left, width, columns);
      when(is_inside, [&] { o[_] = u8((total + all / 2) / all); });
      when(!is_inside, [&] {
        const Value taps = count(iota(i32, {rows, 1}, 0) + top, height) *
                           count(iota(i32, {1, columns}, 1) + left, width);
        o[_] = u8((total + taps / 2) / taps);
      });
    };
    const Padding halo{radius, radius};
    return Call{
        body,
        {.name = "blur",
         .out_type = image,
         .grid = {cdiv(m, rows), cdiv(n, columns)},
         .in_specs = {{{Element(rows + 2 * radius, halo), Element(columns + 2 * radius, halo)},
                       [](Index i, Index j) {
                         return Indices{i * rows, j * columns};
                       },
                       {.fill = 0}}},
         .out_specs = {{{rows, columns},
                        [](Index i, Index j) {
                          return Indices{i, j};
                        }}},
         .compiler_params = {.expect = {.spills = 0}}}};
  });
}

}  // namespace palladium::ops
