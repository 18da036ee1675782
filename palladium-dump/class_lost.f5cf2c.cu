PL_KERNEL(128) class_lost_kernel(const f32* in0, f32* out0, i64 s0, i64 s1) {
  const i32 t = pl::thread();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % u32(s1 + 63 >> 6));
  const i32 p0 = i32(block / u32(s1 + 63 >> 6));
  const i32 start0 = p0 * 8;
  const i32 size0 = pl::min(i32(s0) - start0, 8);
  const i32 start1 = p1 * 64;
  const i32 size1 = pl::min(i32(s1) - start1, 64);
  const i32 at0 = start1 + start0 * i32(s1);
  const i32 i = (t >> 4 & 7);
  const i32 j = (t & 15) * 4;
  {
    f32 a0[4];
    pl::load_global_nc<4>(a0, in0 + (at0 + j + i * i32(s1)), j < size1 && i < size0);
    f32 o1[4];
    PL_UNROLL for (i32 e = 0; e < 4; ++e) o1[e] = a0[e];
    pl::store_global<4>(out0 + (at0 + j + i * i32(s1)), o1, j < size1 && i < size0);
  }
}
PL_EXPORT(class_lost_kernel)
