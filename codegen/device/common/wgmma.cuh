// Operands of wgmma in shared memory, and sums of what it leaves.

namespace pl {

// 14 bits each from bit 4 of address and strides; the swizzle's code in the top two.
PL_FN u64 matrix_descriptor(u32 address, u32 leading_bytes, u32 stride_bytes, int swizzle) {
  const u64 code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return code << 62 | u64((stride_bytes & 0x3ffff) >> 4) << 32 |
         u64((leading_bytes & 0x3ffff) >> 4) << 16 | (address & 0x3ffff) >> 4;
}

namespace detail {
// sum + part.
template <int Turn>
PL_FN f32 in_turn(f32 sum, f32 part) {
  static_assert(0 <= Turn && Turn < 4, "promote: turns are 0 to 3");
  if constexpr (Turn == 0) return sum + part;
  if constexpr (Turn == 1) return fma(part, 1.0f, sum);
  if constexpr (Turn == 2) return fma(sum, 1.0f, part);
  return fma(-part, -1.0f, sum);
}
}  // namespace detail

template <int First, int FirstPart, int Count, int Turn, int R, int P>
PL_FN void promote(f32 (&d)[R], const f32 (&part)[P], bool keep) {
  PL_UNROLL for (i32 i = 0; i < Count; ++i)
    d[First + i] = keep ? detail::in_turn<Turn>(d[First + i], part[FirstPart + i]) : part[FirstPart + i];
}

}  // namespace pl
