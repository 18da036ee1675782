// A product as kernels on pointers have it: whole arrays, and masks where blocks are beyond them.
#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {

UserKernel masked_matmul(const MaskedMatmul& p) {
  const auto [bm, bn, bk] = p.tile;
  const auto body = [=](Ref a, Ref b, Ref o) {
    const Value m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
    const Value first = program_id(0) * bm, left = program_id(1) * bn;
    const Value row = iota(i32, {bm, 1}, 0) + first, column = iota(i32, {1, bn}, 1) + left;
    const auto add = [&](Index l, Value sum) {
      const Value at = l * bk, along_a = iota(i32, {1, bk}, 1) + at,
                  along_b = iota(i32, {bk, 1}, 0) + at;
      const Value x =
          load(a.at({ds(first, bm), ds(at, bk)}), {.mask = (row < m) & (along_a < k), .other = 0});
      const Value y = load(b.at({ds(at, bk), ds(left, bn)}),
                           {.mask = (along_b < k) & (column < n), .other = 0});
      return sum + dot(x, y);
    };
    const Value sum = loop(0, cdiv(k, bk), add, zeros({bm, bn}, f32));
    store(o.at({ds(first, bm), ds(left, bn)}), sum.astype(bf16),
          {.mask = (row < m) & (column < n)});
  };
  return {pallas_call(body, {.name = "masked_matmul",
                             .out_type = {{p.m, p.n}, bf16},
                             .grid = {cdiv(p.m, bm), cdiv(p.n, bn)},
                             .compiler_params = {.dimension_semantics = {parallel, parallel},
                                                 .allow_revisit = true}}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}}};
}

}  // namespace palladium::user_kernels
