PL_KERNEL(384) attention_kernel(const f16* in0, const f16* in1, const f16* in2, f16* out0, PL_TENSOR_MAP(map0), PL_TENSOR_MAP(map1), PL_TENSOR_MAP(map2)) {
  const u32 smem = pl::shared_base();
  const u32 warpgroup = pl::warpgroup();
  const i32 t = pl::program_thread();
  const u32 warp = pl::warp();
  if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
    pl::mbarrier_init(smem + 16384, 1);
    pl::mbarrier_init(smem + 16400, 1);
    pl::mbarrier_init(smem + 16408, 1);
    pl::mbarrier_init(smem + 16416, 1);
    pl::mbarrier_init(smem + 16424, 1);
    pl::mbarrier_init(smem + 16432, 1);
    pl::mbarrier_init(smem + 16448, 1);
    pl::mbarrier_init(smem + 16456, 1);
    pl::mbarrier_init(smem + 16464, 1);
    pl::mbarrier_init(smem + 16472, 1);
    pl::mbarrier_init(smem + 16480, 1);
    pl::mbarrier_init(smem + 197632, 2);
    pl::mbarrier_init(smem + 197640, 2);
    pl::mbarrier_init(smem + 197648, 2);
    pl::mbarrier_init(smem + 197656, 2);
    pl::mbarrier_init(smem + 197664, 2);
    pl::mbarrier_init(smem + 197680, 2);
    pl::mbarrier_init(smem + 197688, 2);
    pl::mbarrier_init(smem + 197696, 2);
    pl::mbarrier_init(smem + 197704, 2);
    pl::mbarrier_init(smem + 197712, 2);
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
  const i32 size0 = pl::min(1000 - start0, 128);
  const i32 at0 = start0 * 64 + p1 * 64000 + p0 * 512000;
  const i32 size1 = u64(i64(pl::div(p1, 4))) < 2 ? i32(pl::min(2 - i64(pl::div(p1, 4)), i64(1))) : 0;
  pl::check(size1 > 0, "args[1]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
  pl::check(1000 > 0, "args[1]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  pl::check(size1 > 0, "args[2]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
  pl::check(1000 > 0, "args[2]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  pl::check(size1 > 0, "args[1]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
  pl::check(1000 > 0, "args[1]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  pl::check(size1 > 0, "args[2]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
  pl::check(1000 > 0, "args[2]: the block is wholly out of bounds along dimension 2 (an index map gives block indices, not element offsets)");
  const i32 j = (t & 3) * 2;
  const u64 matrix0 = pl::matrix_descriptor(smem + warpgroup * 8192, 16, 1024, 128);
  const u64 matrix1 = pl::matrix_descriptor(smem + 33792, 16, 1024, 128);
  const bool tells = t % 128 == 0;
  const u64 matrix2 = pl::matrix_descriptor(smem + 115712, 16384, 1024, 128);
  const i32 i_b = (t >> 3 & 31);
  const i32 j_b = (t & 7) * 8;
  if (warpgroup == 2) {
    pl::setmaxnreg_dec<24>();
    if (warp == 0 && pl::elect_one()) {
      u32 fill0 = 0u;
      u32 phase_of_fill0 = 0u;
      u32 fill1 = 0u;
      u32 phase_of_fill1 = 0u;
      PL_NOUNROLL for (i32 v15 = 0; v15 < 8; ++v15) {
        pl::mbarrier_wait(smem + fill0 * 8 + 197632, phase_of_fill0 ^ 1);
        const i32 v10 = pl::sub(7, v15);
        const i32 sx0 = pl::mul(v10, 128);
        const i32 v9 = sx0;
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8 + 16400, 16384);
        pl::tma_load(smem + fill0 * 16384 + 33792, map1, smem + fill0 * 8 + 16400, {0, 0 + v9, i32(i64(pl::div(p1, 4))), p0});
        fill0 = fill0 == 4 ? 0 : (fill0 + 1);
        phase_of_fill0 = fill0 == 0 ? (phase_of_fill0 ^ 1) : phase_of_fill0;
        pl::mbarrier_wait(smem + fill1 * 8 + 197680, phase_of_fill1 ^ 1);
        pl::mbarrier_arrive_expect_tx(smem + fill1 * 8 + 16448, 16384);
        pl::tma_load(smem + fill1 * 16384 + 115712, map2, smem + fill1 * 8 + 16448, {0, 0 + v9, i32(i64(pl::div(p1, 4))), p0});
        fill1 = fill1 == 4 ? 0 : (fill1 + 1);
        phase_of_fill1 = fill1 == 0 ? (phase_of_fill1 ^ 1) : phase_of_fill1;
      }
    }
  } else {
    pl::setmaxnreg_inc<240>();
    f32 v14[2];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) v14[g] = -0x1.93e594p+99f;
    f32 v13[2];
    PL_UNROLL for (i32 g = 0; g < 2; ++g) v13[g] = 0.0f;
    f32 v12[32];
    PL_UNROLL for (i32 r = 0; r < 32; ++r) v12[r] = 0.0f;
    pl::program_sync<8>();
    if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
      pl::mbarrier_arrive_expect_tx(smem + 16384, 16384);
      pl::tma_load(smem, map0, smem + 16384, {0, start0, p1, p0});
    }
    pl::mbarrier_wait(smem + 16384, phase0);
    phase0 = phase0 ^ 1;
    f32 v5[2];
    f32 v8[64];
    u32 v22[32];
    if (0 < 8) {
      {
        const i32 v15 = 0;
        const i32 v10 = pl::sub(7, v15);
        const i32 sx1 = pl::mul(v10, 128);
        const i32 v9 = sx1;
        pl::mbarrier_wait(smem + read0 * 8 + 16400, phase_of_ring0);
        pl::wgmma_registers(v8);
        pl::wgmma_fence();
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0, matrix1 + u64(read0) * 1024, false);
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0 + 2, matrix1 + u64(read0) * 1024 + 2, true);
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0 + 4, matrix1 + u64(read0) * 1024 + 4, true);
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0 + 6, matrix1 + u64(read0) * 1024 + 6, true);
        pl::wgmma_commit();
        pl::wgmma_registers(v8);
        pl::wgmma_wait<0>();
        pl::wgmma_registers(v8);
        if (tells) {
          pl::mbarrier_arrive(smem + read0 * 8 + 197632, 1);
        }
        read0 = read0 == 4 ? 0 : (read0 + 1);
        phase_of_ring0 = read0 == 0 ? (phase_of_ring0 ^ 1) : phase_of_ring0;
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            PL_UNROLL for (i32 e = 0; e < 2; ++e) {
              v8[rj * 4 + g * 2 + e] = (pl::add(j + rj * 8 + e, v9) < 1000) ? v8[rj * 4 + g * 2 + e] : pl::min_value<f32>();
            }
          }
        }
        f32 v6[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = pl::min_value<f32>();
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Max(), acc[g], v8[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Max());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v6[a] = acc[a];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          const f32 x0 = pl::max(v14[g], v6[g] * 0x1.715476p-3f);
          v5[g] = pl::exp2_approx(v14[g] - x0);
        }
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            const f32 x0 = pl::max(v14[g], v6[g] * 0x1.715476p-3f);
            const f32 x1 = -x0;
            PL_UNROLL for (i32 e = 0; e < 2; ++e) v8[rj * 4 + g * 2 + e] = pl::exp2_approx(pl::fma(v8[rj * 4 + g * 2 + e], 0x1.715476p-3f, x1));
          }
        }
        f32 v3[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = 0.0f;
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Sum(), acc[g], v8[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Sum());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v3[a] = acc[a];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v14[g] = pl::max(v14[g], v6[g] * 0x1.715476p-3f);
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v13[g] = pl::fma(v13[g], v5[g], v3[g]);
      }
      PL_NOUNROLL for (i32 v15 = 1; v15 < 8; ++v15) {
        pl::mbarrier_wait(smem + read0 * 8 + 16400, phase_of_ring0);
        pl::wgmma_wait<0>();
        pl::wgmma_registers(v12);
        pl::wgmma_registers(v22);
        pl::wgmma_registers(v8);
        if (tells && (!(v15 == 1))) {
          pl::mbarrier_arrive(smem + (read1 == 0 ? 4 : (read1 - 1)) * 8 + 197680, 1);
        }
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            f16 o0[2];
            PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[e] = pl::to<f16>(v8[rj * 4 + g * 2 + e]);
            v22[rj * 4 + g * 2 >> 1] = pl::pack(o0[0], o0[1]);
          }
        }
        PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            PL_UNROLL for (i32 e = 0; e < 2; ++e) v12[rj * 4 + g * 2 + e] = v12[rj * 4 + g * 2 + e] * v5[g];
          }
        }
        pl::wgmma_registers(v8);
        pl::wgmma_fence();
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0, matrix1 + u64(read0) * 1024, false);
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0 + 2, matrix1 + u64(read0) * 1024 + 2, true);
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0 + 4, matrix1 + u64(read0) * 1024 + 4, true);
        pl::wgmma_m64n128k16_f32_f16_f16(v8, matrix0 + 6, matrix1 + u64(read0) * 1024 + 6, true);
        pl::wgmma_commit();
        pl::mbarrier_wait(smem + read1 * 8 + 16448, phase_of_ring1);
        pl::wgmma_registers(v12);
        pl::wgmma_registers(v22);
        pl::wgmma_fence();
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true>(v12, v22, matrix2 + u64(read1) * 1024, true);
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 4>(v12, v22, matrix2 + u64(read1) * 1024 + 128, true);
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 8>(v12, v22, matrix2 + u64(read1) * 1024 + 256, true);
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 12>(v12, v22, matrix2 + u64(read1) * 1024 + 384, true);
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 16>(v12, v22, matrix2 + u64(read1) * 1024 + 512, true);
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 20>(v12, v22, matrix2 + u64(read1) * 1024 + 640, true);
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 24>(v12, v22, matrix2 + u64(read1) * 1024 + 768, true);
        pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 28>(v12, v22, matrix2 + u64(read1) * 1024 + 896, true);
        pl::wgmma_commit();
        read1 = read1 == 4 ? 0 : (read1 + 1);
        phase_of_ring1 = read1 == 0 ? (phase_of_ring1 ^ 1) : phase_of_ring1;
        pl::wgmma_wait<1>();
        pl::wgmma_registers(v8);
        if (tells) {
          pl::mbarrier_arrive(smem + read0 * 8 + 197632, 1);
        }
        read0 = read0 == 4 ? 0 : (read0 + 1);
        phase_of_ring0 = read0 == 0 ? (phase_of_ring0 ^ 1) : phase_of_ring0;
        PL_UNROLL for (i32 r = 0; r < 64; ++r) v8[r] = v8[r];
        f32 v6[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = pl::min_value<f32>();
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Max(), acc[g], v8[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Max());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v6[a] = acc[a];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          const f32 x0 = pl::max(v14[g], v6[g] * 0x1.715476p-3f);
          v5[g] = pl::exp2_approx(v14[g] - x0);
        }
        PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            const f32 x0 = pl::max(v14[g], v6[g] * 0x1.715476p-3f);
            const f32 x1 = -x0;
            PL_UNROLL for (i32 e = 0; e < 2; ++e) v8[rj * 4 + g * 2 + e] = pl::exp2_approx(pl::fma(v8[rj * 4 + g * 2 + e], 0x1.715476p-3f, x1));
          }
        }
        f32 v3[2];
        {
          f32 acc[2];
          PL_UNROLL for (i32 a = 0; a < 2; ++a) acc[a] = 0.0f;
          PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[g] = pl::fold(pl::Sum(), acc[g], v8[rj * 4 + g * 2 + e]);
            }
          }
          pl::reduce_lanes<3>(acc, pl::Sum());
          PL_UNROLL for (i32 a = 0; a < 2; ++a) v3[a] = acc[a];
        }
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v14[g] = pl::max(v14[g], v6[g] * 0x1.715476p-3f);
        PL_UNROLL for (i32 g = 0; g < 2; ++g) v13[g] = pl::fma(v13[g], v5[g], v3[g]);
      }
      pl::wgmma_wait<0>();
      pl::wgmma_registers(v12);
      pl::wgmma_registers(v22);
      pl::wgmma_registers(v8);
      PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          f16 o0[2];
          PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[e] = pl::to<f16>(v8[rj * 4 + g * 2 + e]);
          v22[rj * 4 + g * 2 >> 1] = pl::pack(o0[0], o0[1]);
        }
      }
      PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          PL_UNROLL for (i32 e = 0; e < 2; ++e) v12[rj * 4 + g * 2 + e] = v12[rj * 4 + g * 2 + e] * v5[g];
        }
      }
      pl::mbarrier_wait(smem + read1 * 8 + 16448, phase_of_ring1);
      pl::wgmma_registers(v12);
      pl::wgmma_registers(v22);
      pl::wgmma_fence();
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true>(v12, v22, matrix2 + u64(read1) * 1024, true);
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 4>(v12, v22, matrix2 + u64(read1) * 1024 + 128, true);
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 8>(v12, v22, matrix2 + u64(read1) * 1024 + 256, true);
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 12>(v12, v22, matrix2 + u64(read1) * 1024 + 384, true);
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 16>(v12, v22, matrix2 + u64(read1) * 1024 + 512, true);
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 20>(v12, v22, matrix2 + u64(read1) * 1024 + 640, true);
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 24>(v12, v22, matrix2 + u64(read1) * 1024 + 768, true);
      pl::wgmma_m64n64k16_f32_f16_f16_rs<true, 0, 28>(v12, v22, matrix2 + u64(read1) * 1024 + 896, true);
      pl::wgmma_commit();
      pl::wgmma_registers(v12);
      pl::wgmma_registers(v22);
      pl::wgmma_wait<0>();
      pl::wgmma_registers(v12);
      pl::wgmma_registers(v22);
      if (tells) {
        pl::mbarrier_arrive(smem + read1 * 8 + 197680, 1);
      }
      read1 = read1 == 4 ? 0 : (read1 + 1);
      phase_of_ring1 = read1 == 0 ? (phase_of_ring1 ^ 1) : phase_of_ring1;
    }
    // st.v2 / ld.v4, 2 steps of 16384 B
    f32 v25[32];
    {
      const u32 scratch = smem + 16496;
      const u32 st = (t & 15) << 3 | (t & 16) << 6 | (t & 96) << 7;
      const u32 ld = (t & 24) << 2 ^ (t & 7) << 4 ^ (t & 224) << 5 ^ (t & 7) << 7;
      { f32 w[2] = {v12[0], v12[1]}; pl::store_shared<2>(scratch + st, w, (t & 128) == 0); }
      { f32 w[2] = {v12[2], v12[3]}; pl::store_shared<2>(scratch + st + 2048, w, (t & 128) == 0); }
      { f32 w[2] = {v12[4], v12[5]}; pl::store_shared<2>(scratch + (st ^ 16) + 128, w, (t & 128) == 0); }
      { f32 w[2] = {v12[6], v12[7]}; pl::store_shared<2>(scratch + (st ^ 16) + 2176, w, (t & 128) == 0); }
      { f32 w[2] = {v12[8], v12[9]}; pl::store_shared<2>(scratch + (st ^ 32) + 256, w, (t & 128) == 0); }
      { f32 w[2] = {v12[10], v12[11]}; pl::store_shared<2>(scratch + (st ^ 32) + 2304, w, (t & 128) == 0); }
      { f32 w[2] = {v12[12], v12[13]}; pl::store_shared<2>(scratch + (st ^ 48) + 384, w, (t & 128) == 0); }
      { f32 w[2] = {v12[14], v12[15]}; pl::store_shared<2>(scratch + (st ^ 48) + 2432, w, (t & 128) == 0); }
      { f32 w[2] = {v12[16], v12[17]}; pl::store_shared<2>(scratch + (st ^ 64) + 512, w, (t & 128) == 0); }
      { f32 w[2] = {v12[18], v12[19]}; pl::store_shared<2>(scratch + (st ^ 64) + 2560, w, (t & 128) == 0); }
      { f32 w[2] = {v12[20], v12[21]}; pl::store_shared<2>(scratch + (st ^ 80) + 640, w, (t & 128) == 0); }
      { f32 w[2] = {v12[22], v12[23]}; pl::store_shared<2>(scratch + (st ^ 80) + 2688, w, (t & 128) == 0); }
      { f32 w[2] = {v12[24], v12[25]}; pl::store_shared<2>(scratch + (st ^ 96) + 768, w, (t & 128) == 0); }
      { f32 w[2] = {v12[26], v12[27]}; pl::store_shared<2>(scratch + (st ^ 96) + 2816, w, (t & 128) == 0); }
      { f32 w[2] = {v12[28], v12[29]}; pl::store_shared<2>(scratch + (st ^ 112) + 896, w, (t & 128) == 0); }
      { f32 w[2] = {v12[30], v12[31]}; pl::store_shared<2>(scratch + (st ^ 112) + 2944, w, (t & 128) == 0); }
      pl::program_sync<8>();
      { f32 w[4]; pl::load_shared<4>(w, scratch + ld); v25[0] = w[0]; v25[1] = w[1]; v25[2] = w[2]; v25[3] = w[3]; }
      { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16)); v25[4] = w[0]; v25[5] = w[1]; v25[6] = w[2]; v25[7] = w[3]; }
      { f32 w[4]; pl::load_shared<4>(w, scratch + ld + 8192); v25[8] = w[0]; v25[9] = w[1]; v25[10] = w[2]; v25[11] = w[3]; }
      { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16) + 8192); v25[12] = w[0]; v25[13] = w[1]; v25[14] = w[2]; v25[15] = w[3]; }
      pl::program_sync<8>();
      { f32 w[2] = {v12[0], v12[1]}; pl::store_shared<2>(scratch + st, w, (t & 128) == 128); }
      { f32 w[2] = {v12[2], v12[3]}; pl::store_shared<2>(scratch + st + 2048, w, (t & 128) == 128); }
      { f32 w[2] = {v12[4], v12[5]}; pl::store_shared<2>(scratch + (st ^ 16) + 128, w, (t & 128) == 128); }
      { f32 w[2] = {v12[6], v12[7]}; pl::store_shared<2>(scratch + (st ^ 16) + 2176, w, (t & 128) == 128); }
      { f32 w[2] = {v12[8], v12[9]}; pl::store_shared<2>(scratch + (st ^ 32) + 256, w, (t & 128) == 128); }
      { f32 w[2] = {v12[10], v12[11]}; pl::store_shared<2>(scratch + (st ^ 32) + 2304, w, (t & 128) == 128); }
      { f32 w[2] = {v12[12], v12[13]}; pl::store_shared<2>(scratch + (st ^ 48) + 384, w, (t & 128) == 128); }
      { f32 w[2] = {v12[14], v12[15]}; pl::store_shared<2>(scratch + (st ^ 48) + 2432, w, (t & 128) == 128); }
      { f32 w[2] = {v12[16], v12[17]}; pl::store_shared<2>(scratch + (st ^ 64) + 512, w, (t & 128) == 128); }
      { f32 w[2] = {v12[18], v12[19]}; pl::store_shared<2>(scratch + (st ^ 64) + 2560, w, (t & 128) == 128); }
      { f32 w[2] = {v12[20], v12[21]}; pl::store_shared<2>(scratch + (st ^ 80) + 640, w, (t & 128) == 128); }
      { f32 w[2] = {v12[22], v12[23]}; pl::store_shared<2>(scratch + (st ^ 80) + 2688, w, (t & 128) == 128); }
      { f32 w[2] = {v12[24], v12[25]}; pl::store_shared<2>(scratch + (st ^ 96) + 768, w, (t & 128) == 128); }
      { f32 w[2] = {v12[26], v12[27]}; pl::store_shared<2>(scratch + (st ^ 96) + 2816, w, (t & 128) == 128); }
      { f32 w[2] = {v12[28], v12[29]}; pl::store_shared<2>(scratch + (st ^ 112) + 896, w, (t & 128) == 128); }
      { f32 w[2] = {v12[30], v12[31]}; pl::store_shared<2>(scratch + (st ^ 112) + 2944, w, (t & 128) == 128); }
      pl::program_sync<8>();
      { f32 w[4]; pl::load_shared<4>(w, scratch + ld); v25[16] = w[0]; v25[17] = w[1]; v25[18] = w[2]; v25[19] = w[3]; }
      { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16)); v25[20] = w[0]; v25[21] = w[1]; v25[22] = w[2]; v25[23] = w[3]; }
      { f32 w[4]; pl::load_shared<4>(w, scratch + ld + 8192); v25[24] = w[0]; v25[25] = w[1]; v25[26] = w[2]; v25[27] = w[3]; }
      { f32 w[4]; pl::load_shared<4>(w, scratch + (ld ^ 16) + 8192); v25[28] = w[0]; v25[29] = w[1]; v25[30] = w[2]; v25[31] = w[3]; }
    }
    // st.v1 / ld.v4, 1 step of 512 B
    f32 v27[4];
    {
      const u32 scratch = smem + 32880;
      const u32 st = (t >> 4 & 12) | (t & 28) << 2 | (t & 32) << 3;
      const u32 ld = (t & 248) << 1;
      { f32 w[1] = {v13[0]}; pl::store_shared<1>(scratch + st, w, (t & 3) == 0); }
      { f32 w[1] = {v13[1]}; pl::store_shared<1>(scratch + st + 128, w, (t & 3) == 0); }
      pl::program_sync<8>();
      { f32 w[4]; pl::load_shared<4>(w, scratch + ld); v27[0] = w[0]; v27[1] = w[1]; v27[2] = w[2]; v27[3] = w[3]; }
    }
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      f16 o0[8];
      PL_UNROLL for (i32 e = 0; e < 8; ++e) o0[e] = pl::to<f16>(v25[ri * 8 + e] * pl::rcp_approx(v27[ri]));
      pl::store_global<8>(out0 + (at0 + j_b + i_b * 64 + ri * 2048), o0, i_b + ri * 32 < size0);
    }
  }
}
PL_EXPORT(attention_kernel)
