// Kernels whose programs go through several blocks of the result, in loops that they write.
#include "benchmarks/user_kernels/kernels.hpp"

namespace palladium::user_kernels {

using pl::_;

namespace {

CompilerParams one_for_each() { return {.dimension_semantics = {parallel}, .allow_revisit = true}; }

BlockSpec in_memory() { return BlockSpec({.memory_space = plgpu::GMEM}); }

}  // namespace

UserKernel tiles_by_loop(const Sizes& p, int programs) {
  const auto [bm, bn, bk] = p.tile;
  const std::int64_t across = p.n / bn, tiles = p.m / bm * across;
  const auto body = [=](Ref a, Ref b, Ref o) {
    const auto tile = [&](Index number) {
      const Value t = program_id(0) + number * programs;
      const Slice rows = ds(t / across * bm, bm), columns = ds(t % across * bn, bn);
      const auto add = [&](Index l, Value sum) {
        const Slice now = ds(l * bk, bk);
        return sum + dot(a[{rows, now}], b[{now, columns}]);
      };
      o[{rows, columns}] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
    };
    loop(0, cdiv(tiles - program_id(0), programs), tile);
  };
  return {pallas_call(body, {.name = "tiles_by_loop",
                             .out_type = {{p.m, p.n}, bf16},
                             .grid = {programs},
                             .in_specs = {in_memory(), in_memory()},
                             .out_specs = {in_memory()},
                             .compiler_params = one_for_each()}),
          {{{p.m, p.k}, bf16}, {{p.k, p.n}, bf16}}};
}

UserKernel experts_by_loop(const Sizes& p, std::int64_t experts) {
  const auto [bm, bn, bk] = p.tile;
  // starts: [experts + 1], in blocks of rows; a program has a block of columns of each expert.
  const auto body = [=](Ref starts, Ref a, Ref b, Ref o) {
    const Slice columns = ds(program_id(0) * bn, bn);
    const auto expert = [&](Index e) {
      const auto block = [&](Index i) {
        const auto add = [&](Index l, Value sum) {
          const Slice now = ds(l * bk, bk);
          return sum + dot(a[{ds(i * bm, bm), now}], b[{e, now, columns}]);
        };
        o[{ds(i * bm, bm), columns}] = loop(0, p.k / bk, add, zeros({bm, bn}, f32)).astype(bf16);
      };
      loop(starts[e], starts[e + 1], block);
    };
    loop(0, experts, expert);
  };
  return {pallas_call(body, {.name = "experts_by_loop",
                             .out_type = {{p.m, p.n}, bf16},
                             .num_scalar_prefetch = 1,
                             .grid = {p.n / bn},
                             .in_specs = {in_memory(), in_memory()},
                             .out_specs = {in_memory()},
                             .compiler_params = one_for_each()}),
          {{{experts + 1}, i32}, {{p.m, p.k}, bf16}, {{experts, p.k, p.n}, bf16}},
          {{.step = p.m / bm / experts, .below = p.m / bm + 1}}};
}

}  // namespace palladium::user_kernels
