// Types and traits of emitted text.

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

namespace pl {

// Opaque: the driver makes it for a GPU, the emulator its own.
struct alignas(128) TensorMap {
  u64 opaque[16];
};

template <class To, class From>
PL_FN To bitcast(From x) {
  static_assert(sizeof(To) == sizeof(From), "bitcast: the sizes differ");
  return __builtin_bit_cast(To, x);
}

namespace detail {

template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

template <class T>
constexpr bool is_half = same<T, f16> || same<T, bf16>;
template <class T>
constexpr bool is_wide_float = same<T, f32> || same<T, f64>;
template <class T>
constexpr bool is_float = is_half<T> || is_wide_float<T>;
template <class T>
constexpr bool is_integer = !is_float<T> && !same<T, bool>;
template <class T>
constexpr bool is_signed = same<T, i8> || same<T, i16> || same<T, i32> || same<T, i64>;

template <int Bytes>
struct Unsigned;
template <>
struct Unsigned<1> {
  typedef u8 type;
};
template <>
struct Unsigned<2> {
  typedef u16 type;
};
template <>
struct Unsigned<4> {
  typedef u32 type;
};
template <>
struct Unsigned<8> {
  typedef u64 type;
};
// The unsigned integer of T's size.
template <class T>
using bits_of = typename Unsigned<sizeof(T)>::type;

// The integer of T's size with only the top bit set, as a T.
template <class T>
PL_FN T top_bit() {
  return bitcast<T>(static_cast<bits_of<T>>(bits_of<T>(1) << (8 * sizeof(T) - 1)));
}

template <class T>
PL_FN bool is_negative(T a) {
  if constexpr (is_signed<T> || is_wide_float<T>) {
    return a < T(0);
  } else {
    return false;
  }
}

template <class T>
constexpr u64 infinity_bits = same<T, f16>    ? 0x7c00
                              : same<T, bf16> ? 0x7f80
                              : same<T, f32>  ? 0x7f800000
                                              : 0x7ff0000000000000;

}  // namespace detail

template <class T>
PL_FN T infinity() {
  static_assert(detail::is_float<T>, "infinity of a float type");
  return bitcast<T>(static_cast<detail::bits_of<T>>(detail::infinity_bits<T>));
}

template <class T>
PL_FN T nan() {
  static_assert(detail::is_float<T>, "nan of a float type");
  return bitcast<T>(static_cast<detail::bits_of<T>>(detail::top_bit<detail::bits_of<T>>() - 1));
}

template <class T>
PL_FN T min_value() {
  typedef detail::bits_of<T> Bits;
  if constexpr (detail::same<T, bool>) {
    return false;
  } else if constexpr (detail::is_float<T>) {
    return bitcast<T>(static_cast<Bits>(detail::infinity_bits<T> | detail::top_bit<Bits>()));
  } else {
    return detail::is_signed<T> ? detail::top_bit<T>() : T(0);
  }
}

template <class T>
PL_FN T max_value() {
  typedef detail::bits_of<T> Bits;
  if constexpr (detail::same<T, bool>) {
    return true;
  } else if constexpr (detail::is_float<T>) {
    return infinity<T>();
  } else {
    return detail::is_signed<T> ? bitcast<T>(static_cast<Bits>(detail::top_bit<Bits>() - 1))
                                : static_cast<T>(~Bits(0));
  }
}

}  // namespace pl
