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
  {
    u8 a0[32];
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      pl::load_global_nc_zero<16>(a0 + ri * 16, w0 + (j + i * 640 + ri * 10240), j < size1 && j >= from1 && i + ri * 16 < size0 && i + ri * 16 >= from0);
    }
    PL_UNROLL for (i32 ri = 0; ri < 2; ++ri) {
      pl::store_shared<16>(smem + (j + i * 192 + ri * 3072) * 1, a0 + ri * 16, i + ri * 16 < 20 && j < 96);
    }
  }
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
    u8 o5[8];
    PL_UNROLL for (i32 e = 0; e < 8; ++e) {
      const i32 x6 = pl::add(pl::add(pl::add(pl::add(pl::to<i32>(a0[e + 6]), pl::to<i32>(a0[e + 7])), pl::to<i32>(a0[e + 8])), pl::to<i32>(a0[e + 9])), pl::to<i32>(a0[e + 10]));
      const i32 x7 = pl::add(pl::add(pl::add(pl::add(x6, pl::to<i32>(a1[e + 6])), pl::to<i32>(a1[e + 7])), pl::to<i32>(a1[e + 8])), pl::to<i32>(a1[e + 9]));
      const i32 x8 = pl::add(pl::add(pl::add(pl::add(x7, pl::to<i32>(a1[e + 10])), pl::to<i32>(a2[e + 6])), pl::to<i32>(a2[e + 7])), pl::to<i32>(a2[e + 8]));
      const i32 x9 = pl::add(pl::add(pl::add(pl::add(x8, pl::to<i32>(a2[e + 9])), pl::to<i32>(a2[e + 10])), pl::to<i32>(a3[e + 6])), pl::to<i32>(a3[e + 7]));
      const i32 x10 = pl::add(pl::add(pl::add(pl::add(x9, pl::to<i32>(a3[e + 8])), pl::to<i32>(a3[e + 9])), pl::to<i32>(a3[e + 10])), pl::to<i32>(a4[e + 6]));
      const i32 x11 = pl::add(pl::add(pl::add(pl::add(x10, pl::to<i32>(a4[e + 7])), pl::to<i32>(a4[e + 8])), pl::to<i32>(a4[e + 9])), pl::to<i32>(a4[e + 10]));
      o5[e] = pl::to<u8>(pl::div(pl::add(x11, 12), 25));
    }
    pl::store_global<8>(out0 + (at0 + j_b + i * 640), o5);
  } else {
    const i32 x12 = pl::add(j_c, v1);
    const i32 x13 = pl::add(x12, -2);
    const bool x14 = x13 >= 0;
    const i32 x15 = pl::add(x12, -1);
    const bool x16 = x15 >= 0;
    const i32 x17 = pl::add(x12, 1);
    const bool x18 = x17 < 640;
    const i32 x19 = pl::add(x12, 2);
    const bool x20 = x19 < 640;
    const i32 x21 = x14 ? 1 : 0;
    const i32 x22 = x16 ? 1 : 0;
    const i32 x23 = x18 ? 1 : 0;
    const i32 x24 = x20 ? 1 : 0;
    PL_NOUNROLL for (i32 ri = 0; ri < 8; ++ri) {
      u8 a25;
      pl::load_shared_padded<1>(&a25, smem + (j_c + i_b * 192 + ri * 384 + 14) * 1);
      u8 a26;
      pl::load_shared_padded<1>(&a26, smem + (j_c + i_b * 192 + ri * 384 + 15) * 1);
      u8 a27;
      pl::load_shared_padded<1>(&a27, smem + (j_c + i_b * 192 + ri * 384 + 16) * 1);
      u8 a28;
      pl::load_shared_padded<1>(&a28, smem + (j_c + i_b * 192 + ri * 384 + 17) * 1);
      u8 a29;
      pl::load_shared_padded<1>(&a29, smem + (j_c + i_b * 192 + ri * 384 + 18) * 1);
      u8 a30;
      pl::load_shared_padded<1>(&a30, smem + (j_c + i_b * 192 + ri * 384 + 206) * 1);
      u8 a31;
      pl::load_shared_padded<1>(&a31, smem + (j_c + i_b * 192 + ri * 384 + 207) * 1);
      u8 a32;
      pl::load_shared_padded<1>(&a32, smem + (j_c + i_b * 192 + ri * 384 + 208) * 1);
      u8 a33;
      pl::load_shared_padded<1>(&a33, smem + (j_c + i_b * 192 + ri * 384 + 209) * 1);
      u8 a34;
      pl::load_shared_padded<1>(&a34, smem + (j_c + i_b * 192 + ri * 384 + 210) * 1);
      u8 a35;
      pl::load_shared_padded<1>(&a35, smem + (j_c + i_b * 192 + ri * 384 + 398) * 1);
      u8 a36;
      pl::load_shared_padded<1>(&a36, smem + (j_c + i_b * 192 + ri * 384 + 399) * 1);
      u8 a37;
      pl::load_shared_padded<1>(&a37, smem + (j_c + i_b * 192 + ri * 384 + 400) * 1);
      u8 a38;
      pl::load_shared_padded<1>(&a38, smem + (j_c + i_b * 192 + ri * 384 + 401) * 1);
      u8 a39;
      pl::load_shared_padded<1>(&a39, smem + (j_c + i_b * 192 + ri * 384 + 402) * 1);
      u8 a40;
      pl::load_shared_padded<1>(&a40, smem + (j_c + i_b * 192 + ri * 384 + 590) * 1);
      u8 a41;
      pl::load_shared_padded<1>(&a41, smem + (j_c + i_b * 192 + ri * 384 + 591) * 1);
      u8 a42;
      pl::load_shared_padded<1>(&a42, smem + (j_c + i_b * 192 + ri * 384 + 592) * 1);
      u8 a43;
      pl::load_shared_padded<1>(&a43, smem + (j_c + i_b * 192 + ri * 384 + 593) * 1);
      u8 a44;
      pl::load_shared_padded<1>(&a44, smem + (j_c + i_b * 192 + ri * 384 + 594) * 1);
      u8 a45;
      pl::load_shared_padded<1>(&a45, smem + (j_c + i_b * 192 + ri * 384 + 782) * 1);
      u8 a46;
      pl::load_shared_padded<1>(&a46, smem + (j_c + i_b * 192 + ri * 384 + 783) * 1);
      u8 a47;
      pl::load_shared_padded<1>(&a47, smem + (j_c + i_b * 192 + ri * 384 + 784) * 1);
      u8 a48;
      pl::load_shared_padded<1>(&a48, smem + (j_c + i_b * 192 + ri * 384 + 785) * 1);
      u8 a49;
      pl::load_shared_padded<1>(&a49, smem + (j_c + i_b * 192 + ri * 384 + 786) * 1);
      const i32 x50 = pl::add(pl::add(pl::add(pl::add(pl::to<i32>(a25), pl::to<i32>(a26)), pl::to<i32>(a27)), pl::to<i32>(a28)), pl::to<i32>(a29));
      const i32 x51 = pl::add(pl::add(pl::add(pl::add(x50, pl::to<i32>(a30)), pl::to<i32>(a31)), pl::to<i32>(a32)), pl::to<i32>(a33));
      const i32 x52 = pl::add(pl::add(pl::add(pl::add(x51, pl::to<i32>(a34)), pl::to<i32>(a35)), pl::to<i32>(a36)), pl::to<i32>(a37));
      const i32 x53 = pl::add(pl::add(pl::add(pl::add(x52, pl::to<i32>(a38)), pl::to<i32>(a39)), pl::to<i32>(a40)), pl::to<i32>(a41));
      const i32 x54 = pl::add(pl::add(pl::add(pl::add(x53, pl::to<i32>(a42)), pl::to<i32>(a43)), pl::to<i32>(a44)), pl::to<i32>(a45));
      const i32 x55 = pl::add(pl::add(pl::add(pl::add(x54, pl::to<i32>(a46)), pl::to<i32>(a47)), pl::to<i32>(a48)), pl::to<i32>(a49));
      const i32 x56 = pl::add(i_b + ri * 2, v3);
      const i32 x57 = pl::add(x56, -2);
      const bool x58 = x57 >= 0;
      const i32 x59 = pl::add((x58 && x14) ? 1 : 0, (x58 && x16) ? 1 : 0);
      const i32 x60 = pl::add(pl::add(x59, x58 ? 1 : 0), (x58 && x18) ? 1 : 0);
      const i32 x61 = pl::add(x56, -1);
      const bool x62 = x61 >= 0;
      const i32 x63 = pl::add(pl::add(x60, (x58 && x20) ? 1 : 0), (x62 && x14) ? 1 : 0);
      const i32 x64 = pl::add(pl::add(x63, (x62 && x16) ? 1 : 0), x62 ? 1 : 0);
      const i32 x65 = pl::add(pl::add(x64, (x62 && x18) ? 1 : 0), (x62 && x20) ? 1 : 0);
      const i32 x66 = pl::add(x56, 1);
      const bool x67 = x66 < 480;
      const i32 x68 = pl::add(pl::add(pl::add(pl::add(pl::add(pl::add(x65, x21), x22), 1), x23), x24), (x67 && x14) ? 1 : 0);
      const i32 x69 = pl::add(pl::add(x68, (x67 && x16) ? 1 : 0), x67 ? 1 : 0);
      const i32 x70 = pl::add(pl::add(x69, (x67 && x18) ? 1 : 0), (x67 && x20) ? 1 : 0);
      const i32 x71 = pl::add(x56, 2);
      const bool x72 = x71 < 480;
      const i32 x73 = pl::add(pl::add(x70, (x72 && x14) ? 1 : 0), (x72 && x16) ? 1 : 0);
      const i32 x74 = pl::add(pl::add(x73, x72 ? 1 : 0), (x72 && x18) ? 1 : 0);
      const i32 x75 = pl::add(x74, (x72 && x20) ? 1 : 0);
      const u8 o76 = pl::to<u8>(pl::div(pl::add(x55, pl::div(x75, 2)), x75));
      pl::store_global<1>(out0 + (at0 + j_c + i_b * 640 + ri * 1280), &o76);
    }
  }
}
PL_EXPORT(blur_kernel)
