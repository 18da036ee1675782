// A matrix product in the language of warpgroups. As many blocks as there are multiprocessors go
// over the tiles of the result in strips, so that blocks that run together read the same parts of A
// and B. In each block one warpgroup copies ahead, across tiles too, two multiply, half of the rows
// each, and what they have made is on its way while they multiply for the next tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "palladium/palladium.hpp"

namespace mosaic {

struct MatmulTile {
  std::int64_t m = 128, n = 256, k = 64;  ///< of a block, and of a step
  int slots = 3;                          ///< steps whose parts are there, or on their way
  int strip = 8;                          ///< rows of tiles that follow one another
  std::int64_t blocks = 132;              ///< at most: no more than there are tiles
};

/// c = a @ b of f16 or bf16, added up in f32: a is {m, k} and b {k, n}, multiples of the tile.
inline pl::Kernel matmul(MatmulTile t = {}) {
  constexpr int multiplying = 2;

  const auto body = [=](pl::Ref a, pl::Ref b, pl::Ref c, pl::Ref made) {
    const pl::Value wg = pl::axis_index("wg");
    const std::int64_t rows = t.m / multiplying;
    const std::int64_t steps = a.shape()[1].value() / t.k;
    const std::int64_t down = c.shape()[0].value() / t.m, across = c.shape()[1].value() / t.n;

    // The product of a step goes on when its body ends; that of the step before is over.
    const auto multiply = [=](const std::vector<pl::Value>&, pl::Ref a, pl::Ref b, pl::Ref acc) {
      plgpu::wgmma(acc, a.at({pl::ds(wg * rows, rows), pl::_}), b);
      plgpu::wgmma_wait(1);
    };

    // c[row.., column..] = acc, which is on its way while the next product is made.
    const auto send = [=](const pl::Ref& acc, const pl::Value& row, const pl::Value& column) {
      plgpu::wait_smem_to_gmem(0, {.wait_read_only = true});
      made[wg] = acc[pl::_].astype(c.dtype());
      plgpu::commit_smem();
      plgpu::copy_smem_to_gmem(made.at(wg),
                               c.at({pl::ds(row + wg * rows, rows), pl::ds(column, t.n)}));
    };

    const auto product = [&](const pl::Value& i, const pl::Value& j, pl::MaybeValue state) {
      const auto across_k = [=](pl::Index k) { return pl::Indices{i, k}; };
      const auto down_k = [=](pl::Index k) { return pl::Indices{k, j}; };
      const auto compute = [=](const plgpu::PipelineRun& pipeline) {
        const auto run = [&](pl::Ref acc) {
          pipeline(acc);
          send(acc, i * t.m, j * t.n);
        };
        pl::run_scoped(run, {plgpu::ACC({rows, t.n}, pl::f32)});
      };
      return plgpu::emit_pipeline_warp_specialized(
          multiply, {.grid = {steps},
                     .in_specs = {pl::BlockSpec{{t.m, t.k}, across_k, {.delay_release = 1}},
                                  pl::BlockSpec{{t.k, t.n}, down_k, {.delay_release = 1}}},
                     .max_concurrent_steps = t.slots,
                     .wg_axis = "wg",
                     .num_compute_wgs = multiplying,
                     .pipeline_state = state,
                     .compute_context = compute});
    };

    const plgpu::PipelineAllocations rooms = product(0, 0, {}).get_allocations(a, b);
    plgpu::nd_loop({down * across}, {.collective_axes = {"sm"}}, [&](const plgpu::NDLoopInfo& it) {
      using Of = plgpu::PipelinePipeline;
      const auto [i, j] = plgpu::planar_snake(it.index[0], {down, across}, 0, t.strip);
      const pl::Value is_last = it.local_index == it.num_local_steps - 1;
      const pl::Value state =
          pl::where(it.local_index == 0, pl::where(is_last, Of::ALONE, Of::START),
                    pl::where(is_last, Of::STOP, Of::STEADY));
      product(i, j, state)(rooms, a, b);
    });
    pl::when(wg < multiplying, [&] { plgpu::wait_smem_to_gmem(0); });
  };

  return plgpu::kernel(body, [=](pl::ShapeDtype a, pl::ShapeDtype b) {
    const std::int64_t m = a.shape[0].value(), n = b.shape[1].value();
    return plgpu::KernelOptions{
        .name = "matmul",
        .out_type = {{m, n}, a.dtype},
        .grid = {std::min(t.blocks, m / t.m * (n / t.n))},
        .grid_names = {"sm"},
        .num_threads = multiplying + 1,
        .thread_name = "wg",
        .scratch_types = {plgpu::SMEM(
            {multiplying, t.m / multiplying, t.n}, a.dtype,
            {.transforms = {plgpu::TilingTransform({8, 64}), plgpu::SwizzleTransform(128)}})}};
  });
}

}  // namespace mosaic
