#include "runtime/emulator/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "palladium/error.hpp"

namespace palladium::emulator {
namespace {

using abi::Atomic;
using abi::Format;
using abi::Reduction;

// A float with `exponent_bits` and `mantissa_bits` below its sign, not infinite.
float widen(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const std::uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const bool negative = bits >> (exponent_bits + mantissa_bits) & 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                              : std::ldexp(static_cast<float>(mantissa | 1u << mantissa_bits),
                                           exponent - bias - mantissa_bits);
  return negative ? -magnitude : magnitude;
}

template <class T>
T as(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Integers: add wraps.
template <class T>
std::uint64_t combine_integers(Atomic what, std::uint64_t old, std::uint64_t value) {
  const T a = as<T>(old), b = as<T>(value);
  switch (what) {
  case Atomic::add: return bits_of(static_cast<T>(old + value));
  case Atomic::min: return bits_of(std::min(a, b));
  case Atomic::max: return bits_of(std::max(a, b));
  case Atomic::bit_and: return old & value;
  case Atomic::bit_or: return old | value;
  case Atomic::bit_xor: return old ^ value;
  default: throw InternalError("emulator: no such operation on integers");
  }
}

// -0 is less than 0.
template <class T>
T lesser(T a, T b, Nans nans) {
  if (std::isnan(a)) return nans == Nans::propagate ? a : b;
  if (std::isnan(b)) return nans == Nans::propagate ? b : a;
  if (a == b) return std::signbit(a) ? a : b;
  return std::min(a, b);
}

template <class T, class Widen, class Narrow>
std::uint64_t combine_floats(Atomic what, Nans nans, std::uint64_t old, std::uint64_t value,
                             Widen widen, Narrow narrow) {
  const auto a = widen(as<T>(old)), b = widen(as<T>(value));
  switch (what) {
  case Atomic::add: return bits_of<T>(narrow(a + b));
  case Atomic::min: return bits_of<T>(narrow(lesser(a, b, nans)));
  case Atomic::max: return bits_of<T>(narrow(-lesser(-a, -b, nans)));
  default: throw InternalError("emulator: no such operation on floats");
  }
}

}  // namespace

float widen_f16(std::uint16_t x) {
  if ((x & 0x7c00) != 0x7c00) return widen(x, 5, 10);
  const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x8000) << 16;
  return std::bit_cast<float>(sign | 0x7f800000 | static_cast<std::uint32_t>(x & 0x3ff) << 13);
}

float widen_bf16(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

float widen_e4m3(std::uint8_t x) { return (x & 0x7f) == 0x7f ? NAN : widen(x, 4, 3); }

float widen_e5m2(std::uint8_t x) {
  if ((x & 0x7c) != 0x7c) return widen(x, 5, 2);
  if (x & 3) return NAN;
  return x & 0x80 ? -INFINITY : INFINITY;
}

std::uint16_t narrow_f16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {  // the unit in the last place of 0.5f is f16's least subnormal
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}

std::uint16_t narrow_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float round_to_tf32(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) >= 0x7f800000) return x;
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

std::uint32_t bytes_of(Format format) {
  switch (format) {
  case Format::e4m3:
  case Format::e5m2:
  case Format::i8:
  case Format::u8: return 1;
  case Format::f16:
  case Format::bf16:
  case Format::i16:
  case Format::u16: return 2;
  case Format::tf32:
  case Format::f32:
  case Format::i32:
  case Format::u32: return 4;
  case Format::f64:
  case Format::i64:
  case Format::u64: return 8;
  }
  throw InternalError("emulator: no such number format");
}

const char* name(Format format) {
  constexpr const char* names[] = {"f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "i8",
                                   "u8",  "i16",  "u16",  "i32", "u32", "i64",  "u64"};
  return names[static_cast<int>(format)];
}

std::uint64_t combine(Atomic what, Format format, std::uint64_t old, std::uint64_t value,
                      std::uint64_t expected, Nans nans) {
  switch (what) {
  case Atomic::load: return old;
  case Atomic::store:
  case Atomic::exchange: return value;
  case Atomic::compare_exchange: return old == expected ? value : old;
  case Atomic::reduce_add: what = Atomic::add; break;
  case Atomic::inc: return combine(Reduction::inc, format, old, value);
  case Atomic::dec: return combine(Reduction::dec, format, old, value);
  default: break;
  }
  const auto same = [](auto x) { return x; };
  switch (format) {
  case Format::i8: return combine_integers<std::int8_t>(what, old, value);
  case Format::u8: return combine_integers<std::uint8_t>(what, old, value);
  case Format::i16: return combine_integers<std::int16_t>(what, old, value);
  case Format::u16: return combine_integers<std::uint16_t>(what, old, value);
  case Format::i32: return combine_integers<std::int32_t>(what, old, value);
  case Format::u32: return combine_integers<std::uint32_t>(what, old, value);
  case Format::i64: return combine_integers<std::int64_t>(what, old, value);
  case Format::u64: return combine_integers<std::uint64_t>(what, old, value);
  case Format::f16:
    return combine_floats<std::uint16_t>(what, nans, old, value, widen_f16, narrow_f16);
  case Format::bf16:
    return combine_floats<std::uint16_t>(what, nans, old, value, widen_bf16, narrow_bf16);
  case Format::f32: return combine_floats<float>(what, nans, old, value, same, same);
  case Format::f64: return combine_floats<double>(what, nans, old, value, same, same);
  default: throw InternalError("emulator: no atomic operations on this format");
  }
}

std::uint64_t combine_global(Atomic what, Format format, std::uint64_t old, std::uint64_t value,
                             std::uint64_t expected, Nans nans) {
  const bool adds = what == Atomic::add || what == Atomic::reduce_add;
  if (!adds || format != Format::f32) return combine(what, format, old, value, expected, nans);
  const auto flushed = [](std::uint64_t x) { return (x & 0x7f800000) == 0 ? x & 0x80000000 : x; };
  return flushed(combine(what, format, flushed(old), flushed(value), expected, nans));
}

std::uint64_t combine(Reduction how, Format format, std::uint64_t old, std::uint64_t value) {
  const auto of = [&](Atomic what) { return combine(what, format, old, value, 0, Nans::ignore); };
  const auto bound = static_cast<std::uint32_t>(value), now = static_cast<std::uint32_t>(old);
  switch (how) {
  case Reduction::none: return value;
  case Reduction::add: return of(Atomic::add);
  case Reduction::min: return of(Atomic::min);
  case Reduction::max: return of(Atomic::max);
  case Reduction::bit_and: return of(Atomic::bit_and);
  case Reduction::bit_or: return of(Atomic::bit_or);
  case Reduction::bit_xor: return of(Atomic::bit_xor);
  case Reduction::inc: return now >= bound ? 0 : now + 1;
  case Reduction::dec: return now == 0 || now > bound ? bound : now - 1;
  }
  throw InternalError("emulator: no such reduction");
}

}  // namespace palladium::emulator
