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
  u32 read0 = 0u;
  u32 fill0 = 0u;
  const i32 i_b = (t >> 4 & 7);
  const i32 j_b = (t & 15) * 4;
  PL_NOUNROLL for (i32 early0 = 0; early0 < 2; ++early0) {
    if (early0 < 22) {
      const i32 turn0 = early0;
      const i32 start2 = turn0 * 32;
      const i32 size2 = pl::min(700 - start2, 32);
      const f32* w0 = in0 + i64(start2) + start0 * 700;
      const i32 at0 = start1 + start2 * 300;
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + (j + i * 36 + ri * 576) * 4, w0 + (j + i * 700 + ri * 11200), j < size2 && i + ri * 16 < size0);
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + 9216 + (j_b + i_b * 68 + ri * 544) * 4, in1 + (at0 + j_b + i_b * 300 + ri * 2400), j_b < size1 && i_b + ri * 8 < size2);
      }
    }
    pl::cp_async_commit();
    fill0 = fill0 + 17920;
  }
  PL_NOUNROLL for (i32 p2 = 0; p2 < 22; ++p2) {
    pl::cp_async_wait<1>();
    pl::warpgroup_sync();
    if (p2 + 2 < 22) {
      const i32 turn0 = p2 + 2;
      const i32 start3 = turn0 * 32;
      const i32 size3 = pl::min(700 - start3, 32);
      const f32* w0 = in0 + i64(start3) + start0 * 700;
      const i32 at1 = start1 + start3 * 300;
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + (j + i * 36 + ri * 576) * 4, w0 + (j + i * 700 + ri * 11200), j < size3 && i + ri * 16 < size0);
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + 9216 + (j_b + i_b * 68 + ri * 544) * 4, in1 + (at1 + j_b + i_b * 300 + ri * 2400), j_b < size1 && i_b + ri * 8 < size3);
      }
    }
    pl::cp_async_commit();
    pl::check(v0_stored, "outputs[0] is read before anything was stored there");
    pl::dot_fma<4, 2, 4, 8, 16, false, false, f32, f32>(v0, smem + read0, 144, smem + read0 + 9216, 272, 32);
    v0_stored = true;
    fill0 = read0;
    read0 = read0 == 35840 ? 0 : (read0 + 17920);
  }
  PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
    PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
      pl::store_global<4>(w2 + (j + rj * 32 + i * 300 + ri * 4800), v0 + ri * 8 + rj * 4, j + rj * 32 < size1 && i + ri * 16 < size0 && pl::was_stored(v0_stored));
    }
  }
}
PL_EXPORT(matmul_kernel)
