PL_KERNEL(128) layer_norm_kernel(const f32* in0, const f32* in1, const f32* in2, f32* out0, i64 s0) {
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const i64 start0 = i64(p0) * 4;
  const i32 size0 = i32(pl::min(s0 - start0, i64(4)));
  const f32* w0 = in0 + start0 * 768;
  f32* w3 = out0 + start0 * 768;
  f32 v3[24];
  const i32 i = (t >> 5 & 3);
  const i32 j = (t & 31) * 4;
  PL_UNROLL for (i32 rj = 0; rj < 6; ++rj) {
    pl::load_global_nc<4>(v3 + rj * 4, w0 + (j + i * 768) + rj * 128, i < size0);
  }
  f32 v2[1];
  {
    f32 acc = 0.0f;
    PL_UNROLL for (i32 r = 0; r < 24; ++r) acc = pl::fold(pl::Sum(), acc, v3[r]);
    acc = pl::reduce_lanes<31>(acc, pl::Sum());
    v2[0] = acc;
  }
  f32 v1[24];
  {
    const f32 x0 = pl::div_by(v2[0], 768.0f, 0x1.5555555555558p-10);
    PL_UNROLL for (i32 r = 0; r < 24; ++r) v1[r] = v3[r] - x0;
  }
  f32 v0[1];
  {
    f32 acc = 0.0f;
    PL_UNROLL for (i32 r = 0; r < 24; ++r) acc = pl::fma(v1[r], v1[r], acc);
    acc = pl::reduce_lanes<31>(acc, pl::Sum());
    v0[0] = acc;
  }
  {
    const f32 x0 = pl::rsqrt(pl::div_by(v0[0], 768.0f, 0x1.5555555555558p-10) + 0x1.4f8b58p-17f);
    PL_UNROLL for (i32 rj = 0; rj < 6; ++rj) {
      f32 a1[4];
      pl::load_global_nc<4>(a1, in1 + j + rj * 128);
      f32 a2[4];
      pl::load_global_nc<4>(a2, in2 + j + rj * 128);
      f32 o3[4];
      PL_UNROLL for (i32 e = 0; e < 4; ++e) o3[e] = pl::fma(v1[rj * 4 + e] * x0, a1[e], a2[e]);
      pl::store_global<4>(w3 + (j + i * 768) + rj * 128, o3, i < size0);
    }
  }
}
PL_EXPORT(layer_norm_kernel)
