PL_KERNEL(128) add_kernel(const f16* in0, const f16* in1, f16* out0) {
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const i32 start0 = p0 * 512;
  const i32 size0 = pl::min(1001 - start0, 512);
  const f16* w0 = in0 + start0;
  const f16* w1 = in1 + start0;
  f16* w2 = out0 + start0;
  {
    f16 a0[4];
    f16 a1[4];
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      pl::load_global_nc<1>(a0 + ri, w0 + (t + ri * 128), t + ri * 128 < size0);
      pl::load_global_nc<1>(a1 + ri, w1 + (t + ri * 128), t + ri * 128 < size0);
    }
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      const f16 o2 = pl::add(a0[ri], a1[ri]);
      pl::store_global<1>(w2 + (t + ri * 128), &o2, t + ri * 128 < size0);
    }
  }
}
PL_EXPORT(add_kernel)
