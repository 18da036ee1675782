// The mean of the up to 25 pixels around each of 480 x 640, rounded half up. A block has 16 x 64 of
// them and brings their neighbourhood, 20 rows of 96 from 16 to the left, to shared memory once, with
// 0 outside of the image: only the count depends on where a pixel lies. A thread has 8 pixels of a
// row, whose sums share those of columns.
PL_KERNEL(128) blur(const u8* x, u8* o) {
  const u32 smem = pl::shared_base(), t = pl::thread();
  const i32 top = pl::block_x() / 10 * 16, left = pl::block_x() % 10 * 64;
  if (t < 120) {
    const i32 r = i32(t / 6), c = i32(t % 6) * 16, row = top - 2 + r, column = left - 16 + c;
    const bool inside = row >= 0 && row < 480 && column >= 0 && column < 640;
    u8 pixels[16];
    pl::load_global_nc<16>(pixels, x + (row * 640 + column), inside);
    pl::store_shared<16>(smem + r * 96 + c, pixels);
  }
  pl::warpgroup_sync();

  const i32 i = i32(t / 8), j = i32(t % 8) * 8;
  i32 sums[12] = {};  // of five rows of the columns from j - 2 on
  PL_UNROLL for (i32 d = 0; d < 5; ++d) {
    u8 pixels[16];  // of the columns from j - 4 on
    PL_UNROLL for (i32 q = 0; q < 4; ++q) {
      pl::load_shared<4>(pixels + 4 * q, smem + (i + d) * 96 + j + 12 + 4 * q);
    }
    PL_UNROLL for (i32 c = 0; c < 12; ++c) sums[c] = sums[c] + pl::to<i32>(pixels[c + 2]);
  }
  const i32 row = top + i, rows = pl::min(row + 2, 479) - pl::max(row - 2, 0) + 1;
  u8 means[8];
  PL_UNROLL for (i32 c = 0; c < 8; ++c) {
    const i32 column = left + j + c;
    const i32 count = rows * (pl::min(column + 2, 639) - pl::max(column - 2, 0) + 1);
    const i32 total = sums[c] + sums[c + 1] + sums[c + 2] + sums[c + 3] + sums[c + 4];
    means[c] = pl::to<u8>(pl::div(total + count / 2, count));
  }
  pl::store_global<8>(o + row * 640 + left + j, means);
}
PL_EXPORT(blur)
