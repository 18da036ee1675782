PL_KERNEL(128) transpose_kernel(const f32* in0, f32* out0, i64 s0, i64 s1) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % u32(s1 + 63 >> 6));
  const i32 p0 = i32(block / u32(s1 + 63 >> 6));
  const i64 start0 = i64(p0) * 64;
  const i32 size0 = i32(pl::min(s0 - start0, i64(64)));
  const i64 start1 = i64(p1) * 64;
  const i32 size1 = i32(pl::min(s1 - start1, i64(64)));
  const f32* w0 = in0 + start1 + start0 * s1;
  const i32 i = (t >> 6 & 1);
  const i32 j = (t & 63);
  PL_UNROLL for (i32 ri = 0; ri < 32; ++ri) {
    pl::copy_async<1>(smem + (j + i * 65 + ri * 130) * 4, w0 + i64(j) + i64(i + ri * 2) * s1, j < size1 && i + ri * 2 < size0);
  }
  pl::cp_async_commit();
  f32* w1 = out0 + start0 + start1 * s0;
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  if (size0 == 64 && size1 == 64) {
    f32 a0[32];
    PL_UNROLL for (i32 ri = 0; ri < 32; ++ri) {
      pl::load_shared_padded<1>(a0 + ri, smem + (i + ri * 2 + j * 65) * 4);
    }
    PL_UNROLL for (i32 ri = 0; ri < 32; ++ri) {
      const f32 o1 = a0[ri];
      pl::store_global<1>(w1 + i64(j) + i64(i + ri * 2) * s0, &o1);
    }
  } else {
    f32 a2[32];
    PL_UNROLL for (i32 ri = 0; ri < 32; ++ri) {
      pl::load_shared_padded<1>(a2 + ri, smem + (i + ri * 2 + j * 65) * 4);
    }
    PL_UNROLL for (i32 ri = 0; ri < 32; ++ri) {
      const f32 o3 = a2[ri];
      pl::store_global<1>(w1 + i64(j) + i64(i + ri * 2) * s0, &o3, j < size0 && i + ri * 2 < size1);
    }
  }
}
PL_EXPORT(transpose_kernel)
