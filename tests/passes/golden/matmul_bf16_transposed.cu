PL_KERNEL(128) matmul_kernel(const bf16* in0, const bf16* in1, f32* out0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 block = pl::block_x();
  const i32 p1 = block % 8;
  const i32 p0 = block / 8;
  f32 v0[32] = {};
  bool v0_stored = false;
  const i32 start0 = p0 * 64;
  const i32 start1 = p1 * 64;
  const i32 at0 = start1 + start0 * 512;
  const i32 i = (t >> 2 & 7) + (t >> 1 & 16);
  const i32 j = (t >> 3 & 8) + (t & 3) * 2;
  const i32 i_b = (t >> 2 & 31);
  const i32 j_b = (t & 3) * 8;
  PL_NOUNROLL for (i32 p2 = 0; p2 < 8; ++p2) {
    const i32 start2 = p2 * 32;
    const i32 at1 = start2 + start0 * 256;
    const i32 at2 = start2 + start1 * 256;
    const i32 v4 = p2;
    const bool v3 = v4 == 0;
    if (v3) {
      PL_UNROLL for (i32 r = 0; r < 32; ++r) v0[r] = 0.0f;
      v0_stored = true;
    }
    pl::warpgroup_sync();
    {
      bf16 a0[16];
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        pl::load_global_nc<8>(a0 + ri * 8, in0 + (at1 + j_b + i_b * 256 + ri * 8192));
      }
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        bf16 o1[8];
        PL_UNROLL for (i32 e = 0; e < 8; ++e) o1[e] = a0[ri * 8 + e];
        pl::store_shared<8>(smem + (j_b + i_b * 40 + ri * 1280) * 2, o1);
      }
    }
    {
      bf16 a0[16];
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        pl::load_global_nc<8>(a0 + ri * 8, in1 + (at2 + j_b + i_b * 256 + ri * 8192));
      }
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        bf16 o1[8];
        PL_UNROLL for (i32 e = 0; e < 8; ++e) o1[e] = a0[ri * 8 + e];
        pl::store_shared<8>(smem + 5120 + (j_b + i_b * 40 + ri * 1280) * 2, o1);
      }
    }
    pl::warpgroup_sync();
    pl::check(v0_stored, "outputs[0] is read before anything was stored there");
    pl::dot_mma_16816<2, 4, 2, false, true, bf16>(v0, smem, 80, smem + 5120, 80, 32);
    v0_stored = true;
  }
  PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
    PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
      PL_UNROLL for (i32 g = 0; g < 2; ++g) {
        pl::store_global<2>(out0 + (at0 + j + rj * 16 + i * 512 + ri * 16384 + g * 4096), v0 + ri * 16 + rj * 4 + g * 2, pl::was_stored(v0_stored));
      }
    }
  }
}
PL_EXPORT(matmul_kernel)
