// Elements of arrays on the host: floats of 16 and 8 bits, made, drawn, converted and printed
// arrays.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "palladium/palladium.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

constexpr Device cpu = Device::cpu();
constexpr DType all_types[] = {bool_, i8,   i16, i32, i64,    u8,     u16, u32, u64,
                               f16,   bf16, f32, f64, f8e4m3, f8e5m2, i4,  u4};

std::uint64_t bits(const Array& a, std::int64_t i) {
  std::uint64_t got = 0;
  const int bytes = a.dtype().bytes();
  const bool packed = a.dtype().is_packed();
  std::memcpy(&got, static_cast<const std::byte*>(a.data()) + (packed ? i / 2 : i * bytes),
              static_cast<std::size_t>(bytes));
  return packed ? got >> i % 2 * 4 & 15 : got;
}

double number(const Array& a, std::int64_t i) { return graph::to_double(a.dtype(), bits(a, i)); }

// Whether a float rounds to the same bits as in the graph, NaNs to any NaN.
template <class T>
bool rounds(float x, DType dtype) {
  const std::uint64_t wanted = graph::to_bits(dtype, static_cast<double>(x));
  if (std::isnan(x)) return std::isnan(static_cast<float>(T(x)));
  return T(x).bits == wanted;
}

}  // namespace

TEST_CASE("16-bit floats are the numbers that their bits say") {
  for (std::uint32_t i = 0; i < 1u << 16; ++i) {
    const auto b = static_cast<std::uint16_t>(i);
    const float x = float16_t::of_bits(b), y = bfloat16_t::of_bits(b);
    const double half = graph::to_double(f16, b), brain = graph::to_double(bf16, b);
    if (!(std::isnan(half) ? std::isnan(x) : x == half && std::signbit(x) == std::signbit(half)))
      FAIL("f16 of bits " << i);
    if (!(std::isnan(brain) ? std::isnan(y) : y == brain)) FAIL("bf16 of bits " << i);
    if (!std::isnan(x) && float16_t(x).bits != b) FAIL("f16 back to bits " << i);
    if (!std::isnan(y) && bfloat16_t(y).bits != b) FAIL("bf16 back to bits " << i);
  }
}

TEST_CASE("floats of 8 bits are the numbers that their bits say") {
  CHECK(float(float8_e4m3_t::of_bits(0x7e)) == 448);
  CHECK(float(float8_e4m3_t::of_bits(0x01)) == 0x1p-9f);
  CHECK(float(float8_e5m2_t::of_bits(0x7b)) == 57344);
  CHECK(float(float8_e5m2_t::of_bits(0x81)) == -0x1p-16f);
  for (unsigned i = 0; i < 256; ++i) {
    const auto b = static_cast<std::uint8_t>(i);
    const float x = float8_e4m3_t::of_bits(b), y = float8_e5m2_t::of_bits(b);
    const double four = graph::to_double(f8e4m3, b), five = graph::to_double(f8e5m2, b);
    CAPTURE(i);
    CHECK((std::isnan(four) ? std::isnan(x) : x == four && float8_e4m3_t(x).bits == b));
    CHECK((std::isnan(five) ? std::isnan(y) : y == five && float8_e5m2_t(y).bits == b));
    CHECK(std::isnan(four) == ((b & 0x7f) == 0x7f));
    CHECK(std::isnan(five) == ((b & 0x7f) > 0x7c));
  }
}

TEST_CASE("what no float of 8 bits reaches is NaN or infinite") {
  CHECK(float8_e4m3_t(464.0f).bits == 0x7e);
  CHECK(float8_e4m3_t(464.1f).bits == 0x7f);
  CHECK(float8_e4m3_t(-INFINITY).bits == 0xff);
  CHECK(float8_e5m2_t(61439.0f).bits == 0x7b);
  CHECK(float8_e5m2_t(61440.0f).bits == 0x7c);
  CHECK(float8_e5m2_t(-INFINITY).bits == 0xfc);
}

