PL_KERNEL(128) attention_kernel(const f16* in0, const f16* in1, const f16* in2, f16* out0, PL_TENSOR_MAP(map0), PL_TENSOR_MAP(map1), PL_TENSOR_MAP(map2)) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 warp = pl::warp();
  if (warp == 0 && pl::elect_one()) {
    pl::mbarrier_init(smem + 8192, 1);
    pl::mbarrier_init(smem + 8208, 1);
    pl::mbarrier_init(smem + 8216, 1);
    pl::mbarrier_init(smem + 8224, 1);
    pl::mbarrier_init(smem + 8232, 1);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  u32 phase0 = 0;
  u32 read0 = 0u;
  u32 fill0 = 0u;
  u32 phase_of_ring0 = 0u;
  const i32 p0 = pl::block_x();
  const i32 start0 = p0 * 64;
  const i32 at0 = start0 * 64;
  f32 v10[32];
  const i32 i = (t >> 2 & 7) + (t >> 1 & 48);
  const i32 j = (t & 3) * 2;
  PL_UNROLL for (i32 r = 0; r < 32; ++r) v10[r] = 0.0f;
  f32 v9[2];
  PL_UNROLL for (i32 g = 0; g < 2; ++g) v9[g] = -0x1.93e594p+99f;
  f32 v8[2];
  PL_UNROLL for (i32 g = 0; g < 2; ++g) v8[g] = 0.0f;
  if (warp == 0 && pl::elect_one()) {
    pl::mbarrier_arrive_expect_tx(smem + 8192, 8192);
    pl::tma_load(smem, map0, smem + 8192, {0, start0});
  }
  pl::mbarrier_wait(smem + 8192, phase0);
  phase0 = phase0 ^ 1;
  pl::warpgroup_sync();
  fill0 = read0;
  PL_NOUNROLL for (i32 early0 = 0; early0 < 1; ++early0) {
    if (early0 < 8) {
      const i32 turn0 = early0;
      const i32 sx0 = pl::mul(turn0, 64);
      const i32 v7 = sx0;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 8208, 8192);
        pl::tma_load(smem + fill0 * 16384 + 34816, map1, smem + fill0 * 8 + 8208, {0, 0 + v7});
      }
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 8224, 8192);
        pl::tma_load(smem + fill0 * 16384 + 43008, map2, smem + fill0 * 8 + 8224, {0, 0 + v7});
      }
    }
    fill0 = fill0 == 1 ? 0 : (fill0 + 1);
  }
  const u64 matrix0 = pl::matrix_descriptor(smem, 16, 1024, 128);
  const u64 matrix1 = pl::matrix_descriptor(smem + 34816, 16, 1024, 128);
  const u64 matrix2 = pl::matrix_descriptor(smem + 9216, 16, 1024, 128);
  const u64 matrix3 = pl::matrix_descriptor(smem + 43008, 8192, 1024, 128);
  PL_NOUNROLL for (i32 v11 = 0; v11 < 8; ++v11) {
    pl::warpgroup_sync();
    if (v11 + 1 < 8) {
      const i32 turn0 = v11 + 1;
      const i32 sx1 = pl::mul(turn0, 64);
      const i32 v7 = sx1;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 8208, 8192);
        pl::tma_load(smem + fill0 * 16384 + 34816, map1, smem + fill0 * 8 + 8208, {0, 0 + v7});
      }
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 8224, 8192);
        pl::tma_load(smem + fill0 * 16384 + 43008, map2, smem + fill0 * 8 + 8224, {0, 0 + v7});
      }
    }
    pl::mbarrier_wait(smem + read0 * 8 + 8208, phase_of_ring0);
    f32 v6[32];
    pl::wgmma_registers(v6);
    pl::wgmma_fence();
    pl::wgmma_m64n64k16_f32_f16_f16(v6, matrix0, matrix1 + u64(read0) * 1024, false);
    pl::wgmma_m64n64k16_f32_f16_f16(v6, matrix0 + 2, matrix1 + u64(read0) * 1024 + 2, true);
    pl::wgmma_m64n64k16_f32_f16_f16(v6, matrix0 + 4, matrix1 + u64(read0) * 1024 + 4, true);
    pl::wgmma_m64n64k16_f32_f16_f16(v6, matrix0 + 6, matrix1 + u64(read0) * 1024 + 6, true);
    pl::wgmma_commit();
    pl::wgmma_registers(v6);
    pl::wgmma_wait<0>();
    pl::wgmma_registers(v6);
    f32 v5[2];
    {
      f32 acc[2];
      PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = pl::min_value<f32>();
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Max(), acc[g], v6[rj * 4 + g * 2 + e] * 0x1p-3f);
        }
      }
      pl::reduce_lanes<3>(acc, pl::Max());
      PL_UNROLL for (i32 a = 0; a < 2; ++a) v5[a] = acc[a];
    }
    f32 v4[32];
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      PL_UNROLL for (i32 g = 0; g < 2; ++g) {
        const f32 x0 = pl::max(v9[g], v5[g]);
        PL_UNROLL for (i32 e = 0; e < 2; ++e) {
          const f32 x1 = v6[rj * 4 + g * 2 + e] * 0x1p-3f;
          v4[rj * 4 + g * 2 + e] = pl::exp_nonpositive(x1 - x0);
        }
      }
    }
    pl::warpgroup_sync();
    {
      const i32 n0 = (i & 7);
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        const i32 n1 = j + rj * 8 ^ n0 * 8;
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          f16 o2[2];
          PL_UNROLL for (i32 e = 0; e < 2; ++e) o2[e] = pl::to<f16>(v4[rj * 4 + g * 2 + e]);
          pl::store_shared<2>(smem + 9216 + (n1 + i * 64 + g * 512) * 2, o2);
        }
      }
    }
    pl::fence_async_shared();
    pl::warpgroup_sync();
    pl::mbarrier_wait(smem + read0 * 8 + 8224, phase_of_ring0);
    f32 v3[32];
    pl::wgmma_registers(v3);
    pl::wgmma_fence();
    pl::wgmma_m64n64k16_f32_f16_f16<false, true>(v3, matrix2, matrix3 + u64(read0) * 1024, false);
    pl::wgmma_m64n64k16_f32_f16_f16<false, true>(v3, matrix2 + 2, matrix3 + u64(read0) * 1024 + 128, true);
    pl::wgmma_m64n64k16_f32_f16_f16<false, true>(v3, matrix2 + 4, matrix3 + u64(read0) * 1024 + 256, true);
    pl::wgmma_m64n64k16_f32_f16_f16<false, true>(v3, matrix2 + 6, matrix3 + u64(read0) * 1024 + 384, true);
    pl::wgmma_commit();
    pl::wgmma_registers(v3);
    pl::wgmma_wait<0>();
    pl::wgmma_registers(v3);
    f32 v2[2];
    {
      f32 acc[2];
      PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = 0.0f;
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Sum(), acc[g], v4[rj * 4 + g * 2 + e]);
        }
      }
      pl::reduce_lanes<3>(acc, pl::Sum());
      PL_UNROLL for (i32 a = 0; a < 2; ++a) v2[a] = acc[a];
    }
    f32 v21[32];
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      PL_UNROLL for (i32 g = 0; g < 2; ++g) {
        const f32 x0 = pl::max(v9[g], v5[g]);
        const f32 x1 = pl::exp_nonpositive(v9[g] - x0);
        PL_UNROLL for (i32 e = 0; e < 2; ++e) v21[rj * 4 + g * 2 + e] = pl::fma(v10[rj * 4 + g * 2 + e], x1, v3[rj * 4 + g * 2 + e]);
      }
    }
    f32 v22[2];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) v22[g] = pl::max(v9[g], v5[g]);
    f32 v23[2];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) {
      const f32 x0 = pl::max(v9[g], v5[g]);
      v23[g] = pl::fma(v8[g], pl::exp_nonpositive(v9[g] - x0), v2[g]);
    }
    PL_UNROLL for (i32 k = 0; k < 32; ++k) v10[k] = v21[k];
    PL_UNROLL for (i32 k = 0; k < 2; ++k) v9[k] = v22[k];
    PL_UNROLL for (i32 k = 0; k < 2; ++k) v8[k] = v23[k];
    fill0 = read0;
    read0 = read0 == 1 ? 0 : (read0 + 1);
    phase_of_ring0 = read0 == 0 ? (phase_of_ring0 ^ 1) : phase_of_ring0;
  }
  // st.v2 / ld.v4, 1 step of 16384 B
  f32 v24[32];
  {
    const u32 scratch = smem + 17408;
    const u32 st = (t & 15) << 3 | (t & 16) << 6 | (t & 96) << 7;
    const u32 ld = (t & 24) << 2 ^ (t & 7) << 4 ^ (t & 96) << 5 ^ (t & 7) << 7;
    { f32 w[2] = {v10[0], v10[1]}; pl::store_shared<2>(scratch + st, w); }
    { f32 w[2] = {v10[2], v10[3]}; pl::store_shared<2>(scratch + st + 2048, w); }
    { f32 w[2] = {v10[4], v10[5]}; pl::store_shared<2>(scratch + (st ^ 16) + 128, w); }
    { f32 w[2] = {v10[6], v10[7]}; pl::store_shared<2>(scratch + (st ^ 16) + 2176, w); }
    { f32 w[2] = {v10[8], v10[9]}; pl::store_shared<2>(scratch + (st ^ 32) + 256, w); }
    { f32 w[2] = {v10[10], v10[11]}; pl::store_shared<2>(scratch + (st ^ 32) + 2304, w); }
    { f32 w[2] = {v10[12], v10[13]}; pl::store_shared<2>(scratch + (st ^ 48) + 384, w); }
    { f32 w[2] = {v10[14], v10[15]}; pl::store_shared<2>(scratch + (st ^ 48) + 2432, w); }
    { f32 w[2] = {v10[16], v10[17]}; pl::store_shared<2>(scratch + (st ^ 64) + 512, w); }
    { f32 w[2] = {v10[18], v10[19]}; pl::store_shared<2>(scratch + (st ^ 64) + 2560, w); }
    { f32 w[2] = {v10[20], v10[21]}; pl::store_shared<2>(scratch + (st ^ 80) + 640, w); }
    { f32 w[2] = {v10[22], v10[23]}; pl::store_shared<2>(scratch + (st ^ 80) + 2688, w); }
    { f32 w[2] = {v10[24], v10[25]}; pl::store_shared<2>(scratch + (st ^ 96) + 768, w); }
    { f32 w[2] = {v10[26], v10[27]}; pl::store_shared<2>(scratch + (st ^ 96) + 2816, w); }
    { f32 w[2] = {v10[28], v10[29]}; pl::store_shared<2>(scratch + (st ^ 112) + 896, w); }
    { f32 w[2] = {v10[30], v10[31]}; pl::store_shared<2>(scratch + (st ^ 112) + 2944, w); }
    pl::warpgroup_sync();
    { f32 w[4]; pl::load_shared<4>(w, scratch + ld); v24[0] = w[0]; v24[1] = w[1]; v24[2] = w[2]; v24[3] = w[3]; }
    { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16)); v24[4] = w[0]; v24[5] = w[1]; v24[6] = w[2]; v24[7] = w[3]; }
    { f32 w[4]; pl::load_shared<4>(w, scratch + ld + 4096); v24[8] = w[0]; v24[9] = w[1]; v24[10] = w[2]; v24[11] = w[3]; }
    { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16) + 4096); v24[12] = w[0]; v24[13] = w[1]; v24[14] = w[2]; v24[15] = w[3]; }
    { f32 w[4]; pl::load_shared<4>(w, scratch + ld + 8192); v24[16] = w[0]; v24[17] = w[1]; v24[18] = w[2]; v24[19] = w[3]; }
    { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16) + 8192); v24[20] = w[0]; v24[21] = w[1]; v24[22] = w[2]; v24[23] = w[3]; }
    { f32 w[4]; pl::load_shared<4>(w, scratch + ld + 12288); v24[24] = w[0]; v24[25] = w[1]; v24[26] = w[2]; v24[27] = w[3]; }
    { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16) + 12288); v24[28] = w[0]; v24[29] = w[1]; v24[30] = w[2]; v24[31] = w[3]; }
  }
  // st.v1 / ld.v4, 1 step of 256 B
  f32 v26[4];
  {
    const u32 scratch = smem + 33792;
    const u32 st = (t >> 3 & 12) | (t & 28) << 2;
    const u32 ld = (t & 120) << 1;
    { f32 w[1] = {v8[0]}; pl::store_shared<1>(scratch + st, w, (t & 3) == 0); }
    { f32 w[1] = {v8[1]}; pl::store_shared<1>(scratch + st + 128, w, (t & 3) == 0); }
    pl::warpgroup_sync();
    { f32 w[4]; pl::load_shared<4>(w, scratch + ld); v26[0] = w[0]; v26[1] = w[1]; v26[2] = w[2]; v26[3] = w[3]; }
  }
  const i32 i_b = (t >> 3 & 15);
  const i32 j_b = (t & 7) * 8;
  PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
    f32 q0[8];
    pl::div_all<8>(q0, v24 + ri * 8, v26[ri]);
    f16 o1[8];
    PL_UNROLL for (i32 e = 0; e < 8; ++e) o1[e] = pl::to<f16>(q0[e]);
    pl::store_global<8>(out0 + (at0 + j_b + i_b * 64 + ri * 1024), o1);
  }
}
PL_EXPORT(attention_kernel)
