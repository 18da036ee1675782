// The element types by their definitions, independent of the device library: bits to exact values
// and exact values to correctly rounded bits, in long double, which holds every value of every
// type.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/emulator/emulator.hpp"

namespace palladium::test {

static_assert(std::numeric_limits<long double>::digits >= 64, "64-bit integers must be exact");

struct NumberType {
  const char* name;
  int bytes;
  bool is_float = false, is_signed = true;
  int digits = 0, min_exponent = 0, max_exponent = 0;  // of floats: 1.xxx * 2^exponent
  long double greatest = INFINITY;  // of what has all exponents but a NaN for numbers
  bool has_infinity() const { return std::isinf(greatest); }
};

inline constexpr NumberType number_types[] = {
    {"i8", 1},
    {"i16", 2},
    {"i32", 4},
    {"i64", 8},
    {"u8", 1, false, false},
    {"u16", 2, false, false},
    {"u32", 4, false, false},
    {"u64", 8, false, false},
    {"bool", 1, false, false},
    {"f16", 2, true, true, 11, -14, 15},
    {"bf16", 2, true, true, 8, -126, 127},
    {"f32", 4, true, true, 24, -126, 127},
    {"f64", 8, true, true, 53, -1022, 1023},
};
// What is stored and converted alone.
inline constexpr NumberType byte_floats[] = {
    {"f8e4m3", 1, true, true, 4, -6, 7, 448},
    {"f8e5m2", 1, true, true, 3, -14, 15},
};
inline std::vector<NumberType> stored_types() {
  std::vector<NumberType> all(std::begin(number_types), std::end(number_types));
  all.insert(all.end(), std::begin(byte_floats), std::end(byte_floats));
  return all;
}
inline bool is_bool(const NumberType& t) { return std::strcmp(t.name, "bool") == 0; }
inline const NumberType& number_type(std::string_view name) {
  for (const NumberType& t : number_types) {
    if (name == t.name) return t;
  }
  for (const NumberType& t : byte_floats) {
    if (name == t.name) return t;
  }
  throw std::invalid_argument("no number type is called " + std::string(name));
}

inline std::uint64_t low_bits(int n) { return n >= 64 ? ~0ull : (1ull << n) - 1; }

inline long double value_of(const NumberType& t, std::uint64_t bits) {
  const int width = 8 * t.bytes;
  bits &= low_bits(width);
  if (is_bool(t)) return bits != 0;
  if (!t.is_float) {
    if (t.is_signed && bits >> (width - 1)) {
      return -static_cast<long double>(low_bits(width) - bits) - 1;
    }
    return static_cast<long double>(bits);
  }
  const int mantissa_bits = t.digits - 1;
  const std::uint64_t mantissa = bits & low_bits(mantissa_bits);
  const int exponent = static_cast<int>(bits >> mantissa_bits & low_bits(width - t.digits));
  long double magnitude;
  const bool is_top = exponent == t.max_exponent * 2 + 1;
  if (is_top && (t.has_infinity() || mantissa == low_bits(mantissa_bits))) {
    magnitude = mantissa == 0 && t.has_infinity() ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<long double>(mantissa), t.min_exponent - mantissa_bits);
  } else {
    magnitude = std::ldexp(static_cast<long double>(mantissa | 1ull << mantissa_bits),
                           exponent - t.max_exponent - mantissa_bits);
  }
  return bits >> (width - 1) ? -magnitude : magnitude;
}

/// The value rounded to nearest even into a float type, as a value.
inline long double rounded(const NumberType& t, long double x) {
  if (std::isinf(x) && !t.has_infinity()) return NAN;
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), t.min_exponent);
  const long double unit = std::ldexp(1.0L, exponent - (t.digits - 1));
  const long double result = std::rint(x / unit) * unit;
  if (!t.has_infinity()) return std::abs(result) > t.greatest ? NAN : result;
  const long double limit = std::ldexp(2 - std::ldexp(1.0L, 1 - t.digits), t.max_exponent);
  return std::abs(result) > limit ? std::copysign(INFINITY, x) : result;
}

