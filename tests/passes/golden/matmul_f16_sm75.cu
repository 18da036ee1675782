PL_KERNEL(128) matmul_kernel(const f16* in0, const f16* in1, f32* out0) {
  const u32 smem = pl::shared_base();
  const i32 block = pl::block_x();
  const i32 p1 = block % 11;
  const i32 p0 = block / 11;
  f32 v0[32] = {};
  bool v0_stored = false;
  const i64 w2_start0 = i64(p0) * 64;
  const i32 w2_size0 = u64(w2_start0) < 1000 ? i32(pl::min(1000 - w2_start0, i64(64))) : 0;
  pl::check(w2_size0 > 0, "outputs[0]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  const i64 w2_start1 = i64(p1) * 64;
  const i32 w2_size1 = u64(w2_start1) < 700 ? i32(pl::min(700 - w2_start1, i64(64))) : 0;
  pl::check(w2_size1 > 0, "outputs[0]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
  f32* w2 = out0 + w2_start1 + w2_start0 * 700;
  PL_NOUNROLL for (i32 p2 = 0; p2 < 10; ++p2) {
    const i64 w0_start0 = i64(p0) * 64;
    const i32 w0_size0 = u64(w0_start0) < 1000 ? i32(pl::min(1000 - w0_start0, i64(64))) : 0;
    pl::check(w0_size0 > 0, "args[0]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
    const i64 w0_start1 = i64(p2) * 32;
    const i32 w0_size1 = u64(w0_start1) < 300 ? i32(pl::min(300 - w0_start1, i64(32))) : 0;
    pl::check(w0_size1 > 0, "args[0]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
    const f16* w0 = in0 + w0_start1 + w0_start0 * 300;
    const i64 w1_start0 = i64(p2) * 32;
    const i32 w1_size0 = u64(w1_start0) < 300 ? i32(pl::min(300 - w1_start0, i64(32))) : 0;
    pl::check(w1_size0 > 0, "args[1]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
    const i64 w1_start1 = i64(p1) * 64;
    const i32 w1_size1 = u64(w1_start1) < 700 ? i32(pl::min(700 - w1_start1, i64(64))) : 0;
    pl::check(w1_size1 > 0, "args[1]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
    const f16* w1 = in1 + w1_start1 + w1_start0 * 700;
    const i32 v4 = p2;
    const bool v3 = v4 == 0;
    if (v3) {
      {
        PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
          PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
            PL_UNROLL for (i32 g = 0; g < 2; ++g) {
              PL_UNROLL for (i32 e = 0; e < 2; ++e) {
                v0[ri * 16 + rj * 4 + g * 2 + e] = 0.0f;
              }
            }
          }
        }
      }
      v0_stored = true;
    }
    const i32 sx0 = pl::mul(v4, 32);
    const i32 v2 = sx0;
    pl::warpgroup_sync();
    {
      const i32 t = pl::thread();
      const i32 i = (t >> 3 & 15);
      const i32 j = (t & 7) * 4;
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        f16 a0[4];
        pl::load_global_nc<4>(a0, w0 + (j + i * 300 + ri * 4800), j < w0_size1 && i + ri * 16 < w0_size0);
        f16 o1[4];
        PL_UNROLL for (i32 e = 0; e < 4; ++e) {
          o1[e] = (pl::add(j + e, v2) < 300) ? a0[e] : pl::to<f16>(0.0f);
        }
        pl::store_shared<4>(smem + (j + i * 40 + ri * 640) * 2, o1);
      }
    }
    {
      const i32 t = pl::thread();
      const i32 i = (t >> 4 & 7);
      const i32 j = (t & 15) * 4;
      PL_UNROLL for (i32 ri = 0; ri < 4; ++ri) {
        f16 a0[4];
        pl::load_global_nc<4>(a0, w1 + (j + i * 700 + ri * 5600), j < w1_size1 && i + ri * 8 < w1_size0);
        const bool x1 = pl::add(i + ri * 8, v2) < 300;
        f16 o2[4];
        PL_UNROLL for (i32 e = 0; e < 4; ++e) {
          o2[e] = x1 ? a0[e] : pl::to<f16>(0.0f);
        }
        pl::store_shared<4>(smem + 5120 + (j + i * 72 + ri * 576) * 2, o2);
      }
    }
    pl::warpgroup_sync();
    pl::check(v0_stored, "outputs[0] is read before anything was stored there");
    pl::dot_mma_1688<2, 4, 2, false, false>(v0, smem, 80, smem + 5120, 144, 32);
    v0_stored = true;
  }
  {
    const i32 t = pl::thread();
    const i32 i = (t >> 2 & 7) + (t >> 1 & 16);
    const i32 j = (t >> 3 & 8) + (t & 3) * 2;
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      PL_UNROLL for (i32 rj = 0; rj < 4; ++rj) {
        PL_UNROLL for (i32 g = 0; g < 2; ++g) {
          pl::store_global<2>(w2 + (j + rj * 16 + i * 700 + ri * 22400 + g * 5600), v0 + ri * 16 + rj * 4 + g * 2, j + rj * 16 < w2_size1 && i + ri * 32 + g * 8 < w2_size0 && pl::was_stored(v0_stored));
        }
      }
    }
  }
}
PL_EXPORT(matmul_kernel)
