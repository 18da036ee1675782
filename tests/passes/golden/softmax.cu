PL_KERNEL(128) softmax_kernel(const f32* in0, f32* out0, i64 s0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const f32* w0 = in0 + i64(p0) * 1000;
  f32* w1 = out0 + i64(p0) * 1000;
  f32 v3[8];
  const i32 j = t * 4;
  PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
    pl::load_global_nc<4>(v3 + rj * 4, w0 + (j + (j + rj * 512 < 1000 ? (rj * 512) : 0)));
  }
  f32 v2;
  {
    f32 acc = v3[0];
    PL_UNROLL for (i32 r = 1; r < 8; ++r) acc = pl::fold(pl::Max(), acc, v3[r]);
    acc = pl::reduce_lanes<31>(acc, pl::Max());
    acc = pl::reduce_warps<3, 0, 1>(acc, smem, pl::Max());
    v2 = acc;
  }
  f32 v1[8];
  PL_UNROLL for (i32 r = 0; r < 8; ++r) v1[r] = pl::exp_nonpositive(v3[r] - v2);
  f32 v0;
  {
    f32 acc = 0.0f;
    PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
      f32 part = v1[rj * 4];
      PL_UNROLL for (i32 e = 1; e < 4; ++e) part = pl::fold(pl::Sum(), part, v1[rj * 4 + e]);
      acc = pl::fold(pl::Sum(), acc, j + rj * 512 < 1000 ? part : 0.0f);
    }
    acc = pl::reduce_lanes<31>(acc, pl::Sum());
    acc = pl::reduce_warps<3, 0, 1>(acc, smem + 16, pl::Sum());
    v0 = acc;
  }
  {
    f32 q0[8];
    pl::div_all<8, true>(q0, v1, v0);
    PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
      pl::store_global<4>(w1 + (j + rj * 512), q0 + rj * 4, j + rj * 512 < 1000);
    }
  }
}
PL_EXPORT(softmax_kernel)
