PL_KERNEL(128) rotate_kernel(const f32* in0, f32* out0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 i = (t >> 6 & 1);
  const i32 j = (t & 63) * 4;
  PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
    f32 a0[4];
    pl::load_global<4>(a0, in0 + (j + i * 256) + ri * 512);
    f32 o1[4];
    PL_UNROLL for (i32 e = 0; e < 4; ++e) o1[e] = a0[e];
    pl::store_shared<4>(smem + (j + i * 256 + ri * 512) * 4, o1);
  }
  pl::warpgroup_sync();
  {
    f32 a0[16];
    PL_UNROLL for (i32 ri = 0; ri < 8; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
        pl::load_resident<1>(a0 + ri * 2 + rj, smem + (t + rj * 128 + ri * 256) * 4, t + rj * 128 < 255);
      }
    }
    PL_UNROLL for (i32 ri = 0; ri < 8; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
        const f32 o1 = a0[ri * 2 + rj];
        pl::store_global<1>(out0 + t + rj * 128 + ri * 256 + 1, &o1, t + rj * 128 < 255);
      }
    }
  }
  pl::warpgroup_sync();
  const i32 i_b = (t & 7);
  {
    f32 a0;
    pl::load_resident<1>(&a0, smem + (i_b * 256 + 255) * 4, (t & 120) == 0);
    const f32 o1 = a0;
    pl::store_global<1>(out0 + i_b * 256, &o1, (t & 120) == 0);
  }
}
PL_EXPORT(rotate_kernel)
