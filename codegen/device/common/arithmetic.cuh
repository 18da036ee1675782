// Arithmetic with one meaning for every type, over the half's own detail::quotient,
// quotient_by_count, wide_product, remainder, fused, approximate_reciprocal, lesser, greater,
// count_ones and leading_zeros. The templates are for integers (min and max also
// for bool), other types have overloads.

namespace pl {
namespace detail {

// Integers wrap: they are combined as unsigned of at least 32 bits.
template <class T>
PL_FN auto unsigned_of(T a) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<u64>(a);
  } else {
    return static_cast<u32>(a);
  }
}

}  // namespace detail

template <class T>
PL_FN T add(T a, T b) {
  return static_cast<T>(detail::unsigned_of(a) + detail::unsigned_of(b));
}
template <class T>
PL_FN T sub(T a, T b) {
  return static_cast<T>(detail::unsigned_of(a) - detail::unsigned_of(b));
}
template <class T>
PL_FN T mul(T a, T b) {
  return static_cast<T>(detail::unsigned_of(a) * detail::unsigned_of(b));
}
template <class T>
PL_FN T neg(T a) {
  return static_cast<T>(0u - detail::unsigned_of(a));
}

#define PL_FLOAT_BINARY(name, T, op) \
  PL_FN T name(T a, T b) { return a op b; }
PL_FLOAT_BINARY(add, f32, +)
PL_FLOAT_BINARY(add, f64, +)
PL_FLOAT_BINARY(add, f16, +)
PL_FLOAT_BINARY(add, bf16, +)
PL_FLOAT_BINARY(sub, f32, -)
PL_FLOAT_BINARY(sub, f64, -)
PL_FLOAT_BINARY(sub, f16, -)
PL_FLOAT_BINARY(sub, bf16, -)
PL_FLOAT_BINARY(mul, f32, *)
PL_FLOAT_BINARY(mul, f64, *)
PL_FLOAT_BINARY(mul, f16, *)
PL_FLOAT_BINARY(mul, bf16, *)
PL_FLOAT_BINARY(div, f64, /)
PL_FLOAT_BINARY(div, f16, /)
PL_FLOAT_BINARY(div, bf16, /)

PL_FN f32 div(f32 a, f32 b) { return detail::quotient(a, b); }

namespace detail {

// Two of Newton's steps: the rounded 1 / b, unless b's mantissa is all ones. (After one step 103
// of all mantissas are off, and quotients with them.)
PL_FN f32 refined_reciprocal(f32 b, f32 r) {
  r = fused(fused(-b, r, 1.0f), r, r);
  return fused(fused(-b, r, 1.0f), r, r);
}

// Markstein's theorem: with r the rounded 1 / b, q about a / b and no underflow, q b - a is a float,
// and q less r times that rounds to a / b. Zeros keep their sign if b > 0.
PL_FN f32 corrected_quotient(f32 a, f32 b, f32 r) {
  const f32 q = a * r;
  return fused(fused(q, b, -a), -r, q);
}

// Whether 2^-60 <= |b| < 2^60, and not all bits of its mantissa are ones.
PL_FN bool is_plain_divisor(f32 b) {
  const u32 bits = bitcast<u32>(b);
  return (bits << 1) - (u32(127 - 60) << 24) < u32(120) << 24 && ((bits + 1) & 0x7fffff) != 0;
}

// Of words of plain dividends this bit is set: 2^-63 <= |a| < 2^65. One at most as large as a plain
// divisor needs no addition: the bit that tells of small ones is set for too large ones alone.
template <bool Below>
constexpr u32 plain_bit = Below ? 0x20000000 : 0x40000000;
template <bool Below>
PL_FN u32 plain_word(f32 a) {
  return Below ? bitcast<u32>(a) : bitcast<u32>(a) + 0x20000000;
}

template <int N, bool Below>
PL_FN bool are_plain_or_zero(const f32* a) {
  u32 all = ~0u;
  PL_UNROLL for (int i = 0; i < N; ++i) all &= a[i] == 0 ? ~0u : plain_word<Below>(a[i]);
  return (all & plain_bit<Below>) != 0;
}

}  // namespace detail

// One guard for all: what is not plain, zeros by a positive divisor excepted, is divided one by one.
template <int N, bool Below = false>
PL_FN void div_all(f32* q, const f32* a, f32 b) {
  const f32 r = detail::refined_reciprocal(b, detail::approximate_reciprocal(b));
  u32 all = ~0u;
  f32 quick[N];
  PL_UNROLL for (int i = 0; i < N; ++i) {
    all &= detail::plain_word<Below>(a[i]);
    quick[i] = detail::corrected_quotient(a[i], b, r);
  }
  const bool plain = detail::is_plain_divisor(b);
  if ((plain && (all & detail::plain_bit<Below>) != 0) ||
      (plain && b > 0 && detail::are_plain_or_zero<N, Below>(a))) {
    PL_UNROLL for (int i = 0; i < N; ++i) q[i] = quick[i];
  } else {
    PL_UNROLL for (int i = 0; i < N; ++i) q[i] = detail::quotient(a[i], b);
  }
}

PL_FN f32 div_by(f32 a, f32 b, f64 r) {
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
  return detail::rounded_quotient(a, r);  // as much too large as detail::reciprocal
#else
  return detail::quotient(a, b);
#endif
}

