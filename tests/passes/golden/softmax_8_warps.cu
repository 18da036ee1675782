PL_KERNEL(256) softmax_kernel(const f32* in0, f32* out0, i64 s0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::program_thread();
  const i32 p0 = pl::block_x();
  const f32* w0 = in0 + i64(p0) * 4096;
  f32* w1 = out0 + i64(p0) * 4096;
  f32 v3[16];
  const i32 j = t * 4;
  PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
    pl::load_global_nc<4>(v3 + rj * 4, w0 + j + rj * 1024);
  }
  f32 v2;
  {
    f32 acc = v3[0];
    PL_UNROLL for (i32 r = 1; r < 16; ++r) acc = pl::fold(pl::Max(), acc, v3[r]);
    acc = pl::reduce_lanes<31>(acc, pl::Max());
    acc = pl::reduce_warps<7, 0, 1, 8>(acc, smem, pl::Max());
    v2 = acc;
  }
  f32 v1[16];
  PL_UNROLL for (i32 r = 0; r < 16; ++r) v1[r] = pl::exp_nonpositive(v3[r] - v2);
  f32 v0;
  {
    f32 acc = 0.0f;
    PL_UNROLL for (i32 r = 0; r < 16; ++r) acc = pl::fold(pl::Sum(), acc, v1[r]);
    acc = pl::reduce_lanes<31>(acc, pl::Sum());
    acc = pl::reduce_warps<7, 0, 1, 8>(acc, smem + 32, pl::Sum());
    v0 = acc;
  }
  {
    f32 q0[16];
    pl::div_all<16, true>(q0, v1, v0);
    PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
      pl::store_global<4>(w1 + j + rj * 1024, q0 + rj * 4);
    }
  }
}
PL_EXPORT(softmax_kernel)
