// Extents as programs agree with the table of expressions.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "codegen/base/dim.hpp"
#include "runtime/call/extent.hpp"

using namespace palladium;
using runtime::Extent;

TEST_CASE("an extent of an integer is that integer and no symbol") {
  const Extent e(Dim(42));
  CHECK(e.is_constant());
  CHECK(e.constant() == 42);
  CHECK(e.symbol() == -1);
  CHECK(e.evaluate(nullptr) == 42);
}

TEST_CASE("an extent of a symbol knows its number") {
  const std::array<std::int64_t, 3> values{5, 6, 7};
  const Extent e(dim_symbol(2));
  CHECK(!e.is_constant());
  CHECK(e.symbol() == 2);
  CHECK(e.evaluate(values.data()) == 7);
}

TEST_CASE("an extent of an expression has the value that the table of expressions gives") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::array<Dim, 3> leaves{dim_symbol(0), dim_symbol(1), Dim(random() % 9 + 1)};
    Dim d = leaves[random() % 3];
    for (int i = 0; i < 6; ++i) {
      const Dim& other = leaves[random() % 3];
      switch (random() % 5) {
      case 0: d = d + other; break;
      case 1: d = other * d; break;
      case 2: d = d - other; break;
      case 3: d = d / other; break;
      case 4: d = d % other; break;
      }
    }
    const std::array<std::int64_t, 2> values{static_cast<std::int64_t>(random() % 1000 + 1),
                                             static_cast<std::int64_t>(random() % 50 + 1)};
    CHECK(Extent(d).evaluate(values.data()) == evaluate(d, values));
  }
}

TEST_CASE("the blocks of an extent are as many as the table of expressions says") {
  for (const std::int64_t size : {1, 2, 3, 64, 100, 1024, 1 << 30}) {
    const Dim blocks = cdiv(dim_symbol(1), size);
    for (const std::int64_t n :
         {std::int64_t{0}, std::int64_t{1}, size - 1, size, size + 1, std::int64_t{1} << 31,
          std::int64_t{INT64_MAX}, std::int64_t{-1}, -size, std::int64_t{INT64_MIN}}) {
      const std::array<std::int64_t, 2> values{7, n};
      INFO(n << " in blocks of " << size);
      const Extent e(blocks);
      if (size > 1) CHECK(e.symbol() == -1);
      CHECK_FALSE(e.is_constant());
      CHECK(e.evaluate(values.data()) == apply(detail::DimOp::cdiv, n, size).value());
      CHECK(e.find(values.data()).within(e.evaluate(values.data()), e.evaluate(values.data())));
      if (n < 0 || n > 1 << 20) continue;
      CHECK(Extent(blocks * dim_symbol(0) + blocks).evaluate(values.data()) ==
            8 * apply(detail::DimOp::cdiv, n, size).value());
    }
  }
}

TEST_CASE("an extent that divides by a symbol of value zero is refused") {
  const std::array<std::int64_t, 1> zero{0};
  CHECK_THROWS_AS(Extent(cdiv(Dim(8), dim_symbol(0))).evaluate(zero.data()), CompileError);
}

TEST_CASE("a dimension of too many operations is refused by the limit") {
  const auto message = Catch::Matchers::ContainsSubstring("more than 128 operations");
  Dim chain = dim("long"), doubled = dim("shared");
  CHECK_THROWS_MATCHES(
      [&] {
        for (int i = 0; i < 100'000; ++i) chain = (chain + 1) * 2;
      }(),
      CompileError, Catch::Matchers::MessageMatches(message));
  CHECK_THROWS_MATCHES(
      [&] {
        for (int i = 0; i < 60; ++i) doubled = doubled * doubled;
      }(),
      CompileError, Catch::Matchers::MessageMatches(message));
  CHECK_FALSE(to_string(doubled).empty());
}

TEST_CASE("an extent that is nested too deeply is refused by name") {
  Dim d = dim("deep");
  for (int i = 0; i < 40; ++i) d = (d + 1) * 2;
  CHECK_THROWS_AS(Extent(d), CompileError);
}

TEST_CASE("an extent that 64 bits do not hold is found not to fit, or refused") {
  const Extent square(dim_symbol(0) * dim_symbol(0));
  const std::array<std::int64_t, 1> small{5}, large{std::int64_t{1} << 32};
  CHECK(square.find(small.data()).value() == 25);
  CHECK_FALSE(square.find(large.data()).fits());
  CHECK_THROWS_AS(square.evaluate(large.data()), CompileError);
}
