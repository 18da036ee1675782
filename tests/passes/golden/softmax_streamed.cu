PL_KERNEL(128) softmax_kernel(const f32* in0, f32* out0, i64 s0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const f32* w0 = in0 + i64(p0) * 1048576;
  f32* w1 = out0 + i64(p0) * 1048576;
  f32 v1;
  const i32 j = t * 4;
  {
    f32 acc = pl::min_value<f32>();
    _Pragma("unroll 8") for (i32 rj = 0; rj < 2048; ++rj) {
      f32 a0[4];
      pl::load_global_nc<4>(a0, w0 + j + rj * 512);
      PL_UNROLL for (i32 e = 0; e < 4; ++e) acc = pl::fold(pl::Max(), acc, a0[e]);
    }
    acc = pl::reduce_lanes<31>(acc, pl::Max());
    acc = pl::reduce_warps<3, 0, 1>(acc, smem, pl::Max());
    v1 = acc;
  }
  f32 v0;
  {
    f32 acc = 0.0f;
    _Pragma("unroll 8") for (i32 rj = 0; rj < 2048; ++rj) {
      f32 a0[4];
      pl::load_global_nc<4>(a0, w0 + j + rj * 512);
      PL_UNROLL for (i32 e = 0; e < 4; ++e) {
        acc = pl::fold(pl::Sum(), acc, pl::exp_nonpositive(a0[e] - v1));
      }
    }
    acc = pl::reduce_lanes<31>(acc, pl::Sum());
    acc = pl::reduce_warps<3, 0, 1>(acc, smem + 16, pl::Sum());
    v0 = acc;
  }
  _Pragma("unroll 8") for (i32 rj = 0; rj < 2048; ++rj) {
    f32 a0[4];
    pl::load_global_nc<4>(a0, w0 + j + rj * 512);
    f32 q1[4];
    PL_UNROLL for (i32 e = 0; e < 4; ++e) q1[e] = pl::exp_nonpositive(a0[e] - v1);
    pl::div_all<4, true>(q1, q1, v0);
    pl::store_global<4>(w1 + j + rj * 512, q1);
  }
}
PL_EXPORT(softmax_kernel)
