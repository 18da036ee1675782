PL_KERNEL(128) add_kernel(const f32* in0, const f32* in1, f32* out0, i64 s0) {
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const i32 start0 = p0 * 1024;
  const i32 size0 = pl::min(i32(s0) - start0, 1024);
  const i32 i = t * 4;
  if (size0 == 1024) {
    f32 a0[8];
    f32 a1[8];
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      pl::load_global_nc<4>(a0 + ri * 4, in0 + (start0 + i) + ri * 512);
      pl::load_global_nc<4>(a1 + ri * 4, in1 + (start0 + i) + ri * 512);
    }
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      f32 o2[4];
      PL_UNROLL for (i32 e = 0; e < 4; ++e) o2[e] = a0[ri * 4 + e] + a1[ri * 4 + e];
      pl::store_global<4>(out0 + (start0 + i) + ri * 512, o2);
    }
  } else {
    f32 a3[8];
    f32 a4[8];
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      pl::load_global_nc<4>(a3 + ri * 4, in0 + (start0 + i) + ri * 512, i + ri * 512 < size0);
      pl::load_global_nc<4>(a4 + ri * 4, in1 + (start0 + i) + ri * 512, i + ri * 512 < size0);
    }
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      f32 o5[4];
      PL_UNROLL for (i32 e = 0; e < 4; ++e) o5[e] = a3[ri * 4 + e] + a4[ri * 4 + e];
      pl::store_global<4>(out0 + (start0 + i) + ri * 512, o5, i + ri * 512 < size0);
    }
  }
}
PL_EXPORT(add_kernel)
