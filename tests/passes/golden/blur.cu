PL_KERNEL(128) blur_kernel(const u8* in0, u8* out0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const u32 block = pl::block_x();
  const i32 p1 = i32(block % 10);
  const i32 p0 = i32(block / 10);
  const i64 start0 = i64(pl::mul(p0, 16)) - 2;
  const i32 from0 = start0 < 0 ? i32(pl::min(-start0, i64(20))) : 0;
  const i32 size0 = i32(pl::min(480 - start0, i64(20)));
  pl::check(size0 > from0, "args[0]: the block is wholly out of bounds along dimension 0 (an index map gives block indices, not element offsets)");
  const i64 start1 = i64(pl::mul(p1, 64)) - 16;
  const i32 from1 = start1 < 0 ? i32(pl::min(-start1, i64(96))) : 0;
  const i32 size1 = i32(pl::min(640 - start1, i64(96)));
  pl::check(start1 + 14 < 640 && start1 + 82 > 0, "args[0]: the block is wholly out of bounds along dimension 1 (an index map gives block indices, not element offsets)");
  const u8* w0 = in0 + start1 + start0 * 640;
  const i32 i = (t >> 3 & 15);
  const i32 j = (t & 7) * 16;
  PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
    if (i + ri * 16 < 20 && j < 96) {
      pl::copy_async_zero<16>(smem + (j + i * 192 + ri * 3072) * 1, w0 + (j + i * 640 + ri * 10240), j < size1 && j >= from1 && i + ri * 16 < size0 && i + ri * 16 >= from0);
    }
  }
  pl::cp_async_commit();
  const i32 start2 = p0 * 16;
  const i32 start3 = p1 * 64;
  const i32 at0 = start3 + start2 * 640;
  const i32 v4 = p0;
  const i32 v3 = pl::mul(v4, 16);
  const i32 v2 = p1;
  const i32 v1 = pl::mul(v2, 64);
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  const i32 j_b = (t & 7) * 8;
  {
    u8 a0[24];
    PL_UNROLL for (i32 q = 0; q < 24; q += 8) pl::load_shared_padded<8>(a0 + q, smem + (j_b + i * 192 + q + 8) * 1);
    u8 a1[24];
    PL_UNROLL for (i32 q = 0; q < 24; q += 8) pl::load_shared_padded<8>(a1 + q, smem + (j_b + i * 192 + q + 200) * 1);
    u8 a2[24];
    PL_UNROLL for (i32 q = 0; q < 24; q += 8) pl::load_shared_padded<8>(a2 + q, smem + (j_b + i * 192 + q + 392) * 1);
    u8 a3[24];
    PL_UNROLL for (i32 q = 0; q < 24; q += 8) pl::load_shared_padded<8>(a3 + q, smem + (j_b + i * 192 + q + 584) * 1);
    u8 a4[24];
    PL_UNROLL for (i32 q = 0; q < 24; q += 8) pl::load_shared_padded<8>(a4 + q, smem + (j_b + i * 192 + q + 776) * 1);
    i32 x5[12];
    PL_UNROLL for (i32 q = 0; q < 12; ++q) x5[q] = pl::add(pl::add(pl::add(pl::add(pl::to<i32>(a0[q + 6]), pl::to<i32>(a1[q + 6])), pl::to<i32>(a2[q + 6])), pl::to<i32>(a3[q + 6])), pl::to<i32>(a4[q + 6]));
    i32 x6[8];
    PL_UNROLL for (i32 q = 0; q < 8; ++q) x6[q] = pl::add(pl::add(pl::add(pl::add(x5[q], x5[q + 1]), x5[q + 2]), x5[q + 3]), x5[q + 4]);
    u8 o7[8];
    if (size0 == 20 && from0 == 0 && size1 == 96 && from1 == 0) {
      PL_UNROLL for (i32 e = 0; e < 8; ++e) o7[e] = pl::to<u8>(pl::div(pl::add(x6[e], 12), 25));
    } else {
      const i32 x8 = pl::add(i, v3);
      const i32 x9 = pl::add(x8, -2);
      const bool x10 = x9 >= 0;
      const i32 x11 = pl::add(x8, -1);
      const bool x12 = x11 >= 0;
      const i32 x13 = pl::add(x8, 1);
      const bool x14 = x13 < 480;
      const i32 x15 = pl::add(x8, 2);
      const bool x16 = x15 < 480;
      const i32 x17 = pl::add(pl::add(pl::add(pl::add(1, x10 ? 1 : 0), x12 ? 1 : 0), x14 ? 1 : 0), x16 ? 1 : 0);
      PL_UNROLL for (i32 e = 0; e < 8; ++e) {
        const i32 x18 = pl::add(j_b + e, v1);
        const i32 x19 = pl::add(x18, -2);
        const bool x20 = x19 >= 0;
        const i32 x21 = pl::add(x18, -1);
        const bool x22 = x21 >= 0;
        const i32 x23 = pl::add(x18, 1);
        const bool x24 = x23 < 640;
        const i32 x25 = pl::add(x18, 2);
        const bool x26 = x25 < 640;
        const i32 x27 = pl::mul(x17, pl::add(pl::add(pl::add(pl::add(1, x20 ? 1 : 0), x22 ? 1 : 0), x24 ? 1 : 0), x26 ? 1 : 0));
        o7[e] = pl::to<u8>(pl::div(pl::add(x6[e], pl::div(x27, 2)), x27));
      }
    }
    pl::store_global<8>(out0 + (at0 + j_b + i * 640), o7);
  }
}
PL_EXPORT(blur_kernel)
