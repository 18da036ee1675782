PL_KERNEL(128) add_kernel(const f16* in0, const f16* in1, f16* out0) {
  const i32 p0 = pl::block_x();
  const i64 w0_start0 = i64(p0) * 512;
  const i32 w0_size0 = u64(w0_start0) < 1001 ? i32(pl::min(1001 - w0_start0, i64(512))) : 0;
  pl::check(w0_size0 > 0, "args[0]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  const f16* w0 = in0 + w0_start0;
  const i64 w1_start0 = i64(p0) * 512;
  const i32 w1_size0 = u64(w1_start0) < 1001 ? i32(pl::min(1001 - w1_start0, i64(512))) : 0;
  pl::check(w1_size0 > 0, "args[1]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  const f16* w1 = in1 + w1_start0;
  const i64 w2_start0 = i64(p0) * 512;
  const i32 w2_size0 = u64(w2_start0) < 1001 ? i32(pl::min(1001 - w2_start0, i64(512))) : 0;
  pl::check(w2_size0 > 0, "outputs[0]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  f16* w2 = out0 + w2_start0;
  {
    const i32 t = pl::thread();
    const i32 i = t;
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      f16 a0;
      pl::load_global_nc<1>(&a0, w0 + (i + ri * 128), i + ri * 128 < w0_size0);
      f16 a1;
      pl::load_global_nc<1>(&a1, w1 + (i + ri * 128), i + ri * 128 < w1_size0);
      const f16 o2 = pl::add(a0, a1);
      pl::store_global<1>(w2 + (i + ri * 128), &o2, i + ri * 128 < w2_size0);
    }
  }
}
PL_EXPORT(add_kernel)
