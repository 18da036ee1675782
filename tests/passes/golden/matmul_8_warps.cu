PL_KERNEL(384) matmul_kernel(const f16* in0, const f16* in1, f32* out0, PL_TENSOR_MAP(map0), PL_TENSOR_MAP(map1)) {
  const u32 smem = pl::shared_base();
  const u32 warpgroup = pl::warpgroup();
  const i32 t = pl::program_thread();
  const u32 warp = pl::warp();
  if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
    pl::tma_prefetch_map(map0);
    pl::tma_prefetch_map(map1);
    pl::mbarrier_init(smem, 1);
    pl::mbarrier_init(smem + 8, 1);
    pl::mbarrier_init(smem + 16, 1);
    pl::mbarrier_init(smem + 24, 1);
    pl::mbarrier_init(smem + 32, 1);
    pl::mbarrier_init(smem + 48, 2);
    pl::mbarrier_init(smem + 56, 2);
    pl::mbarrier_init(smem + 64, 2);
    pl::mbarrier_init(smem + 72, 2);
    pl::mbarrier_init(smem + 80, 2);
    pl::fence_mbarrier_init();
  }
  pl::block_sync();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % 8);
  const i32 p0 = i32(block >> 3);
  const i32 start0 = p0 * 128;
  const i32 start2 = p1 * 128;
  const i32 at2 = start2 + start0 * 1024;
  const u64 matrix0 = pl::matrix_descriptor(smem + 1024 + warpgroup * 4096, 16, 512, 64);
  const u64 matrix1 = pl::matrix_descriptor(smem + 9216, 4096, 1024, 128);
  const bool tells = t % 128 == 0;
  const i32 i = (t >> 2 & 7) + (t >> 1 & 112);
  const i32 j = (t & 3) * 2;
  if (warpgroup == 2) {
    pl::setmaxnreg_dec<24>();
    if (warp == 0 && pl::elect_one()) {
      u32 fill0 = 0u;
      u32 phase_of_fill0 = 0u;
      PL_NOUNROLL for (i32 p2 = 0; p2 < 8; ++p2) {
        const i32 start1 = p2 * 32;
        pl::mbarrier_wait(smem + fill0 * 8 + 48, phase_of_fill0 ^ 1);
        pl::mbarrier_arrive_expect_tx(smem + fill0 * 8, 16384);
        pl::tma_load(smem + fill0 * 16384 + 1024, map0, smem + fill0 * 8, {start1, start0});
        pl::tma_load(smem + fill0 * 16384 + 9216, map1, smem + fill0 * 8, {start2, start1});
        pl::tma_load(smem + fill0 * 16384 + 9216 + 4096, map1, smem + fill0 * 8, {start2 + 64, start1});
        fill0 = fill0 == 4 ? 0 : (fill0 + 1);
        phase_of_fill0 = fill0 == 0 ? (phase_of_fill0 ^ 1) : phase_of_fill0;
      }
    }
  } else {
    pl::setmaxnreg_inc<240>();
    f32 v0[64];
    bool v0_stored = false;
    pl::wgmma_registers(v0);
    u32 phase_of_ring0 = 0u;
    PL_NOUNROLL for (i32 p2 = 0; p2 < 5; p2 += 5) {
      _Pragma("unroll 5") for (i32 slot0 = 0; slot0 < 5; ++slot0) {
        const i32 now0 = p2 + slot0;
        const i32 v4 = now0;
        const bool v3 = v4 == 0;
        pl::mbarrier_wait(smem + u32(slot0) * 8, phase_of_ring0);
        if (!v3) pl::check(v0_stored, "outputs[0] is read before anything was stored there");
        pl::wgmma_registers(v0);
        pl::wgmma_fence();
        pl::wgmma_m64n128k16_f32_f16_f16_x2<false, true>(v0, matrix0 + u64(slot0) * 1024, matrix1 + u64(slot0) * 1024, matrix0 + u64(slot0) * 1024 + 2, matrix1 + u64(slot0) * 1024 + 128, !v3);
        pl::wgmma_commit();
        pl::wgmma_wait<1>();
        pl::wgmma_registers(v0);
        v0_stored = true;
        if (tells && (!((slot0 == 0) && (p2 == 0)))) {
          pl::mbarrier_arrive(smem + u32(slot0 == 0 ? 4 : (slot0 - 1)) * 8 + 48, 1);
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
      pl::wgmma_m64n128k16_f32_f16_f16_x2<false, true>(v0, matrix0 + u64(slot0) * 1024, matrix1 + u64(slot0) * 1024, matrix0 + u64(slot0) * 1024 + 2, matrix1 + u64(slot0) * 1024 + 128, !v3);
      pl::wgmma_commit();
      pl::wgmma_wait<1>();
      pl::wgmma_registers(v0);
      v0_stored = true;
      if (tells && (!(last0 == 0))) {
        pl::mbarrier_arrive(smem + u32(slot0 == 0 ? 4 : (slot0 - 1)) * 8 + 48, 1);
      }
    }
    pl::wgmma_wait<0>();
    pl::wgmma_registers(v0);
    PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
      PL_UNROLL for (i32 g = 0; g < 2; ++g) {
        pl::store_global<2>(out0 + (at2 + j + i * 1024) + rj * 8 + g * 8192, v0 + rj * 4 + g * 2, pl::was_stored(v0_stored));
      }
    }
  }
}
PL_EXPORT(matmul_kernel)
