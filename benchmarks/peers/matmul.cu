// The product of m x 700 by 700 x 300 in f32. A block has 64 x 64 elements of it and goes along k in
// steps of 32, which pass through shared memory; what lies beyond the arrays is 0 there.
PL_KERNEL(128) matmul(const f32* a, const f32* b, f32* o, i64 m) {
  const u32 smem = pl::shared_base(), b_smem = smem + 64 * 144, t = pl::thread();
  const i32 n0 = pl::block_x() % 5 * 64;
  const i64 m0 = i64(pl::block_x() / 5) * 64;
  const i32 rows = i32(pl::min(m - m0, i64(64))), columns = 300 - n0;
  const i32 a_row = i32(t / 8), a_column = i32(t % 8) * 4;
  const i32 b_row = i32(t / 16), b_column = i32(t % 16) * 4;
  const f32* a_at = a + (m0 + a_row) * 700 + a_column;
  const f32* b_at = b + b_row * 300 + n0 + b_column;

  f32 total[32] = {};
  PL_NOUNROLL for (i32 k = 0; k < 700; k += 32) {
    f32 v[32];
    PL_UNROLL for (i32 r = 0; r < 4; ++r) {
      pl::load_global_nc<4>(v + 4 * r, a_at + 16 * 700 * r,
                            a_row + 16 * r < rows && k + a_column < 700);
      pl::load_global_nc<4>(v + 16 + 4 * r, b_at + 8 * 300 * r,
                            k + b_row + 8 * r < 700 && b_column < columns);
    }
    a_at += 32;
    b_at += 32 * 300;
    pl::warpgroup_sync();  // the last step has been read
    PL_UNROLL for (i32 r = 0; r < 4; ++r) {
      pl::store_shared<4>(smem + (a_row + 16 * r) * 144 + a_column * 4, v + 4 * r);
      pl::store_shared<4>(b_smem + (b_row + 8 * r) * 272 + b_column * 4, v + 16 + 4 * r);
    }
    pl::warpgroup_sync();
    pl::dot_fma<4, 2, 4, 8, 16, false, false, f32, f32>(total, smem, 144, b_smem, 272, 32);
  }
  const i32 row = i32(t / 8), column = i32(t % 8) * 4;
  f32* to = o + (m0 + row) * 300 + n0 + column;
  PL_UNROLL for (i32 r = 0; r < 4; ++r) {
    PL_UNROLL for (i32 c = 0; c < 2; ++c) {
      pl::store_global<4>(to + 16 * 300 * r + 32 * c, total + 8 * r + 4 * c,
                          row + 16 * r < rows && column + 32 * c < columns);
    }
  }
}
PL_EXPORT(matmul)
