PL_KERNEL(128) attention_kernel(const f16* in0, const f16* in1, const f16* in2, f16* out0, PL_TENSOR_MAP(map0), PL_TENSOR_MAP(map1), PL_TENSOR_MAP(map2), PL_TENSOR_MAP(map3)) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 warp = pl::warp();
  if (warp == 0 && pl::elect_one()) {
    pl::tma_prefetch_map(map0);
    pl::tma_prefetch_map(map1);
    pl::tma_prefetch_map(map2);
    pl::tma_prefetch_map(map3);
    pl::mbarrier_init(smem, 1);
    pl::mbarrier_init(smem + 16, 1);
    pl::mbarrier_init(smem + 24, 1);
    pl::mbarrier_init(smem + 32, 1);
    pl::mbarrier_init(smem + 40, 1);
    pl::mbarrier_init(smem + 48, 1);
    pl::mbarrier_init(smem + 64, 1);
    pl::mbarrier_init(smem + 72, 1);
    pl::mbarrier_init(smem + 80, 1);
    pl::mbarrier_init(smem + 88, 1);
    pl::mbarrier_init(smem + 96, 1);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  u32 phase0 = 0;
  u32 read0 = 0u;
  u32 fill0 = 0u;
  u32 phase_of_ring0 = 0u;
  u32 read1 = 0u;
  u32 fill1 = 0u;
  u32 phase_of_ring1 = 0u;
  const i32 p0 = pl::block_x();
  const i32 start0 = p0 * 64;
  f32 v11[32];
  PL_UNROLL for (i32 r = 0; r < 32; ++r) v11[r] = 0.0f;
  f32 v10[2];
  PL_UNROLL for (i32 g = 0; g < 2; ++g) v10[g] = -0x1.93e594p+99f;
  f32 v9[2];
  PL_UNROLL for (i32 g = 0; g < 2; ++g) v9[g] = 0.0f;
  if (warp == 0 && pl::elect_one()) {
    pl::mbarrier_arrive_expect_tx(smem, 8192);
    pl::tma_load(smem + 1024, map0, smem, {0, start0});
  }
  fill0 = read0;
  PL_NOUNROLL for (i32 early0 = 0; early0 < 4; ++early0) {
    if (early0 < 8) {
      const i32 turn0 = early0;
      const i32 sx0 = pl::mul(turn0, 64);
      const i32 v8 = sx0;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 16, 8192);
        pl::tma_load(smem + fill0 * 8192 + 9216, map1, smem + fill0 * 8 + 16, {0, 0 + v8});
      }
    }
    fill0 = fill0 == 4 ? 0 : (fill0 + 1);
  }
  fill1 = read1;
  PL_NOUNROLL for (i32 early1 = 0; early1 < 4; ++early1) {
    if (early1 < 8) {
      const i32 turn1 = early1;
      const i32 sx1 = pl::mul(turn1, 64);
      const i32 v8 = sx1;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill1 * 8 + 64, 8192);
        pl::tma_load(smem + fill1 * 8192 + 50176, map2, smem + fill1 * 8 + 64, {0, 0 + v8});
      }
    }
    fill1 = fill1 == 4 ? 0 : (fill1 + 1);
  }
  pl::mbarrier_wait(smem, phase0);
  phase0 = phase0 ^ 1;
  pl::wgmma_registers(v11);
  const u64 matrix0 = pl::matrix_descriptor(smem + 1024, 16, 1024, 128);
  const u64 matrix1 = pl::matrix_descriptor(smem + 9216, 16, 1024, 128);
  const u64 matrix2 = pl::matrix_descriptor(smem + 50176, 8192, 1024, 128);
  PL_NOUNROLL for (i32 v12 = 0; v12 < 8; ++v12) {
    pl::warpgroup_sync();
    if (v12 + 4 < 8) {
      const i32 turn0 = v12 + 4;
      const i32 sx2 = pl::mul(turn0, 64);
      const i32 v8 = sx2;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 16, 8192);
        pl::tma_load(smem + fill0 * 8192 + 9216, map1, smem + fill0 * 8 + 16, {0, 0 + v8});
      }
    }
    if (v12 + 4 < 8) {
      const i32 turn1 = v12 + 4;
      const i32 sx3 = pl::mul(turn1, 64);
      const i32 v8 = sx3;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill1 * 8 + 64, 8192);
        pl::tma_load(smem + fill1 * 8192 + 50176, map2, smem + fill1 * 8 + 64, {0, 0 + v8});
      }
    }
    pl::mbarrier_wait(smem + read0 * 8 + 16, phase_of_ring0);
    f32 v7[32];
    pl::wgmma_registers(v7);
    pl::wgmma_fence();
    pl::wgmma_m64n64k16_f32_f16_f16_x4(v7, matrix0, matrix1 + u64(read0) * 512, matrix0 + 2, matrix1 + u64(read0) * 512 + 2, matrix0 + 4, matrix1 + u64(read0) * 512 + 4, matrix0 + 6, matrix1 + u64(read0) * 512 + 6, false);
    pl::wgmma_commit();
    fill0 = read0;
    read0 = read0 == 4 ? 0 : (read0 + 1);
    phase_of_ring0 = read0 == 0 ? (phase_of_ring0 ^ 1) : phase_of_ring0;
    pl::wgmma_wait<0>();
    pl::wgmma_registers(v7);
    f32 v6[2];
    {
      f32 acc[2];
      PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = pl::min_value<f32>();
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Max(), acc[g], v7[rj * 4 + g * 2 + e] * 0x1p-3f);
        }
      }
      pl::reduce_lanes<3>(acc, pl::Max());
      PL_UNROLL for (i32 a = 0; a < 2; ++a) v6[a] = acc[a];
    }
    f32 v5[2];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) {
      const f32 x0 = pl::max(v10[g], v6[g]);
      v5[g] = pl::exp_nonpositive(v10[g] - x0);
    }
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      PL_UNROLL for (i32 g = 0; g < 2; ++g) {
        const f32 x0 = pl::max(v10[g], v6[g]);
        PL_UNROLL for (i32 e = 0; e < 2; ++e) {
          const f32 x1 = v7[rj * 4 + g * 2 + e] * 0x1p-3f;
          v7[rj * 4 + g * 2 + e] = pl::exp_nonpositive(x1 - x0);
        }
      }
    }
    u32 v18[16];
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      PL_UNROLL for (i32 g = 0; g < 2; ++g) {
        f16 o0[2];
        PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[e] = pl::to<f16>(v7[rj * 4 + g * 2 + e]);
        v18[rj * 4 + g * 2 >> 1] = pl::pack(o0[0], o0[1]);
      }
    }
    if (pl::vote_any((v5[0] != 1.0f) || (v5[1] != 1.0f))) {
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          PL_UNROLL for (i32 e = 0; e < 2; ++e) v11[rj * 4 + g * 2 + e] = v11[rj * 4 + g * 2 + e] * v5[g];
        }
      }
    }
    pl::mbarrier_wait(smem + read1 * 8 + 64, phase_of_ring1);
    pl::wgmma_registers(v11);
    pl::wgmma_registers(v18);
    pl::wgmma_fence();
    pl::wgmma_m64n64k16_f32_f16_f16_rs_x4<true>(v11, v18, matrix2 + u64(read1) * 512, matrix2 + u64(read1) * 512 + 128, matrix2 + u64(read1) * 512 + 256, matrix2 + u64(read1) * 512 + 384, true);
    pl::wgmma_commit();
    fill1 = read1;
    read1 = read1 == 4 ? 0 : (read1 + 1);
    phase_of_ring1 = read1 == 0 ? (phase_of_ring1 ^ 1) : phase_of_ring1;
    f32 v2[2];
    {
      f32 acc[2];
      PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = 0.0f;
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Sum(), acc[g], v7[rj * 4 + g * 2 + e]);
        }
      }
      pl::reduce_lanes<3>(acc, pl::Sum());
      PL_UNROLL for (i32 a = 0; a < 2; ++a) v2[a] = acc[a];
    }
    PL_UNROLL for (i32 g = 0; g < 2; ++g) v10[g] = pl::max(v10[g], v6[g]);
    PL_UNROLL for (i32 g = 0; g < 2; ++g) v9[g] = pl::fma(v9[g], v5[g], v2[g]);
    pl::wgmma_wait<0>();
    pl::wgmma_registers(v11);
    pl::wgmma_registers(v18);
  }
  pl::warpgroup_sync();
  const u32 rows0 = smem + u32((t & 16) ^ (t & 7) << 4 ^ (t & 96) << 6 ^ (t & 15) << 7);
  {
    f16 o0[32];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) {
      f32 q1[16];
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 e = 0; e < 2; ++e) q1[rj * 2 + e] = v11[rj * 4 + g * 2 + e];
      }
      pl::div_all<16>(q1, q1, v9[g]);
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[rj * 4 + g * 2 + e] = pl::to<f16>(q1[rj * 2 + e]);
      }
    }
    PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
      pl::stmatrix_x4((rows0 ^ u32(rj * 32)) + 1024, o0 + rj * 8);
    }
  }
  pl::fence_async_shared();
  pl::warpgroup_sync();
  if (warp == 0 && pl::elect_one()) {
    pl::tma_store(map3, smem + 1024, {0, start0});
    pl::bulk_commit();
  }
  if (warp == 0 && pl::elect_one()) {
    pl::bulk_wait_read<0>();
  }
}
PL_EXPORT(attention_kernel)
