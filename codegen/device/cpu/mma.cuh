// Tensor cores by mma.sync, ldmatrix and stmatrix.

namespace pl {
namespace detail {

// What the emulator calls operands of 8 bits.
template <class A>
constexpr int byte_type = same<A, i8> || same<A, f8e4m3> ? 0 : 1;

}  // namespace detail

PL_FN f32 round_to_tf32(f32 x) {
  const u32 bits = bitcast<u32>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return bitcast<f32>(0x7fffe000u);
  return bitcast<f32>((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

template <class T>
PL_FN void mma_m16n8k16(f32* d, const T* a, const T* b, PL_LINE) {
  static_assert(detail::is_half<T>, "mma_m16n8k16: f16 or bf16");
  constexpr auto product =
      detail::same<T, f16> ? detail::Product::f16_f32 : detail::Product::bf16_f32;
  detail::host.mma(d, a, b, 16, product, line);
}

PL_FN void mma_m16n8k8(f32* d, const f16* a, const f16* b, PL_LINE) {
  detail::host.mma(d, a, b, 8, detail::Product::f16_f32, line);
}

PL_FN void mma_m16n8k8_tf32(f32* d, const f32* a, const f32* b, PL_LINE) {
  detail::host.mma(d, a, b, 8, detail::Product::tf32_f32, line);
}

PL_FN void mma_m16n8k32(i32* d, const i8* a, const i8* b, PL_LINE) {
  detail::host.mma(d, a, b, 32, detail::Product::i8_i8, line);
}

PL_FN void mma_m16n8k16_f16(f32* d, const u32* a, const u32* b, PL_LINE) {
  detail::host.mma(d, a, b, 16, detail::Product::f16_f32, line);
}

PL_FN void mma_m16n8k16_bf16(f32* d, const u32* a, const u32* b, PL_LINE) {
  detail::host.mma(d, a, b, 16, detail::Product::bf16_f32, line);
}

PL_FN void mma_m16n8k8_f16(f32* d, const u32* a, const u32* b, PL_LINE) {
  detail::host.mma(d, a, b, 8, detail::Product::f16_f32, line);
}

template <class A, class B>
PL_FN void mma_m16n8k32_integers(i32* d, const u32* a, const u32* b, PL_LINE) {
  constexpr detail::Product products[2][2] = {{detail::Product::i8_i8, detail::Product::i8_u8},
                                              {detail::Product::u8_i8, detail::Product::u8_u8}};
  detail::host.mma(d, a, b, 32, products[detail::byte_type<A>][detail::byte_type<B>], line);
}

template <class A, class B>
PL_FN void mma_m16n8k32_floats(f32* d, const u32* a, const u32* b, PL_LINE) {
  constexpr detail::Product products[2][2] = {
      {detail::Product::e4m3_e4m3, detail::Product::e4m3_e5m2},
      {detail::Product::e5m2_e4m3, detail::Product::e5m2_e5m2}};
  detail::host.mma(d, a, b, 32, products[detail::byte_type<A>][detail::byte_type<B>], line);
}

#define PL_LDMATRIX_WORDS(name, matrices, transposed)            \
  PL_FN void name(u32* dst, u32 row, PL_LINE) {                  \
    detail::host.ldmatrix(dst, row, matrices, transposed, line); \
  }
PL_LDMATRIX_WORDS(ldmatrix_words_x2, 2, false)
PL_LDMATRIX_WORDS(ldmatrix_words_x4, 4, false)
PL_LDMATRIX_WORDS(ldmatrix_words_x2_trans, 2, true)
PL_LDMATRIX_WORDS(ldmatrix_words_x4_trans, 4, true)

#define PL_LDMATRIX(name, matrices, transposed)                     \
  template <class T>                                                \
  PL_FN void name(T* dst, u32 row, PL_LINE) {                       \
    static_assert(sizeof(T) == 2, "ldmatrix: elements of 2 bytes"); \
    detail::host.ldmatrix(dst, row, matrices, transposed, line);    \
  }
PL_LDMATRIX(ldmatrix_x1, 1, false)
PL_LDMATRIX(ldmatrix_x2, 2, false)
PL_LDMATRIX(ldmatrix_x4, 4, false)
PL_LDMATRIX(ldmatrix_x1_trans, 1, true)
PL_LDMATRIX(ldmatrix_x2_trans, 2, true)
PL_LDMATRIX(ldmatrix_x4_trans, 4, true)

#define PL_STMATRIX(name, matrices, transposed)                     \
  template <class T>                                                \
  PL_FN void name(u32 row, const T* src, PL_LINE) {                 \
    static_assert(sizeof(T) == 2, "stmatrix: elements of 2 bytes"); \
    detail::host.stmatrix(row, src, matrices, transposed, line);    \
  }
PL_STMATRIX(stmatrix_x1, 1, false)
PL_STMATRIX(stmatrix_x2, 2, false)
PL_STMATRIX(stmatrix_x4, 4, false)
PL_STMATRIX(stmatrix_x1_trans, 1, true)
PL_STMATRIX(stmatrix_x2_trans, 2, true)
PL_STMATRIX(stmatrix_x4_trans, 4, true)

PL_FN void transpose_bytes(u32 to, u32 from, PL_LINE) {
  const u32 l = lane();
  const u32 later = l >> 1 & 1, odd = l >> 4 & 1;
  u32 w[4];
  detail::host.ldmatrix(w, from, 4, true, line);
  u32 turned[4];
  for (u32 half = 0; half < 4; half += 2)
    for (u32 s = 0; s < 2; ++s) {
      const u32 low = w[half + later] >> 8 * (odd ^ s), high = w[half + 1 - later] >> 8 * (odd ^ s);
      turned[half + s] = (low & 0xff) | (low >> 8 & 0xff00) | (high & 0xff) << 16 |
                         (high & 0xff0000) << 8;
    }
  detail::host.stmatrix(to, turned, 4, false, line);
}

}  // namespace pl
