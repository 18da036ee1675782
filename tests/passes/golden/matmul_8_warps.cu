PL_KERNEL(256) matmul_kernel(const f16* in0, const f16* in1, f32* out0) {
  const u32 smem = pl::shared_base();
  const u32 warpgroup = pl::warpgroup();
  const i32 t = pl::program_thread();
  const i32 block = pl::block_x();
  const i32 p1 = block % 8;
  const i32 p0 = block / 8;
  f32 v0[64];
  bool v0_stored = false;
  const i32 start0 = p0 * 128;
  const i32 start1 = p1 * 128;
  const i32 at0 = start1 + start0 * 1024;
  const i32 i = (t >> 2 & 63);
  const i32 j = (t & 3) * 8;
  const i32 i_b = (t >> 4 & 15);
  const i32 j_b = (t & 15) * 8;
  const u64 matrix0 = pl::matrix_descriptor(smem + warpgroup * 4096, 16, 512, 64);
  const u64 matrix1 = pl::matrix_descriptor(smem + 8192, 4096, 1024, 128);
  PL_NOUNROLL for (i32 p2 = 0; p2 < 8; ++p2) {
    const i32 start2 = p2 * 32;
    const i32 at1 = start2 + start0 * 256;
    const i32 at2 = start1 + start2 * 1024;
    const i32 v4 = p2;
    const bool v3 = v4 == 0;
    pl::program_sync<8>();
    {
      const i32 n0 = (i & 7);
      const i32 n1 = j ^ (n0 >> 1 & 3) * 8;
      f16 a2[16];
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        pl::load_global_nc<8>(a2 + ri * 8, in0 + (at1 + j + i * 256 + ri * 16384));
      }
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        f16 o3[8];
        PL_UNROLL for (i32 e = 0; e < 8; ++e) o3[e] = a2[ri * 8 + e];
        pl::store_shared<8>(smem + (n1 + i * 32 + ri * 2048) * 2, o3);
      }
    }
    {
      const i32 n0 = (j_b >> 6 & 1);
      const i32 n1 = (j_b & 63);
      const i32 n2 = (i_b & 7);
      const i32 n3 = n1 ^ n2 * 8;
      f16 a4[16];
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        pl::load_global_nc<8>(a4 + ri * 8, in1 + (at2 + j_b + i_b * 1024 + ri * 16384));
      }
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        f16 o5[8];
        PL_UNROLL for (i32 e = 0; e < 8; ++e) o5[e] = a4[ri * 8 + e];
        pl::store_shared<8>(smem + 8192 + (n3 + i_b * 64 + ri * 1024 + n0 * 2048) * 2, o5);
      }
    }
    pl::fence_async_shared();
    pl::program_sync<8>();
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
  const i32 i_c = (t >> 2 & 7) + (t >> 1 & 112);
  const i32 j_c = (t & 3) * 2;
  PL_UNROLL for (i32 rj = 0; rj < 16; ++rj) {
    PL_UNROLL for (i32 g = 0; g < 2; ++g) {
      pl::store_global<2>(out0 + (at0 + j_c + rj * 8 + i_c * 1024 + g * 8192), v0 + rj * 4 + g * 2, pl::was_stored(v0_stored));
    }
  }
}
PL_EXPORT(matmul_kernel)
