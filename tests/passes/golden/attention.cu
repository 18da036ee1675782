PL_KERNEL(128) attention_kernel(const f16* in0, const f16* in1, const f16* in2, f16* out0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 p0 = pl::block_x();
  const i32 start0 = p0 * 64;
  const i32 at0 = start0 * 64;
  f32 v10[32];
  const i32 i = (t >> 2 & 7) + (t >> 1 & 16);
  const i32 j = (t >> 3 & 8) + (t & 3) * 2;
  PL_UNROLL for (i32 r = 0; r < 32; ++r) v10[r] = 0.0f;
  f32 v9[4];
  PL_UNROLL for (i32 r = 0; r < 4; ++r) v9[r] = -0x1.93e594p+99f;
  f32 v8[4];
  PL_UNROLL for (i32 r = 0; r < 4; ++r) v8[r] = 0.0f;
  const i32 i_b = (t >> 3 & 15);
  const i32 j_b = (t & 7) * 8;
  {
    f16 a0[32];
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      pl::load_global_nc<8>(a0 + ri * 8, in0 + (at0 + j_b + i_b * 64 + ri * 1024));
    }
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      f16 o1[8];
      PL_UNROLL for (i32 e = 0; e < 8; ++e) o1[e] = a0[ri * 8 + e];
      pl::store_shared<8>(smem + (j_b + i_b * 72 + ri * 1152) * 2, o1);
    }
  }
  pl::warpgroup_sync();
  PL_NOUNROLL for (i32 v11 = 0; v11 < 8; ++v11) {
    const i32 sx0 = pl::mul(v11, 64);
    const i32 v7 = sx0;
    pl::warpgroup_sync();
    {
      f16 a0[32];
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::load_global_nc<8>(a0 + ri * 8, in1 + (j_b + i_b * 64 + ri * 1024 + v7 * 64));
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        f16 o1[8];
        PL_UNROLL for (i32 e = 0; e < 8; ++e) o1[e] = a0[ri * 8 + e];
        pl::store_shared<8>(smem + 9216 + (j_b + i_b * 72 + ri * 1152) * 2, o1);
      }
    }
    pl::warpgroup_sync();
    f32 v6[32] = {};
    pl::dot_mma_16816<2, 4, 2, false, true, f16>(v6, smem, 144, smem + 9216, 144, 64);
    f32 v5[4];
    {
      f32 acc[4];
      PL_UNROLL for (i32 a = 0; a < 4; ++a) acc[a] = pl::min_value<f32>();
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[ri * 2 + g] = pl::fold(pl::Max(), acc[ri * 2 + g], v6[ri * 16 + rj * 4 + g * 2 + e] * 0x1p-3f);
          }
        }
      }
      pl::reduce_lanes<3>(acc, pl::Max());
      pl::warpgroup_sync();
      pl::reduce_warps<2, 28, 1>(acc, smem + 18432, pl::Max());
      PL_UNROLL for (i32 a = 0; a < 4; ++a) v5[a] = acc[a];
    }
    f32 v4[32];
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          const f32 x0 = pl::max(v9[ri * 2 + g], v5[ri * 2 + g]);
          PL_UNROLL for (i32 e = 0; e < 2; ++e) {
            const f32 x1 = v6[ri * 16 + rj * 4 + g * 2 + e] * 0x1p-3f;
            v4[ri * 16 + rj * 4 + g * 2 + e] = pl::exp_nonpositive(x1 - x0);
          }
        }
      }
    }
    pl::warpgroup_sync();
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          f16 o0[2];
          PL_UNROLL for (i32 e = 0; e < 2; ++e) o0[e] = pl::to<f16>(v4[ri * 16 + rj * 4 + g * 2 + e]);
          pl::store_shared<2>(smem + 18944 + (j + rj * 16 + i * 72 + ri * 2304 + g * 576) * 2, o0);
        }
      }
    }
    {
      f16 a0[32];
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::load_global_nc<8>(a0 + ri * 8, in2 + (j_b + i_b * 64 + ri * 1024 + v7 * 64));
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        f16 o1[8];
        PL_UNROLL for (i32 e = 0; e < 8; ++e) o1[e] = a0[ri * 8 + e];
        pl::store_shared<8>(smem + 28160 + (j_b + i_b * 72 + ri * 1152) * 2, o1);
      }
    }
    pl::warpgroup_sync();
    f32 v3[32] = {};
    pl::dot_mma_16816<2, 4, 2, false, false, f16>(v3, smem + 18944, 144, smem + 28160, 144, 64);
    f32 v2[4];
    {
      f32 acc[4];
      PL_UNROLL for (i32 a = 0; a < 4; ++a) acc[a] = 0.0f;
      PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
        PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
          PL_UNROLL for (i32 g = 0; g < 2; ++g) {
            PL_UNROLL for (i32 e = 0; e < 2; ++e) acc[ri * 2 + g] = pl::fold(pl::Sum(), acc[ri * 2 + g], v4[ri * 16 + rj * 4 + g * 2 + e]);
          }
        }
      }
      pl::reduce_lanes<3>(acc, pl::Sum());
      pl::warpgroup_sync();
      pl::reduce_warps<2, 28, 1>(acc, smem + 37376, pl::Sum());
      PL_UNROLL for (i32 a = 0; a < 4; ++a) v2[a] = acc[a];
    }
    f32 v18[32];
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          const f32 x0 = pl::max(v9[ri * 2 + g], v5[ri * 2 + g]);
          const f32 x1 = pl::exp_nonpositive(v9[ri * 2 + g] - x0);
          PL_UNROLL for (i32 e = 0; e < 2; ++e) v18[ri * 16 + rj * 4 + g * 2 + e] = pl::fma(v10[ri * 16 + rj * 4 + g * 2 + e], x1, v3[ri * 16 + rj * 4 + g * 2 + e]);
        }
      }
    }
    f32 v19[4];
    PL_UNROLL for (i32 r = 0; r < 4; ++r) v19[r] = pl::max(v9[r], v5[r]);
    f32 v20[4];
    PL_UNROLL for (i32 r = 0; r < 4; ++r) {
      const f32 x0 = pl::max(v9[r], v5[r]);
      v20[r] = pl::fma(v8[r], pl::exp_nonpositive(v9[r] - x0), v2[r]);
    }
    PL_UNROLL for (i32 k = 0; k < 32; ++k) v10[k] = v18[k];
    PL_UNROLL for (i32 k = 0; k < 4; ++k) v9[k] = v19[k];
    PL_UNROLL for (i32 k = 0; k < 4; ++k) v8[k] = v20[k];
  }
  PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
    PL_UNROLL for (i32 g = 0; g < 2; ++g) {
      f32 q0[8];
      PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
        PL_UNROLL for (i32 e = 0; e < 2; ++e) q0[rj * 2 + e] = v10[ri * 16 + rj * 4 + g * 2 + e];
      }
      pl::div_all<8>(q0, q0, v8[ri * 2 + g]);
      PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
        f16 o1[2];
        PL_UNROLL for (i32 e = 0; e < 2; ++e) o1[e] = pl::to<f16>(q0[rj * 2 + e]);
        pl::store_global<2>(out0 + (at0 + j + rj * 16 + i * 64 + ri * 2048 + g * 512), o1);
      }
    }
  }
}
PL_EXPORT(attention_kernel)
