// C (m x n) = A (m x k) times B (n x k) transposed, bf16 with sums in f32, by TMA and wgmma.
//
// Warpgroup 0 copies, warpgroups 1 and 2 multiply 64 rows each and store. A ring of STAGES stages
// lies between them: full[s] says that a stage has come, empty[s] that it may be overwritten. The
// CLUSTER blocks of a cluster have consecutive rows and load a part of B each, for all of them.
// FAULT leaves out or spoils one thing; 0 is correct.
constexpr i32 BN = {BN}, CLUSTER = {CLUSTER}, STAGES = {STAGES}, FAULT = {FAULT};
constexpr i32 BM = 128, BK = 64;
constexpr u32 A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, C_BYTES = 64 * 64 * 2;
constexpr u32 A = 0, B = A + STAGES * A_BYTES, C = B + STAGES * B_BYTES;
constexpr u32 FULL = C + 4 * C_BYTES, EMPTY = FULL + 8 * STAGES;

PL_KERNEL(384) gemm(PL_TENSOR_MAP(a), PL_TENSOR_MAP(b), PL_TENSOR_MAP(c), i32 k) {
  const u32 smem = pl::shared_base(), full = smem + FULL, empty = smem + EMPTY;
  const u32 warpgroup = pl::warpgroup(), t = pl::thread();
  const u32 rank = pl::cluster_rank();
  const i32 m0 = pl::block_x() * BM, n0 = pl::block_y() * BN, steps = (k + BK - 1) / BK;
  pl::name_shared(smem + A, STAGES * A_BYTES, "A");
  pl::name_shared(smem + B, STAGES * B_BYTES, "B");
  pl::name_shared(smem + C, 4 * C_BYTES, "C");
  if (warpgroup == 0 && t == 0) {
    PL_UNROLL for (i32 s = 0; s < STAGES; ++s) {
      pl::name_shared(full + 8 * s, 8, "full", s);
      pl::name_shared(empty + 8 * s, 8, "empty", s);
      pl::mbarrier_init(full + 8 * s, 1);  // init full
      pl::mbarrier_init(empty + 8 * s, FAULT == 11 ? 2 * CLUSTER + 1 : 2 * CLUSTER);  // init empty
    }
    if (FAULT != 12) pl::fence_mbarrier_init();
  }
  if (FAULT == 13) {
  } else if (CLUSTER > 1 && FAULT != 14) {
    pl::cluster_sync();
  } else {
    pl::block_sync();
  }

  if (warpgroup == 0) {
    pl::setmaxnreg_dec<40>();
    if (pl::warp() == 0 && pl::elect_one()) {
      u32 s = 0, phase = 0;
      PL_NOUNROLL for (i32 i = 0; i < steps; ++i) {
        if (FAULT != 1) pl::mbarrier_wait(empty + 8 * s, phase ^ 1);  // wait empty
        const u32 bar = full + 8 * s, bytes = A_BYTES + B_BYTES;
        pl::mbarrier_arrive_expect_tx(bar, FAULT == 2 ? bytes + 16 : FAULT == 17 ? bytes - 16 : bytes);  // expect
        pl::tma_load(smem + A + s * A_BYTES, a, bar, {i * BK, m0});  // load A
        if (CLUSTER == 1) {
          pl::tma_load(smem + B + s * B_BYTES, b, bar, {i * BK, n0});  // load B
        } else {
          const u32 part = rank * (B_BYTES / CLUSTER);
          pl::tma_load_multicast(smem + B + s * B_BYTES + part, b, bar, (1 << CLUSTER) - 1,  // multicast B
                                 {i * BK, n0 + i32(rank) * (BN / CLUSTER)});
        }
        if (++s == STAGES) {
          s = 0;
          phase ^= 1;
        }
      }
    }
  } else {
    pl::setmaxnreg_inc<232>();
    const u32 w = warpgroup - 1;
    f32 d[BN / 2];
    const u64 first_a = pl::matrix_descriptor(smem + A + w * (64 * BK * 2), 16, 1024, 128);
    const u64 first_b = pl::matrix_descriptor(smem + B, 16, FAULT == 15 ? 512 : 1024, 128);
    u32 s = 0, phase = 0, last = 0;
    PL_NOUNROLL for (i32 i = 0; i < steps; ++i) {
      if (FAULT != 3) pl::mbarrier_wait(full + 8 * s, phase);  // wait full
      const u64 at_a = first_a + (s * A_BYTES >> 4), at_b = first_b + (s * B_BYTES >> 4);
      pl::wgmma_registers(d);
      if (FAULT != 4) pl::wgmma_fence();
      PL_UNROLL for (i32 kk = 0; kk < BK / 16; ++kk) {
        pl::wgmma_m64n{BN}k16_f32_bf16_bf16(d, at_a + 2 * kk, at_b + 2 * kk, i + kk > 0);  // multiply
      }
      pl::wgmma_commit();
      pl::wgmma_registers(d);
      if (FAULT == 5) last = s;
      if (FAULT != 5) pl::wgmma_wait<1>();
      if ((i > 0 || FAULT == 5) && t < CLUSTER) {  // the stage before this one is free
        if (CLUSTER > 1) {
          pl::mbarrier_arrive_remote(pl::mapa(empty + 8 * last, t));  // release in cluster
        } else {
          pl::mbarrier_arrive(empty + 8 * last);  // release
        }
      }
      last = s;
      if (++s == STAGES) {
        s = 0;
        phase ^= 1;
      }
    }
    if (FAULT != 6) pl::wgmma_wait<0>();
    pl::wgmma_registers(d);

    // Panels of 64 columns through two buffers of swizzled shared memory.
    const u32 lane = pl::lane(), row = pl::warp() * 16 + lane % 16;
    PL_UNROLL for (i32 panel = 0; panel < BN / 64; ++panel) {
      const u32 buffer = smem + C + (w * 2 + panel % 2) * C_BYTES;
      if (panel >= 2) {
        if (t == 0 && FAULT != 16) pl::bulk_wait_read<1>();
        pl::warpgroup_sync<3>();
      }
      PL_UNROLL for (i32 j = 0; j < 8; j += 2) {
        bf16 fragment[8];
        PL_UNROLL for (i32 e = 0; e < 8; ++e) fragment[e] = pl::to<bf16>(d[32 * panel + 4 * j + e]);  // convert
        const u32 chunk = (j + lane / 16) ^ row % 8;
        pl::stmatrix_x4(buffer + row * 128 + chunk * 16, fragment);  // write C
      }
      if (FAULT != 7) pl::fence_async_shared();
      if (FAULT != 8) pl::warpgroup_sync<3>();
      if (t == 0) {
        pl::tma_store(c, buffer, {n0 + 64 * panel, m0 + 64 * i32(w)});  // store C
        pl::bulk_commit();
      }
    }
    if (t == 0 && FAULT != 9) pl::bulk_wait_read<0>();
  }
  if (CLUSTER > 1 && FAULT != 10) pl::cluster_sync();  // leave
}
PL_EXPORT(gemm)
