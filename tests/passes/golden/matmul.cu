PL_KERNEL(128) matmul_kernel(const f32* in0, const f32* in1, f32* out0, i64 s0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 block = pl::block_x();
  const i32 p1 = block % 5;
  const i32 p0 = block / 5;
  f32 v0[32] = {};
  bool v0_stored = false;
  const i64 start0 = i64(p0) * 64;
  const i32 size0 = i32(pl::min(s0 - start0, i64(64)));
  const i32 start1 = p1 * 64;
  const i32 size1 = pl::min(300 - start1, 64);
  f32* w2 = out0 + i64(start1) + start0 * 300;
  const i32 i = (t >> 3 & 15);
  const i32 j = (t & 7) * 4;
  PL_UNROLL for (i32 r = 0; r < 32; ++r) v0[r] = 0.0f;
  v0_stored = true;
  const i32 i_b = (t >> 4 & 7);
  const i32 j_b = (t & 15) * 4;
  PL_NOUNROLL for (i32 p2 = 0; p2 < 22; ++p2) {
    const i32 start2 = p2 * 32;
    const i32 size2 = pl::min(700 - start2, 32);
    const f32* w0 = in0 + i64(start2) + start0 * 700;
    const i32 at0 = start1 + start2 * 300;
    const i32 v5 = p2;
    const i32 v3 = pl::mul(v5, 32);
    const i32 sx0 = pl::sub(700, v3);
    const i32 v2 = sx0;
    pl::warpgroup_sync();
    {
      f32 a0[16];
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::load_global_nc<4>(a0 + ri * 4, w0 + (j + i * 700 + ri * 11200), j < size2 && i + ri * 16 < size0);
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        f32 o1[4];
        PL_UNROLL for (i32 e = 0; e < 4; ++e) {
          o1[e] = ((j + e) < v2) ? a0[ri * 4 + e] : 0.0f;
        }
        pl::store_shared<4>(smem + (j + i * 36 + ri * 576) * 4, o1);
      }
    }
    {
      f32 a0[16];
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::load_global_nc<4>(a0 + ri * 4, in1 + (at0 + j_b + i_b * 300 + ri * 2400), j_b < size1 && i_b + ri * 8 < size2);
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        const bool x1 = (i_b + ri * 8) < v2;
        f32 o2[4];
        PL_UNROLL for (i32 e = 0; e < 4; ++e) o2[e] = x1 ? a0[ri * 4 + e] : 0.0f;
        pl::store_shared<4>(smem + 9216 + (j_b + i_b * 68 + ri * 544) * 4, o2);
      }
    }
    pl::warpgroup_sync();
    pl::check(v0_stored, "outputs[0] is read before anything was stored there");
    pl::dot_fma<4, 2, 4, 8, 16, false, false, f32, f32>(v0, smem, 144, smem + 9216, 272, 32);
    v0_stored = true;
  }
  PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
    PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
      pl::store_global<4>(w2 + (j + rj * 32 + i * 300 + ri * 4800), v0 + ri * 8 + rj * 4, j + rj * 32 < size1 && i + ri * 16 < size0 && pl::was_stored(v0_stored));
    }
  }
}
PL_EXPORT(matmul_kernel)