PL_FN f32 div_by_count(f32 a, f32 b) { return detail::quotient_by_count(a, b); }

PL_FN i64 mul_wide(i32 a, i32 b) { return detail::wide_product(a, b); }

PL_FN f32 neg(f32 a) { return -a; }
PL_FN f64 neg(f64 a) { return -a; }
PL_FN f16 neg(f16 a) { return -a; }
PL_FN bf16 neg(bf16 a) { return -a; }

template <class T>
PL_FN T div(T a, T b) {
  if (b == T(0)) return static_cast<T>(~detail::unsigned_of(T(0)));
  if (detail::is_signed<T> && b == static_cast<T>(-1)) return neg(a);
  return static_cast<T>(a / b);
}

template <class T>
PL_FN T rem(T a, T b) {
  if (b == T(0)) return a;
  if (detail::is_signed<T> && b == static_cast<T>(-1)) return T(0);
  return static_cast<T>(a % b);
}
PL_FN f32 rem(f32 a, f32 b) { return detail::remainder(a, b); }
PL_FN f64 rem(f64 a, f64 b) { return detail::remainder(a, b); }
PL_HALF_BINARY(rem, f16)
PL_HALF_BINARY(rem, bf16)

template <class T>
PL_FN bool is_nan(T a) {
  typedef detail::bits_of<T> Bits;
  return static_cast<Bits>(bitcast<Bits>(a) & (detail::top_bit<Bits>() - 1)) >
         bitcast<Bits>(infinity<T>());
}

template <class T>
PL_FN bool is_finite(T a) {
  typedef detail::bits_of<T> Bits;
  return static_cast<Bits>(bitcast<Bits>(a) & (detail::top_bit<Bits>() - 1)) <
         bitcast<Bits>(infinity<T>());
}

template <class T>
PL_FN T abs(T a) {
  if constexpr (detail::is_float<T>) {
    typedef detail::bits_of<T> Bits;
    return bitcast<T>(static_cast<Bits>(bitcast<Bits>(a) & (detail::top_bit<Bits>() - 1)));
  } else {
    return detail::is_negative(a) ? neg(a) : a;
  }
}

template <class T>
PL_FN T sign(T a) {
  return a > T(0) ? T(1) : detail::is_negative(a) ? static_cast<T>(-1) : a;
}
PL_HALF_UNARY(sign, f16)
PL_HALF_UNARY(sign, bf16)

template <class T>
PL_FN T min(T a, T b) {
  return a < b ? a : b;
}
PL_FN f32 min(f32 a, f32 b) { return detail::lesser(a, b); }
PL_FN f64 min(f64 a, f64 b) { return detail::lesser_float(a, b); }
PL_HALF_BINARY(min, f16)
PL_HALF_BINARY(min, bf16)

template <class T>
PL_FN T max(T a, T b) {
  return a > b ? a : b;
}
PL_FN f32 max(f32 a, f32 b) { return detail::greater(a, b); }
PL_FN f64 max(f64 a, f64 b) { return detail::greater_float(a, b); }
PL_HALF_BINARY(max, f16)
PL_HALF_BINARY(max, bf16)

#define PL_ALL(name, one, of_pairs)                                                         \
  template <int N, int A = 1, int B = 1, class T>                                           \
  PL_FN void name(T* dst, const T* a, const T* b) {                                         \
    if constexpr (N % 2 == 0 && detail::computes_pairs<T>()) {                              \
      PL_UNROLL for (int i = 0; i < N; i += 2) detail::put_pair(                            \
          dst + i, detail::of_pairs<T>(detail::pair_at<A>(a + A * i), detail::pair_at<B>(b + B * i))); \
    } else {                                                                                \
      PL_UNROLL for (int i = 0; i < N; ++i) dst[i] = pl::one(a[A * i], b[B * i]);           \
    }                                                                                       \
  }
PL_ALL(add_all, add, sum_of_pairs)
PL_ALL(sub_all, sub, difference_of_pairs)
PL_ALL(mul_all, mul, product_of_pairs)
PL_ALL(max_all, max, greater_of_pairs)
PL_ALL(min_all, min, lesser_of_pairs)

template <class T>
PL_FN T shift_left(T a, T n) {
  const auto count = detail::unsigned_of(n);
  return count >= 8 * sizeof(T) ? T(0) : static_cast<T>(detail::unsigned_of(a) << count);
}

template <class T>
PL_FN T shift_right_logical(T a, T n) {
  typedef detail::bits_of<T> Bits;
  const auto count = detail::unsigned_of(n);
  return count >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Bits>(a) >> count);
}

template <class T>
PL_FN T shift_right(T a, T n) {
  const auto count = detail::unsigned_of(n);
  if (count >= 8 * sizeof(T)) return detail::is_negative(a) ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> count);
}

template <class T>
PL_FN T popcount(T a) {
  return static_cast<T>(detail::count_ones(static_cast<detail::bits_of<T>>(a)));
}

template <class T>
PL_FN T clz(T a) {
  const u64 bits = static_cast<detail::bits_of<T>>(a);
  return static_cast<T>(detail::leading_zeros(bits) - (64 - 8 * int(sizeof(T))));
}

}  // namespace pl
