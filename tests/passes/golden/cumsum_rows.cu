PL_KERNEL(128) cumsum_kernel(const f32* in0, f32* out0) {
  const i32 t = pl::thread();
  f32 v0[32];
  const i32 i = (t >> 5 & 3);
  const i32 j = (t & 31) * 4;
  {
    PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
      f32 a0[4];
      pl::load_global_nc<4>(a0, in0 + (j + i * 1000) + rj * 128, j + rj * 128 < 1000);
      PL_UNROLL for (i32 e = 0; e < 4; ++e) v0[rj * 4 + e] = a0[e];
    }
    f32 s[8];
    pl::scan_registers<4, false>(v0, s, pl::Sum());
    pl::scan_lanes<4, 8, false, 31>(v0, s, pl::Sum());
  }
  PL_UNROLL for (i32 rj = 0; rj < 8; ++rj) {
    pl::store_global<4>(out0 + (j + i * 1000) + rj * 128, v0 + rj * 4, j + rj * 128 < 1000);
  }
}
PL_EXPORT(cumsum_kernel)
