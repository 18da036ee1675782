PL_KERNEL(128) vm_kernel(const f32* in0, const f32* in1, f32* out0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  i32 v14 = 0;
  f32 v13[8];
  const i32 i = (t & 31) * 4;
  PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
    f32 a0[4];
    pl::load_global_nc<4>(a0, in1 + i + ri * 128);
    PL_UNROLL for (i32 e = 0; e < 4; ++e) v13[ri * 4 + e] = a0[e];
  }
  f32 v12[8];
  PL_UNROLL for (i32 r = 0; r < 8; ++r) v12[r] = 1.0f;
  PL_NOUNROLL while (true) {
    const bool v15 = v14 < 8;
    if (!v15) break;
    pl::check_range(i64(v14), i64(v14), 8, "load: dimension 0 of ref block f32[8,2]");
    f32 sa0;
    pl::load_global_nc<1>(&sa0, in0 + v14 * 2);
    const f32 v11 = sa0;
    const i32 v10 = pl::to<i32>(v11);
    pl::check_range(i64(v14), i64(v14), 8, "load: dimension 0 of ref block f32[8,2]");
    f32 sa1;
    pl::load_global_nc<1>(&sa1, in0 + v14 * 2 + 1);
    const f32 v9 = sa1;
    const i32 v8 = pl::add(v14, 1);
    i32 v3;
    f32 v2[8];
    f32 v1[8];
    if (v10 < 1) {
      v3 = v8;
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v2[r] = v13[r] + v9;
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v1[r] = v12[r];
    } else if (v10 == 1) {
      v3 = v8;
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v2[r] = v13[r] * v9;
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v1[r] = v12[r];
    } else if (v10 == 2) {
      v3 = v8;
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v2[r] = v13[r];
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v1[r] = v13[r];
    } else if (v10 == 3) {
      f32 v7;
      {
        f32 acc = 0.0f;
        PL_UNROLL for (i32 r = 0; r < 8; ++r) acc = pl::fold(pl::Sum(), acc, v12[r]);
        acc = pl::reduce_lanes<31>(acc, pl::Sum());
        v7 = acc;
      }
      v3 = v8;
      {
        f32 q0[8];
        pl::div_all<8>(q0, v12, v7);
        PL_UNROLL for (i32 r = 0; r < 8; ++r) v2[r] = v13[r] + q0[r];
      }
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v1[r] = v12[r];
    } else {
      f32 v6;
      {
        f32 acc = v13[0];
        PL_UNROLL for (i32 r = 1; r < 8; ++r) acc = pl::fold(pl::Min(), acc, v13[r]);
        acc = pl::reduce_lanes<31>(acc, pl::Min());
        v6 = acc;
      }
      const bool v5 = v6 < v9;
      const i32 v4 = v5 ? 0 : v8;
      v3 = v4;
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v2[r] = v13[r];
      PL_UNROLL for (i32 r = 0; r < 8; ++r) v1[r] = v12[r];
    }
    v14 = v3;
    PL_UNROLL for (i32 r = 0; r < 8; ++r) v13[r] = v2[r];
    PL_UNROLL for (i32 r = 0; r < 8; ++r) v12[r] = v1[r];
  }
  // st.v4 / ld.v1, 1 step of 1024 B
  f32 v21[2];
  {
    const u32 scratch = smem;
    const u32 st = (t & 31) << 4;
    const u32 ld = (t & 127) << 2;
    { f32 w[4] = {v13[0], v13[1], v13[2], v13[3]}; pl::store_shared<4>(scratch + st, w, (t & 96) == 0); }
    { f32 w[4] = {v13[4], v13[5], v13[6], v13[7]}; pl::store_shared<4>(scratch + st + 512, w, (t & 96) == 0); }
    pl::warpgroup_sync();
    { f32 w[1]; pl::load_shared<1>(w, scratch + ld); v21[0] = w[0]; }
    { f32 w[1]; pl::load_shared<1>(w, scratch + ld + 512); v21[1] = w[0]; }
  }
  PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
    const f32 o0 = v21[ri];
    pl::store_global<1>(out0 + t + ri * 128, &o0);
  }
}
PL_EXPORT(vm_kernel)
