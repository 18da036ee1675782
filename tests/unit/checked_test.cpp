// Arithmetic that says what 64 bits do not hold.
#include "codegen/base/checked.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using palladium::Checked;
using palladium::checked_align_up;
using palladium::checked_product;

namespace {

bool is(Checked n, __int128 exact) {
  const bool held = exact >= INT64_MIN && exact <= INT64_MAX;
  return n.fits() == held && (!held || n.value() == exact);
}

}  // namespace

TEST_CASE("checked sums, products and quotients are exact or do not fit") {
  std::mt19937_64 random(1);
  const auto number = [&] {
    // Of every size, and the borders themselves.
    const auto n = static_cast<std::int64_t>(random()) >> (random() % 64);
    return random() % 8 == 0 ? (random() % 2 ? INT64_MAX : INT64_MIN) : n;
  };
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t a = number(), b = number();
    const __int128 x = a, y = b;
    CAPTURE(a, b);
    REQUIRE(is(Checked(a) + b, x + y));
    REQUIRE(is(Checked(a) - b, x - y));
    REQUIRE(is(Checked(a) * b, x * y));
    if (b != 0) {
      REQUIRE(is(Checked(a) / b, x / y));
      if (!(a == INT64_MIN && b == -1)) REQUIRE(is(Checked(a) % b, x % y));
    }
  }
  CHECK_FALSE((Checked(1) / 0).fits());
  CHECK_FALSE((Checked(1) % 0).fits());
}

TEST_CASE("what does not fit stays so in all that is computed from it") {
  const Checked lost = Checked(INT64_MAX) + 1;
  CHECK_FALSE((lost - 1).fits());
  CHECK_FALSE((lost * 0).fits());
  CHECK_FALSE((Checked(3) - lost).fits());
  CHECK_FALSE(lost.within(INT64_MIN, INT64_MAX));
  CHECK(lost.value_or(7) == 7);
  CHECK_FALSE(Checked(~std::uint64_t{0}).fits());
  CHECK(Checked(~std::uint32_t{0}).value() == 4294967295);
}

TEST_CASE("a checked product with a factor of zero is zero, however large the others") {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  CHECK(checked_product(std::vector<std::int64_t>{}).value() == 1);
  CHECK(checked_product(std::vector<std::int64_t>{large, 1 << 20}).value() == large << 20);
  CHECK_FALSE(checked_product(std::vector<std::int64_t>{large, large}).fits());
  CHECK(checked_product(std::vector<std::int64_t>{large, large, 0}).within(0, 0));
}

TEST_CASE("rounding up near the largest number does not wrap") {
  CHECK(checked_align_up(17, 16).value() == 32);
  CHECK(checked_align_up(32, 16).value() == 32);
  CHECK_FALSE(checked_align_up(INT64_MAX - 3, 16).fits());
}
