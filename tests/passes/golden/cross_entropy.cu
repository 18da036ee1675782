PL_KERNEL(128) cross_entropy_kernel(const f32* in0, const i32* in1, f32* out0, i64 s0) {
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const i64 start0 = i64(p0) * 4;
  const i32 size0 = i32(pl::min(s0 - start0, i64(4)));
  const f32* w0 = in0 + start0 * 1000;
  const i32* w1 = in1 + start0;
  f32* w2 = out0 + start0;
  f32 v2[32];
  const i32 i = (t >> 5 & 3);
  const i32 j = (t & 31) * 4;
  PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
    pl::load_global_nc<4>(v2 + rj * 4, w0 + (j + i * 1000) + (j + rj * 128 < 1000 ? (rj * 128) : 0), i < size0);
  }
  f32 v1[1];
  {
    f32 acc = v2[0];
    PL_UNROLL for (i32 r = 1; r < 32; ++r) acc = pl::fold(pl::Max(), acc, v2[r]);
    acc = pl::reduce_lanes<31>(acc, pl::Max());
    v1[0] = acc;
  }
  f32 v0[1];
  {
    f32 acc = 0.0f;
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      f32 part = pl::exp_nonpositive(v2[rj * 4] - v1[0]);
      PL_UNROLL for (i32 e = 1; e < 4; ++e) {
        part = pl::fold(pl::Sum(), part, pl::exp_nonpositive(v2[rj * 4 + e] - v1[0]));
      }
      acc = pl::fold(pl::Sum(), acc, j + rj * 128 < 1000 ? part : 0.0f);
    }
    acc = pl::reduce_lanes<31>(acc, pl::Sum());
    v0[0] = acc;
  }
  {
    i32 a0;
    pl::load_global_nc<1>(&a0, w1 + i, i < size0);
    const i64 x1 = pl::to<i64>(a0);
    const bool x2 = (x1 >= i64(0ll)) && (x1 < i64(1000ll));
    const i32 n3 = pl::to<i32>(x2 ? x1 : i64(0ll));
    if ((t & 31) == 0) pl::check_range(i64(n3), i64(n3), 1000, "load: dimension 1 of ref block f32[4,1000]");
    f32 a4;
    pl::load_global_nc<1>(&a4, w0 + n3 + i * 1000, i < size0);
    const f32 x5 = (x1 == i64(-100ll)) ? 0.0f : (x2 ? (pl::log(v0[0]) + (v1[0] - a4)) : pl::nan<f32>());
    const f32 o6 = x5;
    pl::store_global<1>(w2 + i, &o6, i < size0 && (t & 31) == 0);
  }
}
PL_EXPORT(cross_entropy_kernel)
