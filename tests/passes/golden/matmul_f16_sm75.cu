PL_KERNEL(128, 4) matmul_kernel(const f16* in0, const f16* in1, f32* out0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % 11);
  const i32 p0 = i32(block / 11);
  f32 v0[32] = {};
  bool v0_stored = false;
  const i32 start0 = p0 * 64;
  const i32 size0 = pl::min(1000 - start0, 64);
  const i32 start1 = p1 * 64;
  const i32 size1 = pl::min(700 - start1, 64);
  const i32 at0 = start1 + start0 * 700;
  const i32 i = (t >> 2 & 7) + (t >> 1 & 16);
  const i32 j = (t >> 3 & 8) + (t & 3) * 2;
  PL_UNROLL for (i32 r = 0; r < 32; ++r) v0[r] = 0.0f;
  v0_stored = true;
  const i32 i_b = (t >> 3 & 15);
  const i32 j_b = (t & 7) * 4;
  const i32 i_c = (t >> 4 & 7);
  const i32 j_c = (t & 15) * 4;
  {
    PL_NOUNROLL for (i32 p2 = 0; p2 < 9; ++p2) {
      const i32 start2 = p2 * 32;
      const i32 size2 = pl::min(300 - start2, 32);
      const i32 at1 = start2 + start0 * 300;
      const i32 at2 = start1 + start2 * 700;
      pl::warpgroup_sync();
      {
        f16 a0[16];
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          pl::load_global_nc<4>(a0 + ri * 4, in0 + (at1 + j_b + i_b * 300) + ri * 4800, j_b < size2 && i_b + ri * 16 < size0);
        }
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          f16 o1[4];
          PL_UNROLL for (i32 e = 0; e < 4; ++e) o1[e] = a0[ri * 4 + e];
          pl::store_shared<4>(smem + ((j_b ^ (i_b >> 1 & 3) * 8) + i_b * 32 + ri * 512) * 2, o1);
        }
      }
      {
        f16 a0[16];
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          pl::load_global_nc<4>(a0 + ri * 4, in1 + (at2 + j_c + i_c * 700) + ri * 5600, j_c < size1 && i_c + ri * 8 < size2);
        }
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          f16 o1[4];
          PL_UNROLL for (i32 e = 0; e < 4; ++e) o1[e] = a0[ri * 4 + e];
          pl::store_shared<4>(smem + 4096 + ((j_c ^ (i_c & 7) * 8) + i_c * 64 + ri * 512) * 2, o1);
        }
      }
      pl::warpgroup_sync();
      pl::check(v0_stored, "outputs[0] is read before anything was stored there");
      pl::dot_mma_1688<2, 4, 2, false, false, f16, 32, 64, 2, 128, 3>(v0, smem, 0, smem + 4096, 0);
      v0_stored = true;
    }
    PL_NOUNROLL for (i32 p2 = 9; p2 < 10; ++p2) {
      const i32 start3 = p2 * 32;
      const i32 size3 = pl::min(300 - start3, 32);
      const i32 at3 = start3 + start0 * 300;
      const i32 at4 = start1 + start3 * 700;
      const i32 v4 = p2;
      const i32 sx0 = pl::mul(v4, 32);
      const i32 v2 = sx0;
      pl::warpgroup_sync();
      {
        f16 a0[16];
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          pl::load_global_nc<4>(a0 + ri * 4, in0 + (at3 + j_b + i_b * 300) + ri * 4800, j_b < size3 && i_b + ri * 16 < size0);
        }
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          f16 o1[4];
          PL_UNROLL for (i32 e = 0; e < 4; ++e) {
            o1[e] = (pl::add(j_b + e, v2) < 300) ? a0[ri * 4 + e] : pl::to<f16>(0.0f);
          }
          pl::store_shared<4>(smem + ((j_b ^ (i_b >> 1 & 3) * 8) + i_b * 32 + ri * 512) * 2, o1);
        }
      }
      {
        f16 a0[16];
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          pl::load_global_nc<4>(a0 + ri * 4, in1 + (at4 + j_c + i_c * 700) + ri * 5600, j_c < size1 && i_c + ri * 8 < size3);
        }
        PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
          const bool x1 = pl::add(i_c + ri * 8, v2) < 300;
          f16 o2[4];
          PL_UNROLL for (i32 e = 0; e < 4; ++e) o2[e] = x1 ? a0[ri * 4 + e] : pl::to<f16>(0.0f);
          pl::store_shared<4>(smem + 4096 + ((j_c ^ (i_c & 7) * 8) + i_c * 64 + ri * 512) * 2, o2);
        }
      }
      pl::warpgroup_sync();
      pl::check(v0_stored, "outputs[0] is read before anything was stored there");
      pl::dot_mma_1688<2, 4, 2, false, false, f16, 32, 64, 2, 128, 3>(v0, smem, 0, smem + 4096, 0);
      v0_stored = true;
    }
  }
  PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
    PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
      PL_UNROLL for (i32 g = 0; g < 2; ++g) {
        pl::store_global<2>(out0 + (at0 + j + i * 700) + rj * 16 + ri * 22400 + g * 5600, v0 + ri * 16 + rj * 4 + g * 2, j + rj * 16 < size1 && i + ri * 32 + g * 8 < size0 && pl::was_stored(v0_stored));
      }
    }
  }
}
PL_EXPORT(matmul_kernel)
