PL_KERNEL(128) transpose_kernel(const f32* in0, f32* out0, i64 s0, i64 s1) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % u32(s1 + 63 >> 6));
  const i32 p0 = i32(block / u32(s1 + 63 >> 6));
  const i32 start0 = p0 * 64;
  const i32 size0 = pl::min(i32(s0) - start0, 64);
  const i32 start1 = p1 * 64;
  const i32 size1 = pl::min(i32(s1) - start1, 64);
  const i32 at0 = start1 + start0 * i32(s1);
  const i32 i = (t >> 4 & 7);
  const i32 j = (t & 15) * 4;
  PL_UNROLL for (i32 ri = 0; ri < 8; ++ri) {
    pl::copy_async<4>(smem + ((j ^ (i >> 2 & 7) * 4 ^ ((ri * 8) >> 2 & 7) * 4) + i * 64 + ri * 512) * 4, in0 + (at0 + j) + (i + ri * 8) * i32(s1), j < size1 && i + ri * 8 < size0);
  }
  pl::cp_async_commit();
  const i32 at1 = start0 + start1 * i32(s0);
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  const i32 i_b = (t >> 3 & 15);
  const i32 j_b = (t & 7) * 4;
  if (size0 == 64 && size1 == 64) {
    f32 a0[32];
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
        PL_UNROLL for (i32 e = 0; e < 4; ++e) pl::load_shared_padded<1>(a0 + ri * 8 + rj * 4 + e, smem + ((i_b ^ (j_b >> 2 & 7) * 4 ^ ri * 16) + j_b * 64 + rj * 2048 + e * 64) * 4);
      }
    }
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
        f32 o1[4];
        PL_UNROLL for (i32 e = 0; e < 4; ++e) o1[e] = a0[ri * 8 + rj * 4 + e];
        pl::store_global<4>(out0 + (at1 + j_b) + rj * 32 + (i_b + ri * 16) * i32(s0), o1);
      }
    }
  } else {
    f32 a2[32];
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
        PL_UNROLL for (i32 e = 0; e < 4; ++e) pl::load_shared_padded<1>(a2 + ri * 8 + rj * 4 + e, smem + ((i_b ^ (j_b >> 2 & 7) * 4 ^ ri * 16) + j_b * 64 + rj * 2048 + e * 64) * 4);
      }
    }
    PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
        f32 o3[4];
        PL_UNROLL for (i32 e = 0; e < 4; ++e) o3[e] = a2[ri * 8 + rj * 4 + e];
        pl::store_global<4>(out0 + (at1 + j_b) + rj * 32 + (i_b + ri * 16) * i32(s0), o3, j_b + rj * 32 < size0 && i_b + ri * 16 < size1);
      }
    }
  }
}
PL_EXPORT(transpose_kernel)
