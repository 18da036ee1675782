// Operands of wgmma in shared memory, and sums of what it leaves.

namespace pl {

// 14 bits each from bit 4 of address and strides; the swizzle's code in the top two.
PL_FN u64 matrix_descriptor(u32 address, u32 leading_bytes, u32 stride_bytes, int swizzle) {
  const u64 code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return code << 62 | u64((stride_bytes & 0x3ffff) >> 4) << 32 |
         u64((leading_bytes & 0x3ffff) >> 4) << 16 | (address & 0x3ffff) >> 4;
}

template <int First, int FirstPart, int Count, int R, int P>
PL_FN void promote(f32 (&d)[R], const f32 (&part)[P], bool keep) {
  PL_UNROLL for (i32 i = 0; i < Count; ++i)
    d[First + i] = keep ? d[First + i] + part[FirstPart + i] : part[FirstPart + i];
}

}  // namespace pl
