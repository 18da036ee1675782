// Conversions between all types, and the operators of f16 and bf16 (floats of 8 bits have none), over
// the half's own detail::widen, detail::narrow and detail::truncate. Its detail::watch sees the words
// that may come from a wgmma.

namespace pl {
namespace detail {

// x rounded to odd: a later rounding to fewer bits then equals one rounding of x.
PL_FN f32 round_to_odd(f64 x) {
  const f32 nearest = static_cast<f32>(x);
  const f64 back = nearest;
  if (back == x || x != x) return nearest;
  u32 bits = bitcast<u32>(nearest);
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) bits -= 1;
  return bitcast<f32>(bits | 1);
}

template <class I>
PL_FN f32 round_to_odd(I x) {
  const bool negative = is_negative(x);
  u64 m = negative ? u64(0) - u64(x) : u64(x);
  f32 scale = 1;
  while (m >> 24) {
    m = (m >> 8) | ((m & 255) != 0);
    scale *= 256;
  }
  return (negative ? -static_cast<f32>(m) : static_cast<f32>(m)) * scale;
}

// Truncates and saturates; NaN gives 0.
template <class I, class F>
PL_FN I float_to_integer(F x) {
  constexpr int top = 8 * sizeof(I) - 1;
  const F half_range = static_cast<F>(u64(1) << top);
  const F above = is_signed<I> ? half_range : 2 * half_range;
  if (x != x) return I(0);
  if (x >= above) return max_value<I>();
  if (x <= (is_signed<I> ? -half_range : F(0))) return min_value<I>();
  return static_cast<I>(x);
}

}  // namespace detail

template <class To, class From>
PL_FN To to(From x PL_AND_LINE) {
  using namespace detail;
  if constexpr (same<From, f32> && !same<To, f32>) watch(bitcast<u32>(x) PL_AND_PASS_LINE);
  if constexpr (same<To, From>) {
    return x;
  } else if constexpr (is_half<From> || is_byte_float<From>) {
    return to<To>(widen(x));
  } else if constexpr (same<To, bool>) {
    return x != From(0);
  } else if constexpr (is_half<To> || is_byte_float<To>) {
    if constexpr (sizeof(From) == 8 || (is_integer<From> && sizeof(From) == 4)) {
      return narrow<To>(round_to_odd(x));
    } else {
      return narrow<To>(static_cast<f32>(x));
    }
  } else if constexpr (is_wide_float<From> && is_integer<To>) {
    return truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <int N, class To, class From>
PL_FN void to_all(To* dst, const From* src) {
  if constexpr (N % 4 == 0 && detail::converts_fours<To, From>()) {
    if (detail::converts_all<N, To>(src)) {
      PL_UNROLL for (int i = 0; i < N; i += 4) detail::convert_four(dst + i, src + i);
      return;
    }
  }
  if constexpr (N % 4 == 2 && detail::converts_pairs<To, From>()) {
    PL_UNROLL for (int i = 0; i < N; i += 2) detail::convert_pair(dst + i, src + i);
  } else {
    PL_UNROLL for (int i = 0; i < N; ++i) dst[i] = to<To>(src[i]);
  }
}

// Of halves of bytes, the lower one first, which have a sign or not.
template <int N, bool Signed, class To>
PL_FN void to_all(To* dst, const u8* src) {
  if constexpr (N % 8 == 0 && (detail::is_half<To> || detail::same<To, f32>) &&
                detail::converts_fours<To, u8>()) {
    PL_UNROLL for (int i = 0; i < N; i += 8) detail::convert_halves<Signed>(dst + i, src + i / 2);
  } else {
    PL_UNROLL for (int i = 0; i < N; ++i) {
      const i32 x = src[i / 2] >> (i % 2 * 4) & 15;
      dst[i] = to<To>(static_cast<i8>(Signed && x > 7 ? x - 16 : x));
    }
  }
}

template <class T>
PL_FN u32 pack_bytes(const T* src) {
  static_assert(sizeof(T) == 1, "pack_bytes: elements of 1 byte");
  return detail::word_at(src);
}

template <class T>
PL_FN u32 pack(T lo, T hi) {
  static_assert(sizeof(T) == 2, "pack: elements of 2 bytes");
  return u32(bitcast<u16>(lo)) | u32(bitcast<u16>(hi)) << 16;
}

template <class T>
PL_FN void unpack(T* dst, u32 word PL_AND_LINE) {
  static_assert(sizeof(T) == 2, "unpack: elements of 2 bytes");
  if constexpr (detail::is_half<T>) detail::watch(word PL_AND_PASS_LINE);
  dst[0] = bitcast<T>(static_cast<u16>(word));
  dst[1] = bitcast<T>(static_cast<u16>(word >> 16));
}

}  // namespace pl

#define PL_HALF_OPERATORS(H)                                                               \
  PL_FN H operator+(H a, H b) {                                                            \
    return pl::detail::narrow<H>(pl::detail::widen(a) + pl::detail::widen(b));             \
  }                                                                                        \
  PL_FN H operator-(H a, H b) {                                                            \
    return pl::detail::narrow<H>(pl::detail::widen(a) - pl::detail::widen(b));             \
  }                                                                                        \
  PL_FN H operator*(H a, H b) {                                                            \
    return pl::detail::narrow<H>(pl::detail::widen(a) * pl::detail::widen(b));             \
  }                                                                                        \
  PL_FN H operator/(H a, H b) {                                                            \
    return pl::detail::narrow<H>(                                                          \
        pl::detail::quotient(pl::detail::widen(a), pl::detail::widen(b)));                 \
  }                                                                                        \
  PL_FN H operator-(H a) { return H{static_cast<u16>(a.bits ^ 0x8000)}; }                  \
  PL_FN bool operator==(H a, H b) { return pl::detail::widen(a) == pl::detail::widen(b); } \
  PL_FN bool operator!=(H a, H b) { return pl::detail::widen(a) != pl::detail::widen(b); } \
  PL_FN bool operator<(H a, H b) { return pl::detail::widen(a) < pl::detail::widen(b); }   \
  PL_FN bool operator<=(H a, H b) { return pl::detail::widen(a) <= pl::detail::widen(b); } \
  PL_FN bool operator>(H a, H b) { return pl::detail::widen(a) > pl::detail::widen(b); }   \
  PL_FN bool operator>=(H a, H b) { return pl::detail::widen(a) >= pl::detail::widen(b); }
PL_HALF_OPERATORS(f16)
PL_HALF_OPERATORS(bf16)

// A function of 16-bit floats: that of f32, rounded.
#define PL_HALF_UNARY(name, H) \
  PL_FN H name(H x) { return detail::narrow<H>(name(detail::widen(x))); }
#define PL_HALF_BINARY(name, H) \
  PL_FN H name(H x, H y) { return detail::narrow<H>(name(detail::widen(x), detail::widen(y))); }
