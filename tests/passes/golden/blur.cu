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
      pl::copy_async_zero<16>(smem + (j + i * 192 + ri * 3072) * 1, w0 + (j + i * 640) + ri * 10240, j < size1 && j >= from1 && i + ri * 16 < size0 && i + ri * 16 >= from0);
    }
  }
  pl::cp_async_commit();
  const i32 start2 = p0 * 16;
  const i32 start3 = p1 * 64;
  const i32 at0 = start3 + start2 * 640;
  const i32 v15 = p0;
  const i32 sx0 = pl::mul(v15, 16);
  const i32 v14 = sx0;
  const bool v13 = v14 >= 2;
  const i32 v12 = pl::add(v14, 18);
  const bool v11 = v12 <= 480;
  const bool v10 = v13 && v11;
  const i32 v9 = p1;
  const i32 sx1 = pl::mul(v9, 64);
  const i32 v8 = sx1;
  const bool v7 = v8 >= 2;
  const i32 v6 = pl::add(v8, 66);
  const bool v5 = v6 <= 640;
  const bool v4 = v7 && v5;
  const bool sx2 = v10 && v4;
  const bool v3 = sx2;
  pl::cp_async_wait<0>();
  pl::warpgroup_sync();
  i32 v2[8];
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
    PL_UNROLL for (i32 e = 0; e < 8; ++e) {
      v2[e] = pl::add(pl::add(pl::add(pl::add(x5[e], x5[e + 1]), x5[e + 2]), x5[e + 3]), x5[e + 4]);
    }
  }
  if (v3) {
    u8 o3[8];
    PL_UNROLL for (i32 e = 0; e < 8; ++e) o3[e] = pl::to<u8>(pl::div(pl::add(v2[e], 12), 25));
    pl::store_global<8>(out0 + at0 + j_b + i * 640, o3);
  }
  const bool v1 = !v3;
  if (v1) {
    const i32 x4 = pl::add(i, v14);
    const i32 x5 = pl::add(pl::sub(pl::min(pl::add(x4, 2), 479), pl::max(pl::sub(x4, 2), 0)), 1);
    u8 o6[8];
    PL_UNROLL for (i32 e = 0; e < 8; ++e) {
      const i32 x7 = pl::add(j_b + e, v8);
      const i32 x8 = pl::add(pl::sub(pl::min(pl::add(x7, 2), 639), pl::max(pl::sub(x7, 2), 0)), 1);
      const i32 x9 = pl::mul(x5, x8);
      o6[e] = pl::to<u8>(pl::div(pl::add(v2[e], pl::div(x9, 2)), x9));
    }
    pl::store_global<8>(out0 + at0 + j_b + i * 640, o6);
  }
}
PL_EXPORT(blur_kernel)
