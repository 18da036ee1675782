// Element types as C++ types: 16-bit floats, which compute in f32, those of 8 bits, which are only
// converted, and dispatch on a DType.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "codegen/graph/graph.hpp"
#include "palladium/error.hpp"
#include "palladium/types.hpp"

namespace palladium::interpreter {

struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};

struct F8E4M3 {
  std::uint8_t bits;
};
struct F8E5M2 {
  std::uint8_t bits;
};

template <class T>
inline constexpr bool is_byte_float = std::is_same_v<T, F8E4M3> || std::is_same_v<T, F8E5M2>;
template <class T>
inline constexpr bool is_half = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

/// The type in which an operation on T is computed.
template <class T>
using Compute = std::conditional_t<is_half<T> || is_byte_float<T>, float, T>;

inline float widen(F16 x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = (x.bits & 0x7fffu) << 13;
  // The product moves the exponent to f32's bias and is exact, for subnormals too.
  std::uint32_t bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  if (magnitude >= 0x0f800000u) bits |= 0x7f800000u;  // infinity, NaN
  return std::bit_cast<float>(bits | sign);
}
inline float widen(BF16 x) { return std::bit_cast<float>(std::uint32_t(x.bits) << 16); }
/// f16 has the exponents of e5m2; with those of e4m3 it is too small by 2^8.
inline float widen(F8E5M2 x) { return widen(F16{static_cast<std::uint16_t>(x.bits << 8)}); }
inline float widen(F8E4M3 x) {
  const unsigned sign = x.bits & 0x80u, magnitude = x.bits & 0x7fu;
  const unsigned bits = magnitude == 0x7f ? 0x7fff : magnitude << 7;
  return 256 * widen(F16{static_cast<std::uint16_t>(sign << 8 | bits)});
}
template <class T>
requires(!is_half<T> && !is_byte_float<T>) T widen(T x) { return x; }

/// Rounds to nearest even.
template <class T>
T narrow(Compute<T> x) {
  if constexpr (std::is_same_v<T, F16>) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    std::uint32_t magnitude = bits & 0x7fffffffu, result;
    if (magnitude >= 0x47800000u) {  // 2^16 and above
      result = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // below 2^-14: the sum has the last place of subnormals
      result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    } else {
      magnitude += 0xc8000fffu + (magnitude >> 13 & 1);  // rebias, round
      result = magnitude >> 13;
    }
    return {static_cast<std::uint16_t>(result | (bits >> 16 & 0x8000u))};
  } else if constexpr (std::is_same_v<T, BF16>) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
      return {static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | 0x7fc0u)};
    return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
  } else if constexpr (is_byte_float<T>) {
    constexpr DType dtype = std::is_same_v<T, F8E4M3> ? f8e4m3 : f8e5m2;
    return {static_cast<std::uint8_t>(graph::to_bits(dtype, static_cast<double>(x)))};
  } else {
    return x;
  }
}

/// NaN if either is; -0 is less than 0.
struct Max {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
      if (y != y) return y;
      if (x == y) return std::signbit(x) ? y : x;
    }
    return x > y ? x : y;
  }
};
struct Min {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
      if (y != y) return y;
      if (x == y) return std::signbit(x) ? x : y;
    }
    return x < y ? x : y;
  }
};

/// Calls f.operator()<T>() with the C++ type of `dtype`, if `Accept<T>` holds.
template <template <class> class Accept, class F>
void with_type_if(DType dtype, F&& f) {
  const auto call = [&]<class T>() {
    if constexpr (Accept<T>::value) return f.template operator()<T>();
    throw InternalError(std::string("interpreter: an operation got operands of dtype ") +
                        dtype.name());
  };
  switch (dtype.kind()) {
  case DType::None:
  case DType::I4:  // bytes by now
  case DType::U4: break;
  case DType::Bool: return call.template operator()<bool>();
  case DType::I8: return call.template operator()<std::int8_t>();
  case DType::I16: return call.template operator()<std::int16_t>();
  case DType::I32: return call.template operator()<std::int32_t>();
  case DType::I64: return call.template operator()<std::int64_t>();
  case DType::U8: return call.template operator()<std::uint8_t>();
  case DType::U16: return call.template operator()<std::uint16_t>();
  case DType::U32: return call.template operator()<std::uint32_t>();
  case DType::U64: return call.template operator()<std::uint64_t>();
  case DType::F8E4M3: return call.template operator()<F8E4M3>();
  case DType::F8E5M2: return call.template operator()<F8E5M2>();
  case DType::F16: return call.template operator()<F16>();
  case DType::BF16: return call.template operator()<BF16>();
  case DType::F32: return call.template operator()<float>();
  case DType::F64: return call.template operator()<double>();
  }
  throw InternalError("interpreter: a value without a dtype");
}

template <class T>
struct AnyType : std::true_type {};
/// What has arithmetic.
template <class T>
struct IsComputed : std::bool_constant<!is_byte_float<T>> {};
template <class T>
struct IsFloat : std::bool_constant<std::is_floating_point_v<Compute<T>> && !is_byte_float<T>> {};
template <class T>
struct IsInteger : std::bool_constant<std::is_integral_v<T> && !std::is_same_v<T, bool>> {};
template <class T>
struct IsNumber : std::bool_constant<IsFloat<T>::value || IsInteger<T>::value> {};
template <class T>
struct IsBits : std::is_integral<T> {};

/// Calls f.operator()<U>() with the unsigned integer type of this size.
template <class F>
void with_size(int bytes, F&& f) {
  switch (bytes) {
  case 1: return f.template operator()<std::uint8_t>();
  case 2: return f.template operator()<std::uint16_t>();
  case 4: return f.template operator()<std::uint32_t>();
  default: return f.template operator()<std::uint64_t>();
  }
}

}  // namespace palladium::interpreter
