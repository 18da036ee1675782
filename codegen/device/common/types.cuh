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
struct f8e4m3 {
  u8 bits;
};
struct f8e5m2 {
  u8 bits;
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
struct Itself {
  typedef T type;
};
// A parameter that says nothing of what T is.
template <class T>
using itself = typename Itself<T>::type;

template <class T>
constexpr bool is_half = false;
template <>
constexpr bool is_half<f16> = true;
template <>
constexpr bool is_half<bf16> = true;

template <class T>
constexpr bool is_byte_float = false;
template <>
constexpr bool is_byte_float<f8e4m3> = true;
template <>
constexpr bool is_byte_float<f8e5m2> = true;

template <class T>
constexpr bool is_wide_float = false;
template <>
constexpr bool is_wide_float<f32> = true;
template <>
constexpr bool is_wide_float<f64> = true;

template <class T>
constexpr bool is_float = is_half<T> || is_wide_float<T> || is_byte_float<T>;
template <class T>
constexpr bool is_integer = !is_float<T> && !same<T, bool>;

template <class T>
constexpr bool is_signed = false;
template <>
constexpr bool is_signed<i8> = true;
template <>
constexpr bool is_signed<i16> = true;
template <>
constexpr bool is_signed<i32> = true;
template <>
constexpr bool is_signed<i64> = true;

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

}  // namespace detail

template <class T>
PL_FN T infinity();
template <>
PL_FN f32 infinity<f32>() {
  return bitcast<f32>(0x7f800000u);
}
template <>
PL_FN f64 infinity<f64>() {
  return bitcast<f64>(u64(0x7ff0000000000000));
}
template <>
PL_FN f16 infinity<f16>() {
  return f16{0x7c00};
}
template <>
PL_FN bf16 infinity<bf16>() {
  return bf16{0x7f80};
}
template <>
PL_FN f8e5m2 infinity<f8e5m2>() {
  return f8e5m2{0x7c};
}

template <class T>
PL_FN T nan();
template <>
PL_FN f32 nan<f32>() {
  return bitcast<f32>(0x7fffffffu);
}
template <>
PL_FN f64 nan<f64>() {
  return bitcast<f64>(u64(0x7fffffffffffffff));
}
template <>
PL_FN f16 nan<f16>() {
  return f16{0x7fff};
}
template <>
PL_FN bf16 nan<bf16>() {
  return bf16{0x7fff};
}
template <>
PL_FN f8e4m3 nan<f8e4m3>() {
  return f8e4m3{0x7f};
}
template <>
PL_FN f8e5m2 nan<f8e5m2>() {
  return f8e5m2{0x7f};
}

template <class T>
PL_FN T min_value() {
  return detail::is_signed<T> ? detail::top_bit<T>() : T(0);
}
template <>
PL_FN f32 min_value<f32>() {
  return bitcast<f32>(0xff800000u);
}
template <>
PL_FN f64 min_value<f64>() {
  return bitcast<f64>(u64(0xfff0000000000000));
}
template <>
PL_FN f16 min_value<f16>() {
  return f16{0xfc00};
}
template <>
PL_FN bf16 min_value<bf16>() {
  return bf16{0xff80};
}
template <>
PL_FN f8e5m2 min_value<f8e5m2>() {
  return f8e5m2{0xfc};
}

template <class T>
PL_FN T max_value() {
  typedef detail::bits_of<T> Bits;
  return detail::is_signed<T> ? bitcast<T>(static_cast<Bits>(detail::top_bit<Bits>() - 1))
                              : static_cast<T>(~Bits(0));
}
template <>
PL_FN f32 max_value<f32>() {
  return infinity<f32>();
}
template <>
PL_FN f64 max_value<f64>() {
  return infinity<f64>();
}
template <>
PL_FN f16 max_value<f16>() {
  return infinity<f16>();
}
template <>
PL_FN bf16 max_value<bf16>() {
  return infinity<bf16>();
}

}  // namespace pl
