// A matrix product in the language of warpgroups: one of them copies tiles of A and B to a ring of
// slots in shared memory, two multiply what is there, half of the rows each.
#pragma once

#include "palladium/palladium.hpp"

namespace mosaic {

struct MatmulTile {
  std::int64_t m = 128, n = 256, k = 64;  ///< of a block, and of a step
  int slots = 3;  ///< of the ring: steps whose tiles are there, or on their way
};

/// c = a @ b of f16 or bf16, added up in f32: a is {m, k} and b {k, n}, multiples of the tile.
inline pl::Kernel matmul(MatmulTile t = {}) {
  constexpr int multiplying = 2, copying = multiplying;  // warpgroups 0 and 1; warpgroup 2

  const auto body = [=](pl::Ref a, pl::Ref b, pl::Ref c, pl::Ref a_smem, pl::Ref b_smem,
                        pl::Ref c_smem, pl::Ref full, pl::Ref empty) {
    const pl::Value wg = pl::axis_index("wg");
    const pl::Value row = pl::axis_index("m") * t.m, column = pl::axis_index("n") * t.n;
    const std::int64_t steps = a.shape()[1].value() / t.k, rows = t.m / multiplying;

    pl::when(wg == copying, [&] {
      pl::loop(0, steps, [&](pl::Index step) {
        const pl::Value slot = step % t.slots;
        // The first time a slot is free.
        pl::when(step >= t.slots, [&] { plgpu::barrier_wait(empty.at(slot)); });
        plgpu::copy_gmem_to_smem(a.at({pl::ds(row, t.m), pl::ds(step * t.k, t.k)}), a_smem.at(slot),
                                 full.at(slot));
        plgpu::copy_gmem_to_smem(b.at({pl::ds(step * t.k, t.k), pl::ds(column, t.n)}),
                                 b_smem.at(slot), full.at(slot));
      });
    });

    pl::when(wg != copying, [&] {
      const auto multiply = [&](pl::Ref acc) {
        pl::loop(0, steps, [&](pl::Index step) {
          const pl::Value slot = step % t.slots;
          plgpu::barrier_wait(full.at(slot));
          plgpu::wgmma(acc, a_smem.at({slot, pl::ds(wg * rows, rows), pl::_}), b_smem.at(slot));
          // This product goes on; the one before it has read its slot, which is filled again
          // unless there are no more tiles.
          plgpu::wgmma_wait(1);
          pl::when((step >= 1) & (step + (t.slots - 1) < steps),
                   [&] { plgpu::barrier_arrive(empty.at((step - 1) % t.slots)); });
        });
        c_smem[wg] = acc[pl::_].astype(c.dtype());
      };
      pl::run_scoped(multiply, {plgpu::ACC({rows, t.n}, pl::f32)});
      plgpu::commit_smem();
      plgpu::copy_smem_to_gmem(c_smem.at(wg),
                               c.at({pl::ds(row + wg * rows, rows), pl::ds(column, t.n)}));
      plgpu::wait_smem_to_gmem(0);
    });
  };

  return plgpu::kernel(body, [=](pl::ShapeDtype a, pl::ShapeDtype b) {
    const std::int64_t m = a.shape[0].value(), n = b.shape[1].value();
    return plgpu::KernelOptions{
        .name = "matmul",
        .out_type = {{m, n}, a.dtype},
        .grid = {m / t.m, n / t.n},
        .grid_names = {"m", "n"},
        .num_threads = multiplying + 1,
        .thread_name = "wg",
        .scratch_types = {
            plgpu::SMEM({t.slots, t.m, t.k}, a.dtype), plgpu::SMEM({t.slots, t.k, t.n}, a.dtype),
            plgpu::SMEM(
                {multiplying, t.m / multiplying, t.n}, a.dtype,
                {.transforms = {plgpu::TilingTransform({8, 64}), plgpu::SwizzleTransform(128)}}),
            plgpu::Barrier({.num_arrivals = 2, .num_barriers = t.slots}),
            plgpu::Barrier({.num_arrivals = multiplying, .num_barriers = t.slots})}};
  });
}

}  // namespace mosaic
