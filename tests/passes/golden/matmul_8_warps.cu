PL_KERNEL(256) matmul_kernel(const f16* in0, const f16* in1, f32* out0, PL_TENSOR_MAP(map0), PL_TENSOR_MAP(map1)) {
  const u32 smem = pl::shared_base();
  const u32 warpgroup = pl::warpgroup();
  const i32 t = pl::program_thread();
  const u32 warp = pl::warp();
  if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
    pl::mbarrier_init(smem + 16384, 1);
    pl::fence_mbarrier_init();
  }
  pl::program_sync<8>();
  u32 phase0 = 0;
  const i32 block = pl::block_x();
  const i32 p1 = block % 8;
  const i32 p0 = block / 8;
  f32 v0[64];
  bool v0_stored = false;
  const i32 start0 = p0 * 128;
  const i32 start1 = p1 * 128;
  const i32 at0 = start1 + start0 * 1024;
  const u64 matrix0 = pl::matrix_descriptor(smem + warpgroup * 4096, 16, 512, 64);
  const u64 matrix1 = pl::matrix_descriptor(smem + 8192, 4096, 1024, 128);
  PL_NOUNROLL for (i32 p2 = 0; p2 < 8; ++p2) {
    const i32 start2 = p2 * 32;
    const i32 v4 = p2;
    const bool v3 = v4 == 0;
    pl::program_sync<8>();
    if (warpgroup == 0 && warp == 0 && pl::elect_one()) {
      pl::mbarrier_arrive_expect_tx(smem + 16384, 16384);
      pl::tma_load(smem, map0, smem + 16384, {start2, start0});
      pl::tma_load(smem + 8192, map1, smem + 16384, {start1, start2});
      pl::tma_load(smem + 8192 + 4096, map1, smem + 16384, {start1 + 64, start2});
    }
    pl::mbarrier_wait(smem + 16384, phase0);
    phase0 = phase0 ^ 1;
    if (!v3) pl::check(v0_stored, "outputs[0] is read before anything was stored there");
    pl::wgmma_registers(v0);
    pl::wgmma_fence();
    pl::wgmma_m64n128k16_f32_f16_f16<false, true>(v0, matrix0, matrix1, !v3);
    pl::wgmma_m64n128k16_f32_f16_f16<false, true>(v0, matrix0 + 2, matrix1 + 128, true);
    pl::wgmma_commit();
    pl::wgmma_registers(v0);
    pl::wgmma_wait<0>();
    pl::wgmma_registers(v0);
    v0_stored = true;
  }
  const i32 i = (t >> 2 & 7) + (t >> 1 & 112);
  const i32 j = (t & 3) * 2;
  PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
    PL_UNROLL for (i32 g = 0; g < 2; ++g) {
      pl::store_global<2>(out0 + (at0 + j + rj * 8 + i * 1024 + g * 8192), v0 + rj * 4 + g * 2, pl::was_stored(v0_stored));
    }
  }
}
PL_EXPORT(matmul_kernel)
