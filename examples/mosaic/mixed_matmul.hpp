// A matrix product whose A are bytes: each warpgroup takes its rows of them out of shared memory,
// makes floats of them in registers, and multiplies these by what lies in shared memory.
#pragma once

#include <cstdint>

#include "palladium/palladium.hpp"

namespace mosaic {

struct MixedTile {
  std::int64_t m = 128, n = 128, k = 128;  ///< of a block, and of a step
  int slots = 4;                           ///< steps whose parts are there, or on their way
};

/// c = a.astype(b) @ b, added up in f32: a of i8 is {m, k}, b of f16 or bf16 {k, n}, multiples of
/// the tile.
inline pl::Kernel mixed_matmul(MixedTile t = {}) {
  constexpr int multiplying = 2;

  const auto body = [=](pl::Ref a, pl::Ref b, pl::Ref c, pl::Ref made) {
    const pl::Value wg = pl::axis_index("wg");
    const pl::Value row = pl::axis_index("m"), column = pl::axis_index("n");
    const std::int64_t rows = t.m / multiplying;

    const auto multiply = [=](const std::vector<pl::Value>&, pl::Ref a, pl::Ref b, pl::Ref acc) {
      const pl::Value floats = a[{pl::ds(wg * rows, rows), pl::_}].astype(b.dtype());
      plgpu::wgmma(acc, floats, b);
      plgpu::wgmma_wait(0);
    };

    plgpu::emit_pipeline_warp_specialized(
        multiply, {.grid = {a.shape()[1].value() / t.k},
                   .memory_registers = 40,
                   .in_specs = {pl::BlockSpec{{t.m, t.k},
                                              [=](pl::Index k) {
                                                return pl::Indices{row, k};
                                              }},
                                pl::BlockSpec{{t.k, t.n},
                                              [=](pl::Index k) {
                                                return pl::Indices{k, column};
                                              }}},
                   .max_concurrent_steps = t.slots,
                   .wg_axis = "wg",
                   .num_compute_wgs = multiplying,
                   .compute_context = [&](const plgpu::PipelineRun& pipeline) {
                     const auto run = [&](pl::Ref acc) {
                       pipeline(acc);
                       made[wg] = acc[pl::_].astype(c.dtype());
                     };
                     pl::run_scoped(run, {plgpu::ACC({rows, t.n}, pl::f32)});
                     plgpu::commit_smem();
                     plgpu::copy_smem_to_gmem(
                         made.at(wg),
                         c.at({pl::ds(row * t.m + wg * rows, rows), pl::ds(column * t.n, t.n)}));
                     plgpu::wait_smem_to_gmem(0);
                   }})(a, b);
  };

  return plgpu::kernel(body, [=](pl::ShapeDtype a, pl::ShapeDtype b) {
    const std::int64_t m = a.shape[0].value(), n = b.shape[1].value();
    return plgpu::KernelOptions{
        .name = "mixed_matmul",
        .out_type = {{m, n}, b.dtype},
        .grid = {m / t.m, n / t.n},
        .grid_names = {"m", "n"},
        .num_threads = multiplying + 1,
        .thread_name = "wg",
        .scratch_types = {plgpu::SMEM(
            {multiplying, t.m / multiplying, t.n}, b.dtype,
            {.transforms = {plgpu::TilingTransform({8, 64}), plgpu::SwizzleTransform(128)}})}};
  });
}

}  // namespace mosaic
