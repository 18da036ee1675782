// Arithmetic with one meaning for every type, over the half's own detail::remainder, count_ones and
// leading_zeros.

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
  if constexpr (detail::is_float<T>) {
    return a + b;
  } else {
    return static_cast<T>(detail::unsigned_of(a) + detail::unsigned_of(b));
  }
}

template <class T>
PL_FN T sub(T a, T b) {
  if constexpr (detail::is_float<T>) {
    return a - b;
  } else {
    return static_cast<T>(detail::unsigned_of(a) - detail::unsigned_of(b));
  }
}

template <class T>
PL_FN T mul(T a, T b) {
  if constexpr (detail::is_float<T>) {
    return a * b;
  } else {
    return static_cast<T>(detail::unsigned_of(a) * detail::unsigned_of(b));
  }
}

template <class T>
PL_FN T neg(T a) {
  if constexpr (detail::is_float<T>) {
    return -a;
  } else {
    return static_cast<T>(0u - detail::unsigned_of(a));
  }
}

template <class T>
PL_FN T div(T a, T b) {
  if constexpr (detail::is_float<T>) {
    return a / b;
  } else {
    if (b == T(0)) return static_cast<T>(~detail::unsigned_of(T(0)));
    if (detail::is_signed<T> && b == static_cast<T>(-1)) return neg(a);
    return static_cast<T>(a / b);
  }
}

template <class T>
PL_FN T rem(T a, T b) {
  if constexpr (detail::is_half<T>) {
    return detail::narrow<T>(detail::remainder(detail::widen(a), detail::widen(b)));
  } else if constexpr (detail::is_float<T>) {
    return detail::remainder(a, b);
  } else {
    if (b == T(0)) return a;
    if (detail::is_signed<T> && b == static_cast<T>(-1)) return T(0);
    return static_cast<T>(a % b);
  }
}

template <class T>
PL_FN bool is_nan(T a) {
  typedef detail::bits_of<T> Bits;
  return static_cast<Bits>(bitcast<Bits>(a) & (detail::top_bit<Bits>() - 1)) >
         static_cast<Bits>(detail::infinity_bits<T>);
}

template <class T>
PL_FN bool is_finite(T a) {
  typedef detail::bits_of<T> Bits;
  return static_cast<Bits>(bitcast<Bits>(a) & (detail::top_bit<Bits>() - 1)) <
         static_cast<Bits>(detail::infinity_bits<T>);
}

template <class T>
PL_FN T abs(T a) {
  typedef detail::bits_of<T> Bits;
  if constexpr (detail::is_float<T>) {
    return bitcast<T>(static_cast<Bits>(bitcast<Bits>(a) & (detail::top_bit<Bits>() - 1)));
  } else {
    return detail::is_negative(a) ? neg(a) : a;
  }
}

template <class T>
PL_FN T sign(T a) {
  if constexpr (detail::is_half<T>) {
    return detail::narrow<T>(sign(detail::widen(a)));
  } else {
    return a > T(0) ? T(1) : detail::is_negative(a) ? static_cast<T>(-1) : a;
  }
}

// Equal floats differ in the sign of zero at most: `and` of the bits is +0, `or` is -0.
template <class T>
PL_FN T min(T a, T b) {
  typedef detail::bits_of<T> Bits;
  if constexpr (detail::same<T, f32> && detail::has_min_max) {
    return detail::min_f32(a, b);
  } else if constexpr (detail::is_half<T>) {
    return detail::narrow<T>(min(detail::widen(a), detail::widen(b)));
  } else if constexpr (detail::is_float<T>) {
    if (a == b) return bitcast<T>(static_cast<Bits>(bitcast<Bits>(a) | bitcast<Bits>(b)));
    return a < b || a != a ? a : b;
  } else {
    return a < b ? a : b;
  }
}

template <class T>
PL_FN T max(T a, T b) {
  typedef detail::bits_of<T> Bits;
  if constexpr (detail::same<T, f32> && detail::has_min_max) {
    return detail::max_f32(a, b);
  } else if constexpr (detail::is_half<T>) {
    return detail::narrow<T>(max(detail::widen(a), detail::widen(b)));
  } else if constexpr (detail::is_float<T>) {
    if (a == b) return bitcast<T>(static_cast<Bits>(bitcast<Bits>(a) & bitcast<Bits>(b)));
    return a > b || a != a ? a : b;
  } else {
    return a > b ? a : b;
  }
}

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
