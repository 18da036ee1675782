PL_KERNEL(128) blur_kernel(const u8* in0, u8* out0) {
  const u32 smem = pl::shared_base();
  const i32 t = pl::thread();
  const i32 block = pl::block_x();
  const i32 p1 = block % 10;
  const i32 p0 = block / 10;
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
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  const i32 start2 = p0 * 16;
  const i32 start3 = p1 * 64;
  const i32 at0 = start3 + start2 * 640;
  const i32 v4 = p0;
  const i32 v3 = pl::mul(v4, 16);
  const i32 v2 = p1;
  const i32 v1 = pl::mul(v2, 64);
  const i32 j_b = (t & 7) * 8;
  const i32 i_b = (t >> 6 & 1);
  const i32 j_c = (t & 63);
  if (size0 == 20 && from0 == 0 && size1 == 96 && from1 == 0) {
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
    u8 o6[8];
    PL_UNROLL for (i32 e = 0; e < 8; ++e) {
      const i32 x7 = pl::div(pl::add(pl::add(pl::add(pl::add(pl::add(x5[e], x5[e + 1]), x5[e + 2]), x5[e + 3]), x5[e + 4]), 12), 25);
      o6[e] = pl::to<u8>(x7);
    }
    pl::store_global<8>(out0 + (at0 + j_b + i * 640), o6);
  } else {
    const i32 x8 = pl::add(j_c, v1);
    const i32 x9 = pl::add(x8, -2);
    const bool x10 = x9 >= 0;
    const i32 x11 = pl::add(x8, -1);
    const bool x12 = x11 >= 0;
    const i32 x13 = pl::add(x8, 1);
    const bool x14 = x13 < 640;
    const i32 x15 = pl::add(x8, 2);
    const bool x16 = x15 < 640;
    const i32 x17 = pl::add(pl::add(pl::add(pl::add(1, x10 ? 1 : 0), x12 ? 1 : 0), x14 ? 1 : 0), x16 ? 1 : 0);
    PL_NOUNROLL for (i32 ri = 0; ri < 8; ++ri) {
      u8 a18[5];
      PL_UNROLL for (i32 q = 0; q < 5; ++q) pl::load_shared_padded<1>(a18 + q, smem + (j_c + i_b * 192 + ri * 384 + q + 14) * 1);
      u8 a19[5];
      PL_UNROLL for (i32 q = 0; q < 5; ++q) pl::load_shared_padded<1>(a19 + q, smem + (j_c + i_b * 192 + ri * 384 + q + 206) * 1);
      u8 a20[5];
      PL_UNROLL for (i32 q = 0; q < 5; ++q) pl::load_shared_padded<1>(a20 + q, smem + (j_c + i_b * 192 + ri * 384 + q + 398) * 1);
      u8 a21[5];
      PL_UNROLL for (i32 q = 0; q < 5; ++q) pl::load_shared_padded<1>(a21 + q, smem + (j_c + i_b * 192 + ri * 384 + q + 590) * 1);
      u8 a22[5];
      PL_UNROLL for (i32 q = 0; q < 5; ++q) pl::load_shared_padded<1>(a22 + q, smem + (j_c + i_b * 192 + ri * 384 + q + 782) * 1);
      const i32 x23 = pl::add(i_b + ri * 2, v3);
      const i32 x24 = pl::add(x23, -2);
      const bool x25 = x24 >= 0;
      const i32 x26 = pl::add(x23, -1);
      const bool x27 = x26 >= 0;
      const i32 x28 = pl::add(x23, 1);
      const bool x29 = x28 < 480;
      const i32 x30 = pl::add(x23, 2);
      const bool x31 = x30 < 480;
      const i32 x32 = pl::mul(pl::add(pl::add(pl::add(pl::add(1, x25 ? 1 : 0), x27 ? 1 : 0), x29 ? 1 : 0), x31 ? 1 : 0), x17);
      const i32 x33 = pl::add(pl::add(pl::add(pl::add(pl::to<i32>(a18[0]), pl::to<i32>(a18[1])), pl::to<i32>(a18[2])), pl::to<i32>(a18[3])), pl::to<i32>(a18[4]));
      const i32 x34 = pl::add(pl::add(pl::add(pl::add(x33, pl::to<i32>(a19[0])), pl::to<i32>(a19[1])), pl::to<i32>(a19[2])), pl::to<i32>(a19[3]));
      const i32 x35 = pl::add(pl::add(pl::add(pl::add(x34, pl::to<i32>(a19[4])), pl::to<i32>(a20[0])), pl::to<i32>(a20[1])), pl::to<i32>(a20[2]));
      const i32 x36 = pl::add(pl::add(pl::add(pl::add(x35, pl::to<i32>(a20[3])), pl::to<i32>(a20[4])), pl::to<i32>(a21[0])), pl::to<i32>(a21[1]));
      const i32 x37 = pl::add(pl::add(pl::add(pl::add(x36, pl::to<i32>(a21[2])), pl::to<i32>(a21[3])), pl::to<i32>(a21[4])), pl::to<i32>(a22[0]));
      const i32 x38 = pl::add(pl::add(pl::add(pl::add(x37, pl::to<i32>(a22[1])), pl::to<i32>(a22[2])), pl::to<i32>(a22[3])), pl::to<i32>(a22[4]));
      const u8 o39 = pl::to<u8>(pl::div(pl::add(x38, pl::div(x32, 2)), x32));
      pl::store_global<1>(out0 + (at0 + j_c + i_b * 640 + ri * 1280), &o39);
    }
  }
}
PL_EXPORT(blur_kernel)
