PL_KERNEL(128) matmul_kernel(const bf16* in0, const bf16* in1, f32* out0, PL_TENSOR_MAP(map0), PL_TENSOR_MAP(map1)) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 warp = pl::warp();
  if (warp == 0 && pl::elect_one()) {
    pl::tma_prefetch_map(map0);
    pl::tma_prefetch_map(map1);
    pl::mbarrier_init(smem, 1);
    pl::mbarrier_init(smem + 8, 1);
    pl::mbarrier_init(smem + 16, 1);
    pl::mbarrier_init(smem + 24, 1);
    pl::mbarrier_init(smem + 32, 1);
    pl::fence_mbarrier_init();
  }
  pl::warpgroup_sync();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % 8);
  const i32 p0 = i32(block >> 3);
  f32 v0[32];
  bool v0_stored = false;
  const i32 start0 = p0 * 64;
  const i32 start1 = p1 * 64;
  const i32 at0 = start1 + start0 * 512;
  PL_NOUNROLL for (i32 early0 = 0; early0 < 4; ++early0) {
    if (early0 < 8) {
      const i32 turn0 = early0;
      const i32 start2 = turn0 * 32;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + u32(early0) * 8, 8192);
        pl::tma_load(smem + u32(early0) * 8192 + 512, map0, smem + u32(early0) * 8, {start2, start0});
        pl::tma_load(smem + u32(early0) * 8192 + 4608, map1, smem + u32(early0) * 8, {start2, start1});
      }
    }
  }
  pl::wgmma_registers(v0);
  u32 phase_of_ring0 = 0u;
  const u64 matrix0 = pl::matrix_descriptor(smem + 512, 16, 512, 64);
  const u64 matrix1 = pl::matrix_descriptor(smem + 4608, 16, 512, 64);
  PL_NOUNROLL for (i32 p2 = 0; p2 < 5; p2 += 5) {
    _Pragma("unroll 5") for (i32 slot0 = 0; slot0 < 5; ++slot0) {
      const i32 now0 = p2 + slot0;
      const i32 v4 = now0;
      const bool v3 = v4 == 0;
      pl::mbarrier_wait(smem + u32(slot0) * 8, phase_of_ring0);
      if (!v3) pl::check(v0_stored, "outputs[0] is read before anything was stored there");
      pl::wgmma_registers(v0);
      pl::wgmma_fence();
      pl::wgmma_m64n64k16_f32_bf16_bf16_x2(v0, matrix0 + u64(slot0) * 512, matrix1 + u64(slot0) * 512, matrix0 + u64(slot0) * 512 + 2, matrix1 + u64(slot0) * 512 + 2, !v3);
      pl::wgmma_commit();
      pl::wgmma_wait<1>();
      pl::wgmma_registers(v0);
      v0_stored = true;
      pl::warpgroup_sync();
      if (now0 + 4 < 8) {
        const i32 turn0 = now0 + 4;
        const i32 start4 = turn0 * 32;
        if (warp == 0 && pl::elect_one()) {
          pl::mbarrier_arrive_expect_tx(smem + u32((slot0 + 4) % 5) * 8, 8192);
          pl::tma_load(smem + u32((slot0 + 4) % 5) * 8192 + 512, map0, smem + u32((slot0 + 4) % 5) * 8, {start4, start0});
          pl::tma_load(smem + u32((slot0 + 4) % 5) * 8192 + 4608, map1, smem + u32((slot0 + 4) % 5) * 8, {start4, start1});
        }
      }
    }
    phase_of_ring0 = phase_of_ring0 ^ 1;
  }
  pl::wgmma_registers(v0);
  PL_NOUNROLL for (i32 slot0 = 0; slot0 < 3; ++slot0) {
    const i32 last0 = slot0 + 5;
    const i32 v4 = last0;
    const bool v3 = v4 == 0;
    pl::mbarrier_wait(smem + u32(slot0) * 8, phase_of_ring0);
    if (!v3) pl::check(v0_stored, "outputs[0] is read before anything was stored there");
    pl::wgmma_registers(v0);
    pl::wgmma_fence();
    pl::wgmma_m64n64k16_f32_bf16_bf16_x2(v0, matrix0 + u64(slot0) * 512, matrix1 + u64(slot0) * 512, matrix0 + u64(slot0) * 512 + 2, matrix1 + u64(slot0) * 512 + 2, !v3);
    pl::wgmma_commit();
    pl::wgmma_wait<1>();
    pl::wgmma_registers(v0);
    v0_stored = true;
    pl::warpgroup_sync();
    if (last0 + 4 < 8) {
      const i32 turn0 = last0 + 4;
      const i32 start6 = turn0 * 32;
      if (warp == 0 && pl::elect_one()) {
        pl::mbarrier_arrive_expect_tx(smem + u32((slot0 + 4) % 5) * 8, 8192);
        pl::tma_load(smem + u32((slot0 + 4) % 5) * 8192 + 512, map0, smem + u32((slot0 + 4) % 5) * 8, {start6, start0});
        pl::tma_load(smem + u32((slot0 + 4) % 5) * 8192 + 4608, map1, smem + u32((slot0 + 4) % 5) * 8, {start6, start1});
      }
    }
  }
  pl::wgmma_wait<0>();
  pl::wgmma_registers(v0);
  const i32 i = (t >> 2 & 7) + (t >> 1 & 48);
  const i32 j = (t & 3) * 2;
  PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
    PL_UNROLL for (i32 g = 0; g < 2; ++g) {
      pl::store_global<2>(out0 + (at0 + j + i * 512) + rj * 8 + g * 4096, v0 + rj * 4 + g * 2, pl::was_stored(v0_stored));
    }
  }
}
PL_EXPORT(matmul_kernel)
