// Numbers as bits of every dtype, and the op table.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "codegen/graph/fold.hpp"
#include "codegen/graph/graph.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::graph;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// The nearest value of a 16-bit dtype by search over all of them.
std::uint64_t nearest(DType dtype, double x) {
  std::uint64_t low = 0, high = to_bits(dtype, inf);  // of the magnitude; bits grow with it
  const double m = std::fabs(x);
  while (high - low > 1) {
    const std::uint64_t mid = (low + high) / 2;
    (to_double(dtype, mid) <= m ? low : high) = mid;
  }
  const double below = to_double(dtype, low);
  // Infinity stands for the next power of two when the distance to it is measured.
  const double above = std::isinf(to_double(dtype, high)) ? 2 * below - to_double(dtype, low - 1)
                                                          : to_double(dtype, high);
  const double to_below = m - below, to_above = above - m;
  std::uint64_t bits = low;
  if (to_above < to_below || (to_above == to_below && (low & 1))) bits = high;
  return bits | (std::signbit(x) ? 0x8000 : 0);
}

}  // namespace

TEST_CASE("every 16-bit float survives the way to double and back [C71]") {
  for (const DType d : {f16, bf16})
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
      const double x = to_double(d, bits);
      if (std::isnan(x))
        REQUIRE(std::isnan(to_double(d, to_bits(d, x))));
      else
        REQUIRE(to_bits(d, x) == bits);
    }
}

TEST_CASE("doubles round to the nearest 16-bit float, ties to even") {
  test::Random random(3);
  for (const DType d : {f16, bf16}) {
    for (std::uint64_t bits = 0; bits < 0x7c00; bits += 7) {
      const double low = to_double(d, bits), high = to_double(d, bits + 1);
      if (std::isinf(high)) continue;
      const double half = low / 2 + high / 2;
      REQUIRE(to_bits(d, half) == bits + (bits & 1));
      REQUIRE(to_bits(d, std::nextafter(half, 0.0)) == bits);
      REQUIRE(to_bits(d, std::nextafter(half, inf)) == bits + 1);
    }
    for (int i = 0; i < 20000; ++i) {
      const double scale = std::ldexp(1.0, random.between(-30, 20));
      const double x = scale * (static_cast<double>(random.bits() >> 11) / (1ull << 53) - 0.5);
      REQUIRE(to_bits(d, x) == nearest(d, x));
    }
  }
  CHECK(to_bits(f16, 65519.999) == 0x7bff);
  CHECK(to_bits(f16, 65520.0) == 0x7c00);
  CHECK(to_bits(f16, -inf) == 0xfc00);
  CHECK(to_bits(f16, 5.960464477539063e-8) == 1);
  CHECK(to_bits(f16, 2.9802322387695312e-8) == 0);
  CHECK(to_bits(bf16, 1e-300) == 0);
  CHECK(to_bits(bf16, -0.0) == 0x8000);
  CHECK(to_bits(bf16, std::ldexp(1.0, -133)) == 1);
}

TEST_CASE("integers become floats with one rounding") {
  CHECK(to_double(bf16, to_bits(bf16, (std::int64_t(1) << 60) + (std::int64_t(1) << 52))) ==
        std::ldexp(1.0, 60));
  CHECK(to_double(bf16, to_bits(bf16, (std::int64_t(1) << 60) + (std::int64_t(1) << 52) + 1)) ==
        std::ldexp(1.0, 60) + std::ldexp(1.0, 53));
  CHECK(to_bits(f16, std::int64_t(2049)) == to_bits(f16, 2048.0));
  CHECK(to_bits(f32, std::numeric_limits<std::int64_t>::min()) ==
        std::bit_cast<std::uint32_t>(-0x1p63f));
  CHECK(to_bits(bool_, std::int64_t(256)) == 1);
}

TEST_CASE("floats become integers by truncation and saturate; NaN is 0") {
  CHECK(to_int(i8, to_bits(i8, -1.9)) == -1);
  CHECK(to_int(i8, to_bits(i8, 300.0)) == 127);
  CHECK(to_int(i8, to_bits(i8, -inf)) == -128);
  CHECK(to_bits(u8, -0.9) == 0);
  CHECK(to_bits(u8, -5.0) == 0);
  CHECK(to_bits(u8, 255.9) == 255);
  CHECK(to_bits(u64, 1e30) == ~std::uint64_t(0));
  CHECK(to_bits(u64, 1.5e19) == 15000000000000000000u);
  CHECK(to_int(i64, to_bits(i64, 9.3e18)) == std::numeric_limits<std::int64_t>::max());
  CHECK(to_bits(i32, not_a_number) == 0);
  CHECK(to_bits(bool_, not_a_number) == 1);
  CHECK(to_int(f32, to_bits(f32, -2.5)) == -2);
  CHECK(to_double(u64, ~std::uint64_t(0)) == 0x1p64);
}

TEST_CASE("integers wrap to their width and come back with their sign") {
  CHECK(to_bits(i8, std::int64_t(-1)) == 0xff);
  CHECK(to_int(i8, 0xff) == -1);
  CHECK(to_int(u8, 0xff) == 255);
  CHECK(to_bits(i16, std::int64_t(0x12345)) == 0x2345);
  CHECK(to_int(i64, ~std::uint64_t(0)) == -1);
}

TEST_CASE("8-bit integer folding agrees with arithmetic in a wider type [C57] [C59]") {
  const auto check = [](Op op, int x, int y, DType d, std::int64_t expected) {
    const std::uint64_t bits[] = {to_bits(d, std::int64_t(x)), to_bits(d, std::int64_t(y))};
    const auto folded = fold(op, d, d, bits);
    REQUIRE(folded.has_value());
    REQUIRE(*folded == to_bits(d, expected));
  };
  for (int x = -128; x < 128; ++x)
    for (int y = -128; y < 128; ++y) {
      check(Op::Add, x, y, i8, x + y);
      check(Op::Mul, x, y, i8, x * y);
      check(Op::Div, x, y, i8, y == 0 ? -1 : x / y);
      check(Op::Rem, x, y, i8, y == 0 ? x : x % y);
      check(Op::Max, x, y, i8, std::max(x, y));
      check(Op::ShiftRight, x, y, i8, y < 0 || y > 7 ? (x < 0 ? -1 : 0) : x >> y);
      check(Op::ShiftLeft, x, y, i8, y < 0 || y > 7 ? 0 : x << y);
      const int a = x & 255, b = y & 255;
      check(Op::Div, a, b, u8, b == 0 ? 255 : a / b);
      check(Op::Rem, a, b, u8, b == 0 ? a : a % b);
      check(Op::Min, a, b, u8, std::min(a, b));
      check(Op::ShiftRight, a, b, u8, b > 7 ? 0 : a >> b);
      const std::uint64_t bits[] = {to_bits(u8, std::int64_t(a)), to_bits(u8, std::int64_t(b))};
      REQUIRE(fold(Op::Lt, u8, bool_, bits) == std::uint64_t(a < b));
    }
}

TEST_CASE("ops are found by name") {
  for (int i = 0; i < num_ops; ++i) {
    Op op = Op::Param;
    REQUIRE(op_named(info(static_cast<Op>(i)).name, op));
    CHECK(op == static_cast<Op>(i));
  }
  Op op = Op::Param;
  CHECK_FALSE(op_named("nothing", op));
}
