// Attention forward in FlashAttention-3's form: a warpgroup copies blocks of K and V ahead of two
// that have 64 queries each. While one of these multiplies, the other goes through its softmax:
// they take turns at a barrier.
#pragma once

#include <cmath>
#include <cstdint>

#include "palladium/palladium.hpp"

namespace mosaic {

struct AttentionTile {
  std::int64_t kv = 128;  ///< keys of a step
  int slots = 2;          ///< steps whose K and V are there, or on their way
};

/// softmax(q k^T / sqrt(d)) v of {heads, sequence, d}, in f16 or bf16: d is 64 or 128, sequences
/// are multiples of 128 and of the tile.
inline pl::Kernel attention(AttentionTile t = {}) {
  constexpr int computing = 2;
  constexpr std::int64_t rows = 64;  // queries of a warpgroup

  const auto body = [=](pl::Ref q, pl::Ref k, pl::Ref v, pl::Ref o, pl::Ref made, pl::Ref turn) {
    const pl::Value wg = pl::axis_index("wg"), head = pl::axis_index("head");
    const pl::Value tile = pl::axis_index("tile");
    const std::int64_t d = q.shape()[2].value(), steps = k.shape()[1].value() / t.kv;
    const float scale = 1.4426950408889634f / std::sqrt(static_cast<float>(d));  // of log2 units
    const auto mine = pl::ds(wg * rows, rows);

    const auto take_turns = [=] {
      plgpu::barrier_arrive(turn);
      plgpu::barrier_wait(turn);
    };

    const auto step = [=](const std::vector<pl::Value>&, pl::Ref q, pl::Ref k, pl::Ref v,
                          pl::Ref k_there, pl::Ref v_there, pl::Ref k_free, pl::Ref v_free,
                          pl::Ref acc, pl::Value max, pl::Value sum) {
      plgpu::barrier_wait(k_there);
      const pl::Value s = pl::run_scoped(
          [&](pl::Ref scores) {
            plgpu::wgmma(scores, q.at({mine, pl::_}), plgpu::transpose_ref(k, {1, 0}));
            take_turns();
            return pl::Value(scores[pl::_]);
          },
          {plgpu::ACC({rows, t.kv}, pl::f32)});
      plgpu::barrier_arrive(k_free);

      const pl::Value next = pl::maximum(max, pl::max(s, {.axis = {1}}) * scale);
      const pl::Value kept = pl::exp2(max - next);
      const pl::Value p = pl::exp2(s * scale - next.reshape({rows, 1}));
      const pl::Value all = sum * kept + pl::sum(p, {.axis = {1}});
      acc[pl::_] = acc[pl::_] * kept.reshape({rows, 1});

      take_turns();
      plgpu::barrier_wait(v_there);
      plgpu::wgmma(acc, p.astype(v.dtype()), v);
      plgpu::wgmma_wait(0);
      plgpu::barrier_arrive(v_free);
      return pl::carry(next, all);
    };

    const pl::BlockSpec queries{{pl::squeezed, computing * rows, d}, [=](pl::Index) {
                                  return pl::Indices{head, tile, 0};
                                }};
    const pl::BlockSpec block{{pl::squeezed, t.kv, d}, [=](pl::Index j) {
                                return pl::Indices{head, j, 0};
                              }};
    plgpu::emit_pipeline_warp_specialized(
        step, {.grid = {steps},
               .memory_registers = 40,
               .in_specs = {queries, block, block},
               .max_concurrent_steps = t.slots,
               .wg_axis = "wg",
               .num_compute_wgs = computing,
               .manual_ready_barriers = true,
               .manual_consumed_barriers = true,
               .compute_context = [&](const plgpu::PipelineRun& pipeline) {
                 const auto run = [&](pl::Ref acc) {
                   // The second is half a step behind the first.
                   pl::when(wg == 1, take_turns);
                   const auto [max, sum] =
                       pipeline(acc, pl::full({rows}, -1e30f, pl::f32), pl::zeros({rows}, pl::f32));
                   pl::when(wg == 0, take_turns);
                   made[wg] = (acc[pl::_] / sum.reshape({rows, 1})).astype(o.dtype());
                 };
                 pl::run_scoped(run, {plgpu::ACC({rows, d}, pl::f32)});
                 plgpu::commit_smem();
                 plgpu::copy_smem_to_gmem(
                     made.at(wg),
                     o.at({head, pl::ds((tile * computing + wg) * rows, rows), pl::_}));
                 plgpu::wait_smem_to_gmem(0);
               }})(q, k, v);
  };

  return plgpu::kernel(body, [=](pl::ShapeDtype q, pl::ShapeDtype, pl::ShapeDtype) {
    const std::int64_t d = q.shape[2].value();
    return plgpu::KernelOptions{
        .name = "attention",
        .out_type = q,
        .grid = {q.shape[0].value(), q.shape[1].value() / (computing * rows)},
        .grid_names = {"head", "tile"},
        .num_threads = computing + 1,
        .thread_name = "wg",
        .scratch_types = {plgpu::SMEM({computing, rows, d}, q.dtype,
                                      {.transforms = {plgpu::TilingTransform({8, 64}),
                                                      plgpu::SwizzleTransform(128)}}),
                          plgpu::Barrier({.num_arrivals = computing})},
        .compiler_params = {.approx_math = true}};
  });
}

}  // namespace mosaic