TEST_CASE("floats round to the nearest 16-bit or 8-bit float, ties to even") {
  std::mt19937 random(3);
  std::vector<std::uint32_t> patterns;
  for (std::uint32_t b = 0; b < 1u << 16; ++b)
    for (const std::uint32_t below : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
      patterns.push_back(b << 16 | below);
  for (int i = 0; i < 300'000; ++i) patterns.push_back(static_cast<std::uint32_t>(random()));
  for (const std::uint32_t p : patterns) {
    const auto x = std::bit_cast<float>(p);
    if (!rounds<float16_t>(x, f16) || !rounds<bfloat16_t>(x, bf16)) FAIL("bits " << p);
    if (!rounds<float8_e4m3_t>(x, f8e4m3) || !rounds<float8_e5m2_t>(x, f8e5m2))
      FAIL("8 bits of bits " << p);
  }
  static_assert(float16_t(1.5f) + float16_t(2.0f) == 3.5f);
  static_assert(bfloat16_t(-3.0f).bits == 0xc040);
}

TEST_CASE("floats of 16 and 8 bits are elements of arrays") {
  CHECK(Array::of<float8_e4m3_t>({1.5f, -2.0f}).dtype() == f8e4m3);
  CHECK(Array::of<float8_e5m2_t>({1.5f}).data<float8_e5m2_t>()[0] == 1.5f);
  const Array a = Array::of<float16_t>({1.5f, -2.0f, 65504.0f});
  CHECK(a.dtype() == f16);
  CHECK(a.data<float16_t>()[1] == -2.0f);
  CHECK_THROWS_WITH(a.data<bfloat16_t>(), ContainsSubstring("f16") && ContainsSubstring("bf16"));
  std::vector<bfloat16_t> memory(4, 0.5f);
  CHECK(Array::view(std::span(memory)).dtype() == bf16);
}

TEST_CASE("two integers of 4 bits share a byte, the first its low half") {
  std::uint8_t memory[] = {0x21, 0xf8, 0x00, 0x00};
  const Array a = Array::view(memory, {2, 4}, u4, {.device = &cpu});
  CHECK(to_string(a) == "[[ 1  2  8 15]\n [ 0  0  0  0]]");
  CHECK(to_string(Array::view(memory, {4}, i4, {.device = &cpu})) == "[ 1  2 -8 -1]");
  a.fill(3);
  CHECK(memory[3] == 0x33);
  const std::int64_t strides[] = {2, 1};
  Array::view(memory + 1, {2, 2}, u4, {.strides = strides, .device = &cpu}).fill(-1);
  CHECK((memory[0] == 0x33 && memory[1] == 0xff && memory[2] == 0xff && memory[3] == 0x33));
  CHECK(a.bytes().end - a.bytes().begin == 4);
  CHECK(Array::from_function({2, 2}, i4, [](int i, int j) { return 2 * i - 3 * j; })
            .astype(i8)
            .values<std::int8_t>()[1] == -3);
  CHECK(a.copy().reshape({8}).shape() == Shape{8});
  CHECK_THROWS_WITH(a.reshape({8, 1}), ContainsSubstring("the last extent is even"));
  const std::int64_t odd[] = {3, 1};
  CHECK_THROWS_WITH(Array::view(memory, {2, 2}, u4, {.strides = odd, .device = &cpu}),
                    ContainsSubstring("the last stride is 1 and others are even, given [3,1]"));
  CHECK_THROWS_WITH(a.values<std::uint8_t>(), ContainsSubstring("the elements are u4"));
}

TEST_CASE("fill makes every element of a view a number, and no other") {
  for (const DType t : all_types) {
    if (t.is_packed()) continue;  // whose neighbours share a byte
    CAPTURE(t.name());
    const Array a = Array::zeros({3, 8}, t);
    const std::int64_t strides[] = {8, 2};
    Array::view(a.data(), {3, 4}, t, {.strides = strides}).fill(3);
    for (std::int64_t i = 0; i < 24; ++i)
      CHECK(number(a, i) == (i % 2 == 0 ? (t.is_bool() ? 1 : 3) : 0));
  }
  for (const DType t : all_types)
    for (const std::int64_t n : {2, 6, 130}) {
      const Array a = Array::full({n}, t, 3);
      CAPTURE(t.name(), n);
      for (std::int64_t i = 0; i < n; ++i) REQUIRE(number(a, i) == (t.is_bool() ? 1 : 3));
    }
  Array::full({0}, f32, 3).fill(4);
  CHECK(bits(Array::full({1}, u64, std::uint64_t(-1)), 0) == ~std::uint64_t(0));
  CHECK(bits(Array::full({1}, i64, INT64_MIN), 0) == std::uint64_t(1) << 63);
  CHECK(number(Array::full({1}, i8, 1e9), 0) == 127);
  CHECK(number(Array::full({}, bf16, float16_t(0.25f)), 0) == 0.25);
  const std::vector<float> constant(4, 1.f);
  CHECK_THROWS_WITH(Array::view(std::span(constant)).fill(0),
                    ContainsSubstring("fill: the array is read-only"));
  CHECK_THROWS_WITH(Array().fill(0), ContainsSubstring("fill: there is no array"));
}

TEST_CASE("from_function asks for each place by its indices") {
  const Array a = Array::from_function({2, 3}, i32, [](auto i, auto j) { return 10 * i + j; });
  CHECK(std::vector(a.values<int>().begin(), a.values<int>().end()) ==
        std::vector{0, 1, 2, 10, 11, 12});
  const Array b = Array::from_function(
      {2, 2, 2}, f16, [](std::span<const std::int64_t> at) { return at[0] * 0.5f + at[2]; });
  CHECK(number(b, 5) == 1.5);
  CHECK(number(Array::from_function({}, f64, [] { return 2.5; }), 0) == 2.5);
  CHECK(Array::from_function({0, 4}, u8, [](int, int) { return 1; }).size() == 0);
  CHECK_THROWS_WITH(
      Array::from_function({2, 2}, f32, [](std::int64_t i) { return i; }),
      ContainsSubstring("from_function: expected a function of 2 indices, one for each dimension "
                        "of f32[2,2], given one of 1") &&
          ContainsSubstring("elements_test.cpp"));
}

TEST_CASE("the argument of a generic function is an index, or all of them") {
  const Array a = Array::from_function({50}, i32, [](auto i) { return 3 * i % 7; });
  for (std::int64_t i = 0; i < 50; ++i) CHECK(number(a, i) == static_cast<double>(3 * i % 7));
  const Array b = Array::from_function({2, 3}, f32, [](auto i) { return 1.0 * i[0] - i[1]; });
  CHECK(number(b, 5) == -1);
  CHECK(number(Array::from_function({4}, i64, [](auto i) { return i; }), 3) == 3);
  CHECK(number(Array::from_function({3}, f32, [](auto i) { return i == 2 ? 0.5f : 1.f; }), 2) ==
        0.5);
  CHECK(number(Array::from_function({2, 2}, u8, [](auto... i) { return (i + ...); }), 3) == 2);
  CHECK(number(Array::from_function({2, 2}, u8, [](auto... i) { return (i + ... + 100); }), 3) ==
        102);
  const auto with_default = [](auto i, std::int64_t j = 5) { return i + j; };
  CHECK(number(Array::from_function({2}, u8, with_default), 1) == 6);
  CHECK(number(Array::from_function({2, 2}, u8, with_default), 3) == 2);
  CHECK_THROWS_WITH(Array::from_function({2, 3}, f32, [](auto i) { return 2 * i; }),
                    ContainsSubstring("from_function: expected a function of 2 indices") &&
                        ContainsSubstring("elements_test.cpp"));
}

TEST_CASE("functions of elements give any number, and may take several numbers of indices") {
  const auto numbers = [](const Array& a) {
    std::vector<double> all;
    for (const double x : a.astype(f64).values<double>()) all.push_back(x);
    return all;
  };
  CHECK(numbers(Array::from_function({3}, f32, [](auto i) { return i == 1; })) ==
        std::vector<double>{0, 1, 0});
  CHECK(numbers(Array::from_function({3}, f32, [](auto i) { return std::sqrt(i * i); })) ==
        std::vector<double>{0, 1, 2});
  CHECK(numbers(Array::from_function({2}, u8, [](auto i) { return static_cast<char>(i + 1); })) ==
        std::vector<double>{1, 2});
  CHECK(numbers(Array::from_function({2}, f64, [](auto i) { return 0.5L * i; })) ==
        std::vector<double>{0, 0.5});
  CHECK(numbers(Array::from_function({2}, f16, [](auto i) { return float16_t(2.5f * i); })) ==
        std::vector<double>{0, 2.5});
  CHECK(numbers(Array::from_function({2}, u64, [](auto i) { return std::size_t(i); })) ==
        std::vector<double>{0, 1});
  CHECK(numbers(Array::from_function({2, 1, 2}, i32, [](auto i, int, auto k) {
          return 10 * i + k;
        })) == std::vector<double>{0, 1, 10, 11});
  const auto sparse = [](std::int64_t i, std::int64_t j = 5) { return i * j; };
  CHECK(numbers(Array::from_function({3}, i32, sparse)) == std::vector<double>{0, 5, 10});
  CHECK(numbers(Array::from_function({2, 2}, i32, sparse)) == std::vector<double>{0, 0, 0, 1});
  CHECK(numbers(Array::from_function({3}, i32, [n = 0](auto) mutable { return n++; })) ==
        std::vector<double>{0, 1, 2});
  CHECK_THROWS_WITH(Array::from_function({2, 2, 2}, i32, sparse),
                    ContainsSubstring("expected a function of 3 indices"));
}

TEST_CASE("random numbers are Philox's, the same for a seed") {
  // The known answer of Random123 for counter and key 0.
  const Array known = Array::random({2}, u64);
  CHECK(bits(known, 0) == 0xe169c58d'6627e8d5);
  CHECK(bits(known, 1) == 0x9b00dbd8'bc57ac4c);
  const Array a = Array::random({1000}, f32, {.seed = 7}),
              b = Array::random({1000}, f32, {.seed = 7});
  CHECK(std::memcmp(a.data(), b.data(), 4000) == 0);
  CHECK(std::memcmp(a.data(), Array::random({1000}, f32, {.seed = 8}).data(), 4000) != 0);
}

TEST_CASE("random numbers of every dtype fill their range") {
  for (const DType t : all_types) {
    CAPTURE(t.name());
    const Array a = Array::random({20'000}, t, {.seed = 1});
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (std::int64_t i = 0; i < a.size(); ++i) {
      low = std::min(low, number(a, i)), high = std::max(high, number(a, i));
      sum += number(a, i) / 20'000;
    }
    const double range = t.is_float() || t.is_bool() ? 1 : std::ldexp(1.0, t.bits());
    const double least = t.is_integer() && t.is_signed() ? -range / 2 : 0;
    CHECK(low >= least);
    CHECK((t.is_float() ? high < 1 : high <= least + range));
    CHECK(high - low > 0.98 * range - 1);
    // What lies between two numbers of few digits is the lower one.
    const double cut = t == f8e4m3 ? 0x1p-5 : t == f8e5m2 ? 0x1p-4 : 0;
    const double middle = t.is_packed() ? 0.5 : 0;  // of few integers, not of what is between
    CHECK(std::fabs(sum - (least + range / 2 - cut - middle)) < 0.02 * range);
    const Array c = Array::random({1000}, t, {.low = 2, .high = 5});
    for (std::int64_t i = 0; i < c.size() && !t.is_bool(); ++i)
      CHECK((number(c, i) >= 2 && number(c, i) < (t.is_float() ? 5.01 : 5)));
  }
  CHECK_THROWS_WITH(Array::random({2}, f32, {.low = 3, .high = 1}),
                    ContainsSubstring("random: expected finite bounds, low <= high"));
}

TEST_CASE("astype converts as a kernel does, every dtype to every other") {
  const std::int64_t n = 500;
  for (const DType from : all_types) {
    Array x = from.is_bool() ? Array::random({n}, bool_) : Array::random({n}, from, {.seed = 5});
    if (from.is_float())
      x = Array::from_function({n}, from, [](std::int64_t i) {
        const double special[] = {NAN,  INFINITY, -INFINITY, -0.0,
                                  1e30, -1e30,    65519.9,   2147483648.0};
        return i < 8 ? special[i]
                     : std::ldexp(std::sin(static_cast<double>(i)), static_cast<int>(i % 80) - 10);
      });
    for (const DType to : all_types) {
      CAPTURE(from.name(), to.name());
      const auto cast = pallas_call([=](Ref x, Ref o) { o[_] = x[_].astype(to); },
                                    {.out_type = ShapeDtype{{n}, to}, .interpret = true});
      const Array expected = cast(x), got = x.astype(to);
      for (std::int64_t i = 0; i < n; ++i)
        if (bits(got, i) != bits(expected, i) &&
            !(to.is_float() && std::isnan(number(got, i)) && std::isnan(number(expected, i))))
          FAIL("element " << i << ": " << number(x, i) << " gives " << number(got, i) << ", not "
                          << number(expected, i));
    }
  }
  const std::int64_t strides[] = {1, 3};
  Array a = Array::from_function({2, 3}, i32, [](int i, int j) { return 3 * i + j; });
  const Array turned = Array::view(a.data(), {3, 2}, i32, {.strides = strides}).astype(f32);
  CHECK(turned.is_dense());
  CHECK(number(turned, 1) == 3);
  CHECK_THROWS_WITH(Array().astype(f32), ContainsSubstring("astype: there is no array"));
}

TEST_CASE("arrays are written as NumPy does") {
  CHECK(to_string(Array::from_function({2, 3}, i32, [](int i, int j) { return 10 * i - j; })) ==
        "[[ 0 -1 -2]\n [10  9  8]]");
  CHECK(to_string(Array::of({0.5f, 1e-9f, -INFINITY})) == "[  0.5 1e-09  -inf]");
  CHECK(to_string(Array::of({true, false})) == "[ true false]");
  CHECK(to_string(Array::full({}, f16, 2.5)) == "2.5");
  CHECK(to_string(Array::zeros({0, 3}, f32)) == "[]");
  CHECK(to_string(Array::of({std::uint64_t(-1)})) == "[18446744073709551615]");
  CHECK(to_string(Array::of({1.0 / 3}), {.precision = 3}) == "[0.333]");
  CHECK(to_string(Array()) == "no array");
  CHECK(to_string(Array::from_function({2000}, i32, [](int i) { return i; })) ==
        "[   0    1    2 ... 1997 1998 1999]");
  CHECK(to_string(Array::zeros({2, 1, 2}, u8)) == "[[[0 0]]\n\n [[0 0]]]");
  CHECK(to_string(Array::zeros({40, 40}, u8), {.edge_items = 1}) ==
        "[[0 ... 0]\n ...\n [0 ... 0]]");
}
