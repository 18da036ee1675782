PL_KERNEL(128) softmax_kernel(const f32* in0, f32* out0, i64 s0) {
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const i64 start0 = i64(p0) * 4;
  const i32 size0 = i32(pl::min(s0 - start0, i64(4)));
  const f32* w0 = in0 + start0 * 1000;
  f32* w1 = out0 + start0 * 1000;
  f32 v3[32];
  const i32 i = (t >> 5 & 3);
  const i32 j = (t & 31) * 4;
  PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
    pl::load_global_nc<4>(v3 + rj * 4, w0 + (j + i * 1000) + (j + rj * 128 < 1000 ? (rj * 128) : 0), i < size0);
  }
  f32 v2[1];
  {
    f32 acc = v3[0];
    PL_UNROLL for (i32 r = 1; r < 32; ++r) acc = pl::fold(pl::Max(), acc, v3[r]);
    acc = pl::reduce_lanes<31>(acc, pl::Max());
    v2[0] = acc;
  }
  f32 v1[32];
  PL_UNROLL for (i32 r = 0; r < 32; ++r) v1[r] = pl::exp_nonpositive(v3[r] - v2[0]);
  f32 v0[1];
  {
    f32 acc = 0.0f;
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      f32 part = v1[rj * 4];
      PL_UNROLL for (i32 e = 1; e < 4; ++e) part = pl::fold(pl::Sum(), part, v1[rj * 4 + e]);
      acc = pl::fold(pl::Sum(), acc, j + rj * 128 < 1000 ? part : 0.0f);
    }
    acc = pl::reduce_lanes<31>(acc, pl::Sum());
    v0[0] = acc;
  }
  {
    f32 q0[32];
    pl::div_all<32, true>(q0, v1, v0[0]);
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      pl::store_global<4>(w1 + (j + i * 1000) + rj * 128, q0 + rj * 4, i < size0 && j + rj * 128 < 1000);
    }
  }
}
PL_EXPORT(softmax_kernel)
