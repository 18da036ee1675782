PL_KERNEL(128) softmax_kernel(const f32* in0, f32* out0, i64 s0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const f32* w0 = in0 + i64(p0) * 1000;
  f32* w1 = out0 + i64(p0) * 1000;
  f32 v3[8];
  const i32 j = t * 4;
  PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
    pl::load_global_nc<4>(v3 + rj * 4, w0 + (j + rj * 512), j + rj * 512 < 1000);
  }
  f32 v2;
  {
    f32 acc = pl::min_value<f32>();
    PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
      PL_UNROLL for (i32 e = 0; e < 4; ++e) {
        acc = pl::fold(pl::Max(), acc, j + rj * 512 < 1000 ? v3[rj * 4 + e] : pl::min_value<f32>());
      }
    }
    acc = pl::reduce_lanes<31>(acc, pl::Max());
    acc = pl::reduce_warps<3, 0, 1>(acc, smem, pl::Max());
    v2 = acc;
  }
  f32 v1[8];
  PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
    PL_UNROLL for (i32 e = 0; e < 4; ++e) {
      const f32 x0 = pl::exp_nonpositive(v3[rj * 4 + e] - v2);
      v1[rj * 4 + e] = x0;
    }
  }
  f32 v0;
  {
    f32 acc = 0.0f;
    PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
      PL_UNROLL for (i32 e = 0; e < 4; ++e) {
        acc = pl::fold(pl::Sum(), acc, j + rj * 512 < 1000 ? v1[rj * 4 + e] : 0.0f);
      }
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