/// Same value and sign of zero; NaN equals NaN.
inline bool same_value(long double a, long double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

/// Distance in units of the last place that `want` has in type t.
inline double ulps(const NumberType& t, long double got, long double want) {
  const long double nearest = rounded(t, want);
  if (same_value(got, nearest)) return 0;
  if (std::isnan(got) || std::isnan(nearest)) return INFINITY;
  if (std::isinf(got) || std::isinf(nearest)) {
    // One past the greatest number is a miss of one unit, not of infinitely many.
    const long double edge = std::ldexp(1.0L, t.max_exponent + 1);
    const long double a = std::isinf(got) ? std::copysign(edge, got) : got;
    const long double b = std::isinf(want) ? std::copysign(edge, want) : want;
    return static_cast<double>(std::abs(a - b) / std::ldexp(edge, -t.digits));
  }
  const int exponent = want == 0 ? t.min_exponent : std::max(std::ilogb(want), t.min_exponent);
  return static_cast<double>(std::abs(got - want) / std::ldexp(1.0L, exponent - (t.digits - 1)));
}

/// Every bit pattern of types of up to 2 bytes; else corners and random patterns.
inline std::vector<std::uint64_t> patterns(const NumberType& t, unsigned seed = 1) {
  std::vector<std::uint64_t> result;
  if (is_bool(t)) return {0, 1};
  if (t.bytes <= 2) {
    for (std::uint64_t i = 0; i < 1ull << 8 * t.bytes; ++i) result.push_back(i);
    return result;
  }
  const int width = 8 * t.bytes;
  for (int i = 0; i < width; ++i) {
    for (std::uint64_t d : {-2, -1, 0, 1, 2}) {
      result.push_back(((1ull << i) + d) & low_bits(width));
      result.push_back((~(1ull << i) + d) & low_bits(width));
    }
  }
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20000; ++i) result.push_back(random() & low_bits(width));
  // Random bits of a float are rarely near 1, and of an integer rarely small.
  for (int i = 0; i < 20000; ++i) {
    if (t.is_float) {
      const auto mantissa = static_cast<double>(static_cast<std::int64_t>(random()));
      const double x = std::ldexp(mantissa, static_cast<int>(random() % 120) - 100);
      result.push_back(t.bytes == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(x))
                                    : std::bit_cast<std::uint64_t>(x));
    } else {
      const std::uint64_t bits = random() & low_bits(width);
      result.push_back(bits >> random() % width);
    }
  }
  return result;
}

/// Packs patterns into memory as the type holds them.
inline std::vector<std::byte> memory_of(const NumberType& t,
                                        const std::vector<std::uint64_t>& bits) {
  std::vector<std::byte> memory(bits.size() * t.bytes);
  for (std::size_t i = 0; i < bits.size(); ++i)
    std::memcpy(&memory[i * t.bytes], &bits[i], t.bytes);
  return memory;
}

/// Evaluates expressions of `x` (of type in) and `y` on the emulator, on the n pairs (x[i], y[i]):
/// result k holds the bits of expression k, of type `types[k]`.
struct Expression {
  std::string text;
  std::string type;
};
inline std::vector<std::vector<std::uint64_t>> evaluate(
    const NumberType& in, const std::vector<std::uint64_t>& x, const std::vector<std::uint64_t>& y,
    const std::vector<Expression>& expressions) {
  const int n = static_cast<int>(x.size());
  const std::string type = in.name;
  std::string text = "PL_KERNEL(128) k(const " + type + "* px, const " + type +
                     "* py, u64* o, i32 n) {\n"
                     "  PL_NOUNROLL for (i32 i = pl::thread(); i < n; i += 128) {\n    " +
                     type +
                     " x, y;\n    pl::load_global(&x, px + i);\n    pl::load_global(&y, py + i);\n";
  for (std::size_t k = 0; k < expressions.size(); ++k) {
    const NumberType& out = number_type(expressions[k].type);
    const std::string bits =
        is_bool(out) ? "static_cast<u64>(r)"
                     : "static_cast<u64>(pl::bitcast<u" + std::to_string(8 * out.bytes) + ">(r))";
    text += "    { const " + expressions[k].type + " r = " + expressions[k].text +
            "; const u64 b = " + bits + "; pl::store_global(o + " + std::to_string(k) +
            " * static_cast<i64>(n) + i, &b); }\n";
  }
  text += "  }\n}\nPL_EXPORT(k)\n";
  std::vector<std::byte> mx = memory_of(in, x), my = memory_of(in, y);
  std::vector<std::uint64_t> o(expressions.size() * n);
  void *px = mx.data(), *py = my.data(), *po = o.data();
  int count = n;
  void* parameters[] = {&px, &py, &po, &count};
  const emulator::Buffer buffers[] = {
      {.base = px, .bytes = mx.size(), .name = "x"},
      {.base = py, .bytes = my.size(), .name = "y"},
      {.base = po, .bytes = o.size() * 8, .name = "o", .written = true, .element_bytes = 8}};
  emulator::run({.kernel = "k",
                 .text = text,
                 .parameters = parameters,
                 .buffers = buffers,
                 .options = {.detect_writers = false}});
  std::vector<std::vector<std::uint64_t>> results;
  for (std::size_t k = 0; k < expressions.size(); ++k) {
    results.emplace_back(o.begin() + k * n, o.begin() + (k + 1) * n);
  }
  return results;
}

}  // namespace palladium::test
