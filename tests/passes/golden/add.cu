PL_KERNEL(128) add_kernel(const f32* in0, const f32* in1, f32* out0, i64 s0) {
  const i32 p0 = pl::block_x();
  const i64 w0_start0 = i64(p0) * 1024;
  const i32 w0_size0 = u64(w0_start0) < u64(s0) ? i32(pl::min(s0 - w0_start0, i64(1024))) : 0;
  pl::check(w0_size0 > 0, "args[0]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  const f32* w0 = in0 + w0_start0;
  const i64 w1_start0 = i64(p0) * 1024;
  const i32 w1_size0 = u64(w1_start0) < u64(s0) ? i32(pl::min(s0 - w1_start0, i64(1024))) : 0;
  pl::check(w1_size0 > 0, "args[1]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  const f32* w1 = in1 + w1_start0;
  const i64 w2_start0 = i64(p0) * 1024;
  const i32 w2_size0 = u64(w2_start0) < u64(s0) ? i32(pl::min(s0 - w2_start0, i64(1024))) : 0;
  pl::check(w2_size0 > 0, "outputs[0]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  f32* w2 = out0 + w2_start0;
  {
    const i32 t = pl::thread();
    const i32 i = t * 4;
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      f32 a0[4];
      pl::load_global_nc_part<4>(a0, w0 + (i + ri * 512), w0_size0 - (i + ri * 512));
      f32 a1[4];
      pl::load_global_nc_part<4>(a1, w1 + (i + ri * 512), w1_size0 - (i + ri * 512));
      f32 o2[4];
      PL_UNROLL for (i32 e = 0; e < 4; ++e) {
        o2[e] = a0[e] + a1[e];
      }
      pl::store_global_part<4>(w2 + (i + ri * 512), o2, w2_size0 - (i + ri * 512));
    }
  }
}
PL_EXPORT(add_kernel)
