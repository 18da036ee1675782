PL_KERNEL(128, 4) matmul_kernel(const f32* in0, const f32* in1, f32* out0, i64 s0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % 5);
  const i32 p0 = i32(block / 5);
  const i64 start0 = i64(p0) * 64;
  const i32 size0 = i32(pl::min(s0 - start0, i64(64)));
  pl::check(700 > 0, "args[0]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
  const f32* w0 = in0 + start0 * 700;
  pl::check(700 > 0, "args[1]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  const i32 start1 = p1 * 64;
  const i32 size1 = pl::min(300 - start1, 64);
  f32* w2 = out0 + i64(start1) + start0 * 300;
  f32 v3[32];
  const i32 i = (t >> 3 & 15);
  const i32 j = (t & 7) * 4;
  PL_UNROLL for (i32 r = 0; r < 32; ++r) v3[r] = 0.0f;
  u32 read0 = 0u;
  u32 fill0 = 0u;
  const i32 i_b = (t >> 4 & 7);
  const i32 j_b = (t & 15) * 4;
  PL_NOUNROLL for (i32 early0 = 0; early0 < 2; ++early0) {
    if (early0 < 22) {
      const i32 turn0 = early0;
      const i32 sx0 = pl::mul(turn0, 32);
      const i32 v2 = sx0;
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + (j + i * 36 + ri * 576) * 4, w0 + (j + v2 + i * 700) + ri * 11200, i + ri * 16 < size0);
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + 9216 + (j_b + i_b * 68 + ri * 544) * 4, in1 + (start1 + j_b + i_b * 300 + v2 * 300) + ri * 2400, j_b < size1);
      }
    }
    pl::cp_async_commit();
    fill0 = fill0 + 17920;
  }
  PL_NOUNROLL for (i32 v4 = 0; v4 < 22; ++v4) {
    pl::cp_async_wait<1>();
    pl::warpgroup_sync();
    if (v4 + 2 < 22) {
      const i32 turn0 = v4 + 2;
      const i32 sx1 = pl::mul(turn0, 32);
      const i32 v2 = sx1;
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + (j + i * 36 + ri * 576) * 4, w0 + (j + v2 + i * 700) + ri * 11200, j + v2 < 700 && i + ri * 16 < size0);
      }
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        pl::copy_async_zero<4>(smem + fill0 + 9216 + (j_b + i_b * 68 + ri * 544) * 4, in1 + (start1 + j_b + i_b * 300 + v2 * 300) + ri * 2400, j_b < size1 && i_b + ri * 8 + v2 < 700);
      }
    }
    pl::cp_async_commit();
    pl::dot_fma<4, 2, 4, 8, 16, false, false, f32, f32>(v3, smem + read0, 144, smem + read0 + 9216, 272, 32);
    fill0 = read0;
    read0 = read0 == 35840 ? 0 : (read0 + 17920);
  }
  PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
    PL_UNROLL for (i32 rj = 0; rj < 2; ++rj) {
      pl::store_global<4>(w2 + (j + i * 300) + rj * 32 + ri * 4800, v3 + ri * 8 + rj * 4, j + rj * 32 < size1 && i + ri * 16 < size0);
    }
  }
}
PL_EXPORT(matmul_kernel)
