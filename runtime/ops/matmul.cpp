#include "palladium/ops/matmul.hpp"

#include "palladium/palladium.hpp"

namespace palladium::ops {

Kernel matmul() {
  constexpr int bm = 64, bn = 64, bk = 32;
  return pallas_call([](ShapeDtype a, ShapeDtype b) {
    const auto [m, columns] = a.shape.unpack<2>();
    const auto [rows, width] = b.shape.unpack<2>();
    const std::int64_t k = columns, n = width;
    if (k != rows)
      throw CompileError("matmul: a has " + std::to_string(k) + " columns and b has " +
                         std::to_string(rows.value()) + " rows; as many of both are needed");
    // The output block stays while the last grid axis walks along k, so that axis is sequential.
    auto body = [=](Ref a, Ref b, Ref o) {
      when(program_id(2) == 0, [&] { o[_] = zeros({bm, bn}, f32); });
      Value x = a[_], y = b[_];
      if (k % bk != 0) {  // beyond k there is nothing, and nothing is not 0
        const Value left = k - program_id(2) * bk;
        x = where(iota(i32, {bm, bk}, 1) < left, x, 0);
        y = where(iota(i32, {bk, bn}, 0) < left, y, 0);
      }
      o[_] += dot(x, y);
    };
    return Call{body,
                {.name = "matmul",
                 .out_type = {{m, n}, f32},
                 .grid = {cdiv(m, bm), cdiv(n, bn), cdiv(k, bk)},
                 .in_specs = {{{bm, bk},
                               [](Index i, Index, Index l) {
                                 return Indices{i, l};
                               }},
                              {{bk, bn},
                               [](Index, Index j, Index l) {
                                 return Indices{l, j};
                               }}},
                 .out_specs = {{{bm, bn}, [](Index i, Index j, Index) {
                                  return Indices{i, j};
                                }}}}};
  });
}

}  // namespace palladium::ops
