// Floats of 16 and 8 bits on the host. They convert to float, in which arithmetic is done, and
// back.
#pragma once

#include <bit>
#include <cstdint>

#include "palladium/api.hpp"

namespace palladium {

/// IEEE binary16: 10 bits behind the point, up to 65504. From float it rounds to nearest even; what
/// is 65520 or more becomes infinite. NaNs stay NaN.
struct float16_t {
  std::uint16_t bits = 0;

  constexpr float16_t() = default;
  constexpr float16_t(float x) : bits(rounded(x)) {}
  constexpr operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x0400) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
    const float small = static_cast<float>(rest) * 0x1p-24f;
    return sign == 0 ? small : -small;
  }
  static constexpr float16_t of_bits(std::uint16_t bits) {
    float16_t x;
    x.bits = bits;
    return x;
  }

 private:
  static constexpr std::uint16_t rounded(float x) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(x), magnitude = all & 0x7fffffffu;
    const std::uint32_t sign = all >> 16 & 0x8000u;
    std::uint32_t rest = 0;
    if (magnitude > 0x7f800000u)
      rest = 0x7e00;
    else if (magnitude >= 0x477ff000u)
      rest = 0x7c00;
    else if (magnitude >= 0x38800000u)
      rest = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    else  // beside a half the places below 2^-24 are rounded off
      rest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    return static_cast<std::uint16_t>(sign | rest);
  }
};

/// bfloat16: the upper half of a float, to which it rounds to nearest even. NaNs stay NaN.
struct bfloat16_t {
  std::uint16_t bits = 0;

  constexpr bfloat16_t() = default;
  constexpr bfloat16_t(float x) : bits(rounded(x)) {}
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  static constexpr bfloat16_t of_bits(std::uint16_t bits) {
    bfloat16_t x;
    x.bits = bits;
    return x;
  }

 private:
  static constexpr std::uint16_t rounded(float x) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(x);
    if ((all & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(all >> 16 | 0x40u);
    return static_cast<std::uint16_t>((all + 0x7fffu + (all >> 16 & 1)) >> 16);
  }
};

/// float8_e4m3fn: 3 bits behind the point, up to 448, no infinity. From float it rounds to nearest
/// even; what is above 464, and NaN, becomes NaN.
struct float8_e4m3_t {
  std::uint8_t bits = 0;

  constexpr float8_e4m3_t() = default;
  constexpr float8_e4m3_t(float x) : bits(rounded(x)) {}
  constexpr operator float() const {
    const unsigned sign = bits & 0x80u, rest = bits & 0x7fu;
    if (rest == 0x7f) return std::bit_cast<float>((sign << 24) | 0x7fc00000u);
    // float16's exponents, which are greater by 8.
    return 256 * float16_t::of_bits(static_cast<std::uint16_t>(sign << 8 | rest << 7));
  }
  static constexpr float8_e4m3_t of_bits(std::uint8_t bits) {
    float8_e4m3_t x;
    x.bits = bits;
    return x;
  }

 private:
  static constexpr std::uint8_t rounded(float x) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(x), magnitude = all & 0x7fffffffu;
    std::uint32_t rest = 0;
    if (magnitude > 0x43e80000u)  // 464
      rest = 0x7f;
    else if (magnitude >= 0x3c800000u)
      rest = (magnitude - 0x3c000000u + 0x7ffffu + (magnitude >> 20 & 1)) >> 20;
    else  // beside 2^14 the places below 2^-9 are rounded off
      rest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 16384.0f) - 0x46800000u;
    return static_cast<std::uint8_t>((all >> 24 & 0x80u) | rest);
  }
};

/// float8_e5m2: the upper half of a float16_t, up to 57344. From float it rounds to nearest even;
/// what is 61440 or more becomes infinite. NaNs stay NaN.
struct float8_e5m2_t {
  std::uint8_t bits = 0;

  constexpr float8_e5m2_t() = default;
  constexpr float8_e5m2_t(float x) : bits(rounded(x)) {}
  constexpr operator float() const {
    return float16_t::of_bits(static_cast<std::uint16_t>(bits << 8));
  }
  static constexpr float8_e5m2_t of_bits(std::uint8_t bits) {
    float8_e5m2_t x;
    x.bits = bits;
    return x;
  }

 private:
  static constexpr std::uint8_t rounded(float x) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(x), magnitude = all & 0x7fffffffu;
    std::uint32_t rest = 0;
    if (magnitude > 0x7f800000u)
      rest = 0x7e;
    else if (magnitude >= 0x47700000u)
      rest = 0x7c;
    else if (magnitude >= 0x38800000u)
      rest = (magnitude - 0x38000000u + 0xfffffu + (magnitude >> 21 & 1)) >> 21;
    else  // beside 2^7 the places below 2^-16 are rounded off
      rest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 128.0f) - 0x43000000u;
    return static_cast<std::uint8_t>((all >> 24 & 0x80u) | rest);
  }
};

}  // namespace palladium
