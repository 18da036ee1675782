PL_KERNEL(128) add_kernel(const f16* in0, const f16* in1, f16* out0) {
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const i32 start0 = p0 * 512;
  const i32 size0 = pl::min(1001 - start0, 512);
  if (size0 == 512) {
    f16 a0[4];
    f16 a1[4];
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      pl::load_global_nc<1>(a0 + ri, in0 + (start0 + t) + ri * 128);
      pl::load_global_nc<1>(a1 + ri, in1 + (start0 + t) + ri * 128);
    }
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      const f16 o2 = pl::add(a0[ri], a1[ri]);
      pl::store_global<1>(out0 + (start0 + t) + ri * 128, &o2);
    }
  } else {
    f16 a3[4];
    f16 a4[4];
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      pl::load_global_nc<1>(a3 + ri, in0 + (start0 + t) + ri * 128, t + ri * 128 < size0);
      pl::load_global_nc<1>(a4 + ri, in1 + (start0 + t) + ri * 128, t + ri * 128 < size0);
    }
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      const f16 o5 = pl::add(a3[ri], a4[ri]);
      pl::store_global<1>(out0 + (start0 + t) + ri * 128, &o5, t + ri * 128 < size0);
    }
  }
}
PL_EXPORT(add_kernel)
