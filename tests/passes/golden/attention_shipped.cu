PL_KERNEL(384) attention_kernel(const f16* in0, const f16* in1, const f16* in2, f16* out0, PL_TENSOR_MAP(map0), PL_TENSOR_MAP(map1), PL_TENSOR_MAP(map2), PL_TENSOR_MAP(map3)) {
  const u32 smem = pl::shared_base();
  const u32 warpgroup = pl::warpgroup();
  const i32 t = pl::program_thread();
  const u32 warp = pl::warp();
  if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
    pl::tma_prefetch_map(map0);
    pl::tma_prefetch_map(map1);
    pl::tma_prefetch_map(map2);
    pl::tma_prefetch_map(map3);
    pl::mbarrier_init(smem, 1);
    pl::mbarrier_init(smem + 16, 1);
    pl::mbarrier_init(smem + 24, 1);
    pl::mbarrier_init(smem + 32, 1);
    pl::mbarrier_init(smem + 48, 1);
    pl::mbarrier_init(smem + 56, 1);
    pl::mbarrier_init(smem + 64, 1);
    pl::mbarrier_init(smem + 80, 2);
    pl::mbarrier_init(smem + 88, 2);
    pl::mbarrier_init(smem + 96, 2);
    pl::mbarrier_init(smem + 112, 2);
    pl::mbarrier_init(smem + 120, 2);
    pl::mbarrier_init(smem + 128, 2);
    pl::fence_mbarrier_init();
  }
  pl::block_sync();
  u32 phase0 = 0;
  u32 read0 = 0u;
  u32 phase_of_ring0 = 0u;
  u32 read1 = 0u;
  u32 phase_of_ring1 = 0u;
  const u32 block = pl::block_x();
  const i32 p2 = i32(block % 8);
  const i32 p1 = i32((block >> 3) % 8);
  const i32 p0 = i32(block >> 3 >> 3);
  const i32 start0 = p2 * 128;
  const i32 start1 = pl::div(p1, 4);
  pl::check(1000 > 0, "args[1]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  pl::check(1000 > 0, "args[2]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  pl::check(1000 > 0, "args[1]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  pl::check(1000 > 0, "args[2]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  const i32 j = (t & 3) * 2;
  const u64 matrix0 = pl::matrix_descriptor(smem + 197632 + warpgroup * 8192, 16, 1024, 128);
  const u64 matrix1 = pl::matrix_descriptor(smem + 1024, 16, 1024, 128);
  const bool tells = t % 128 == 0;
  const u64 matrix2 = pl::matrix_descriptor(smem + 99328, 16384, 1024, 128);
  const u32 rows0 = smem + u32((t & 16) ^ (t & 7) << 4 ^ (t & 224) << 6 ^ (t & 15) << 7);
  if (warpgroup == 2) {
    pl::setmaxnreg_dec<24>();
    if (warp == 0 && pl::elect_one()) {
      u32 fill0 = 0u;
      u32 phase_of_fill0 = 0u;
      u32 fill1 = 0u;
      u32 phase_of_fill1 = 0u;
      PL_NOUNROLL for (i32 v16 = 0; v16 < 8; ++v16) {
        const i32 v11 = pl::sub(7, v16);
        const i32 sx0 = pl::mul(v11, 128);
        const i32 v10 = sx0;
        pl::mbarrier_wait(smem + fill0 * 8 + 80, phase_of_fill0 ^ 1);
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 16, 32768);
        pl::tma_load(smem + fill0 * 32768 + 1024, map1, smem + fill0 * 8 + 16, {0, 0 + v10, start1, p0});
        pl::tma_load(smem + fill0 * 32768 + 1024 + 16384, map1, smem + fill0 * 8 + 16, {64, 0 + v10, start1, p0});
        fill0 = fill0 == 2 ? 0 : (fill0 + 1);
        phase_of_fill0 = fill0 == 0 ? (phase_of_fill0 ^ 1) : phase_of_fill0;
        pl::mbarrier_wait(smem + fill1 * 8 + 112, phase_of_fill1 ^ 1);
        pl::mbarrier_arrive_expect_tx(smem + fill1 * 8 + 48, 32768);
        pl::tma_load(smem + fill1 * 32768 + 99328, map2, smem + fill1 * 8 + 48, {0, 0 + v10, start1, p0});
        pl::tma_load(smem + fill1 * 32768 + 99328 + 16384, map2, smem + fill1 * 8 + 48, {64, 0 + v10, start1, p0});
        fill1 = fill1 == 2 ? 0 : (fill1 + 1);
        phase_of_fill1 = fill1 == 0 ? (phase_of_fill1 ^ 1) : phase_of_fill1;
      }
    }
  } else {
    pl::setmaxnreg_inc<240>();
    u32 before1 = 0u;
    f32 v15[2];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) v15[g] = -0x1.93e594p+99f;
    f32 v14[2];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) v14[g] = 0.0f;
    f32 v13[64];
    PL_UNROLL for (i32 r = 0; r < 64; ++r) v13[r] = 0.0f;
    if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
      pl::mbarrier_arrive_expect_tx(smem, 32768);
      pl::tma_load(smem + 197632, map0, smem, {0, start0, p1, p0});
      pl::tma_load(smem + 197632 + 16384, map0, smem, {64, start0, p1, p0});
    }
    pl::mbarrier_wait(smem, phase0);
    phase0 = phase0 ^ 1;
    pl::wgmma_registers(v13);
    f32 v5[2];
    f32 v9[64];
    u32 v23[32];
    {
      {
        const i32 v16 = 0;
        const i32 v11 = pl::sub(7, v16);
        const i32 sx1 = pl::mul(v11, 128);
        const i32 v10 = sx1;
        pl::mbarrier_wait(smem + read0 * 8 + 16, phase_of_ring0);
        pl::wgmma_registers(v9);
        pl::wgmma_fence();
        pl::wgmma_m64n128k16_f32_f16_f16_x8(v9, matrix0, matrix1 + u64(read0) * 2048, matrix0 + 2, matrix1 + u64(read0) * 2048 + 2, matrix0 + 4, matrix1 + u64(read0) * 2048 + 4, matrix0 + 6, matrix1 + u64(read0) * 2048 + 6, matrix0 + 1024, matrix1 + u64(read0) * 2048 + 1024, matrix0 + 1026, matrix1 + u64(read0) * 2048 + 1026, matrix0 + 1028, matrix1 + u64(read0) * 2048 + 1028, matrix0 + 1030, matrix1 + u64(read0) * 2048 + 1030, false);
        pl::wgmma_commit();
        pl::wgmma_wait<0>();
        pl::wgmma_registers(v9);
        if (tells) {
          pl::mbarrier_arrive(smem + read0 * 8 + 80, 1);
        }
        read0 = read0 == 2 ? 0 : (read0 + 1);
        phase_of_ring0 = read0 == 0 ? (phase_of_ring0 ^ 1) : phase_of_ring0;
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            PL_UNROLL for (i32 e = 0; e < 2; ++e) {
              v9[rj * 4 + g * 2 + e] = (pl::add(j + rj * 8 + e, v10) < 1000) ? v9[rj * 4 + g * 2 + e] : pl::min_value<f32>();
            }
          }
        }
        f32 v7[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = pl::min_value<f32>();
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Max(), acc[g], v9[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Max());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v7[a] = acc[a];
        }
        f32 v6[2];
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          const f32 x0 = v7[g] * 0x1.0527dcp-3f;
          v6[g] = (v15[g] < (x0 - 7.0f)) ? x0 : v15[g];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v5[g] = pl::exp2_approx(v15[g] - v6[g]);
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            const f32 x0 = -v6[g];
            PL_UNROLL for (i32 e = 0; e < 2; ++e) v9[rj * 4 + g * 2 + e] = pl::exp2_approx(pl::fma(v9[rj * 4 + g * 2 + e], 0x1.0527dcp-3f, x0));
          }
        }
        f32 v3[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = 0.0f;
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Sum(), acc[g], v9[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Sum());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v3[a] = acc[a];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v15[g] = v6[g];
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v14[g] = pl::fma(v14[g], v5[g], v3[g]);
      }
      PL_NOUNROLL for (i32 v16 = 1; v16 < 8; ++v16) {
        pl::wgmma_wait<0>();
        pl::wgmma_registers(v9);
        pl::wgmma_registers(v13);
        pl::wgmma_registers(v23);
        if (tells && (!(v16 == 1))) {
          pl::mbarrier_arrive(before1 + 112, 1);
        }
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            f16 o0[2];
            PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[e] = pl::to<f16>(v9[rj * 4 + g * 2 + e]);
            v23[rj * 4 + g * 2 >> 1] = pl::pack(o0[0], o0[1]);
          }
        }
        if (pl::vote_any((v5[0] != 1.0f) || (v5[1] != 1.0f))) {
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) v13[rj * 4 + g * 2 + e] = v13[rj * 4 + g * 2 + e] * v5[g];
            }
          }
        }
        pl::mbarrier_wait(smem + read0 * 8 + 16, phase_of_ring0);
        pl::wgmma_registers(v9);
        pl::wgmma_fence();
        pl::wgmma_m64n128k16_f32_f16_f16_x8(v9, matrix0, matrix1 + u64(read0) * 2048, matrix0 + 2, matrix1 + u64(read0) * 2048 + 2, matrix0 + 4, matrix1 + u64(read0) * 2048 + 4, matrix0 + 6, matrix1 + u64(read0) * 2048 + 6, matrix0 + 1024, matrix1 + u64(read0) * 2048 + 1024, matrix0 + 1026, matrix1 + u64(read0) * 2048 + 1026, matrix0 + 1028, matrix1 + u64(read0) * 2048 + 1028, matrix0 + 1030, matrix1 + u64(read0) * 2048 + 1030, false);
        pl::wgmma_commit();
        pl::mbarrier_wait(smem + read1 * 8 + 48, phase_of_ring1);
        pl::wgmma_registers(v13);
        pl::wgmma_registers(v23);
        pl::wgmma_fence();
        pl::wgmma_m64n128k16_f32_f16_f16_rs_x8<true>(v13, v23, matrix2 + u64(read1) * 2048, matrix2 + u64(read1) * 2048 + 128, matrix2 + u64(read1) * 2048 + 256, matrix2 + u64(read1) * 2048 + 384, matrix2 + u64(read1) * 2048 + 512, matrix2 + u64(read1) * 2048 + 640, matrix2 + u64(read1) * 2048 + 768, matrix2 + u64(read1) * 2048 + 896, true);
        pl::wgmma_commit();
        before1 = smem + read1 * 8;
        read1 = read0;
        phase_of_ring1 = phase_of_ring0;
        pl::wgmma_wait<1>();
        pl::wgmma_registers(v9);
        if (tells) {
          pl::mbarrier_arrive(smem + read0 * 8 + 80, 1);
        }
        read0 = read0 == 2 ? 0 : (read0 + 1);
        phase_of_ring0 = read0 == 0 ? (phase_of_ring0 ^ 1) : phase_of_ring0;
        PL_UNROLL for (i32 r = 0; r < 64; ++r) v9[r] = v9[r];
        f32 v7[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = pl::min_value<f32>();
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Max(), acc[g], v9[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Max());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v7[a] = acc[a];
        }
        f32 v6[2];
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          const f32 x0 = v7[g] * 0x1.0527dcp-3f;
          v6[g] = (v15[g] < (x0 - 7.0f)) ? x0 : v15[g];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v5[g] = pl::exp2_approx(v15[g] - v6[g]);
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            const f32 x0 = -v6[g];
            PL_UNROLL for (i32 e = 0; e < 2; ++e) v9[rj * 4 + g * 2 + e] = pl::exp2_approx(pl::fma(v9[rj * 4 + g * 2 + e], 0x1.0527dcp-3f, x0));
          }
        }
        f32 v3[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = 0.0f;
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Sum(), acc[g], v9[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Sum());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v3[a] = acc[a];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v15[g] = v6[g];
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v14[g] = pl::fma(v14[g], v5[g], v3[g]);
      }
      pl::wgmma_wait<0>();
      pl::wgmma_registers(v9);
      pl::wgmma_registers(v13);
      pl::wgmma_registers(v23);
      PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          f16 o0[2];
          PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[e] = pl::to<f16>(v9[rj * 4 + g * 2 + e]);
          v23[rj * 4 + g * 2 >> 1] = pl::pack(o0[0], o0[1]);
        }
      }
      if (pl::vote_any((v5[0] != 1.0f) || (v5[1] != 1.0f))) {
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            PL_UNROLL for (i32 e = 0; e < 2; ++e) v13[rj * 4 + g * 2 + e] = v13[rj * 4 + g * 2 + e] * v5[g];
          }
        }
      }
      pl::mbarrier_wait(smem + read1 * 8 + 48, phase_of_ring1);
      pl::wgmma_registers(v13);
      pl::wgmma_registers(v23);
      pl::wgmma_fence();
      pl::wgmma_m64n128k16_f32_f16_f16_rs_x8<true>(v13, v23, matrix2 + u64(read1) * 2048, matrix2 + u64(read1) * 2048 + 128, matrix2 + u64(read1) * 2048 + 256, matrix2 + u64(read1) * 2048 + 384, matrix2 + u64(read1) * 2048 + 512, matrix2 + u64(read1) * 2048 + 640, matrix2 + u64(read1) * 2048 + 768, matrix2 + u64(read1) * 2048 + 896, true);
      pl::wgmma_commit();
      pl::wgmma_wait<0>();
      pl::wgmma_registers(v13);
      pl::wgmma_registers(v23);
      if (tells) {
        pl::mbarrier_arrive(smem + read1 * 8 + 112, 1);
      }
      before1 = smem + read1 * 8;
      read1 = read0;
      phase_of_ring1 = phase_of_ring0;
    }
    pl::program_sync<8>();
    {
      f16 o0[64];
      PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[rj * 4 + g * 2 + e] = pl::to<f16>(v13[rj * 4 + g * 2 + e] * pl::rcp_approx(v14[g]));
        }
      }
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        pl::stmatrix_x4((rows0 ^ u32(((rj * 32) & 127))) + u32(rj * 32 >> 7) * 16384 + 1024, o0 + rj * 8);
      }
    }
    pl::fence_async_shared();
    pl::program_sync<8>();
    if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
      pl::tma_store(map3, smem + 1024, {0, start0, p1, p0});
      pl::tma_store(map3, smem + 1024 + 16384, {64, start0, p1, p0});
      pl::bulk_commit();
    }
    if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
      pl::bulk_wait_read<0>();
    }
  }
}
PL_EXPORT(attention_kernel)
