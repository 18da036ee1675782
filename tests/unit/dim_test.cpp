// What becomes known about symbolic dims: values, pins, equalities.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "codegen/base/dim.hpp"

using namespace palladium;

namespace {

struct Symbols {
  Symbols() {
    binding.bind(dim_node(a).symbol, 6);
    binding.bind(dim_node(b).symbol, 6);
    binding.bind(dim_node(c).symbol, 3);
  }
  DimBinding binding;
  Dim a = dim("a"), b = dim("b"), c = dim("c"), free = dim("free");
};

}  // namespace

TEST_CASE("a dim that is read becomes its value, others stay") {
  Symbols s;
  CHECK((s.a + 2 * s.c).value() == 12);
  CHECK(s.binding.resolve(s.a).same(6));
  CHECK(s.binding.resolve(s.c).same(3));
  CHECK(s.binding.resolve(s.b).same(s.b));
  CHECK_THROWS_AS(s.free.value(), CompileError);
}

TEST_CASE("of two dims that are found equal the later becomes the earlier") {
  Symbols s;
  CHECK(s.b == s.a);
  CHECK(s.binding.resolve(s.b).same(s.a));
  CHECK(s.binding.resolve(s.a).same(s.a));
  CHECK(s.binding.resolve(s.b * 2 + 1).same(s.a * 2 + 1));
  // What is read of one is read of both.
  CHECK(s.b.value() == 6);
  CHECK(s.binding.resolve(s.a).same(6));
}

TEST_CASE("a dim that equals an expression becomes that expression") {
  Symbols s;
  CHECK(2 * s.c == s.b);
  CHECK(s.binding.resolve(s.b).same(2 * s.c));
  CHECK(s.a == s.b);
  CHECK(s.binding.resolve(s.a).same(2 * s.c));
  // It is not made of itself.
  CHECK(s.c == s.a - s.c);
  CHECK(s.binding.resolve(s.c).same(3));
}

TEST_CASE("dims that differ, or equal a number, are read") {
  Symbols s;
  CHECK_FALSE(s.a == s.c);
  CHECK(s.binding.resolve(s.a).same(6));
  CHECK(s.binding.resolve(s.c).same(3));
  CHECK(s.b == 6);
  CHECK(s.binding.resolve(s.b).same(6));
}

TEST_CASE("shapes are compared by size where sizes are bound, else by symbol") {
  Symbols s;
  CHECK(Shape{s.a, 4} == Shape{s.b, 4});
  CHECK_FALSE(Shape{s.a, 4} == Shape{s.c, 4});
  CHECK_FALSE(Shape{s.free} == Shape{dim("other")});
  CHECK(Shape{s.free} == Shape{s.free});
  CHECK_FALSE(Shape{s.free} == Shape{s.a});
}

TEST_CASE("symbols without sizes are made equal only where that is required") {
  Symbols s;
  CHECK_THROWS_AS(s.free == s.a, CompileError);
  CHECK(s.free == s.free);
  require_equal(s.a, s.free);
  CHECK(s.binding.resolve(s.free).same(s.a));
  CHECK(s.free.value() == 6);
  require_equal(dim("other"), 8);
  CHECK(dim("other").value() == 8);
  CHECK_THROWS_AS(require_equal(dim("other"), 9), CompileError);
  CHECK_THROWS_AS(require_equal(2 * dim("third"), 9 * dim("fourth")), CompileError);
}

TEST_CASE("extents are counted from either end of a shape") {
  Shape shape{2, 3, 4};
  CHECK(shape[-1] == 4);
  CHECK(shape[-3] == 2);
  shape[-2] = 5;
  CHECK(shape[1] == 5);
  const auto [a, b, c] = shape.unpack<3>();
  CHECK(a == 2);
  CHECK(b == 5);
  CHECK(c == 4);
  CHECK_THROWS_AS(shape.unpack<2>(), CompileError);
  CHECK_THROWS_AS(shape[3], CompileError);
  CHECK_THROWS_AS(shape[-4], CompileError);
  CHECK_THROWS_AS(Shape()[0], CompileError);
}

TEST_CASE(
    "a dim that 64 bits do not hold is refused, of integers at once, of symbols by their sizes") {
  constexpr std::int64_t large = std::int64_t{1} << 40;
  CHECK_THROWS_WITH(Dim(large) * Dim(large),
                    "the dimension 1099511627776 * 1099511627776 is not "
                    "held by 64 bits");
  CHECK_THROWS_AS(Dim(INT64_MAX) + Dim(1), CompileError);
  CHECK_THROWS_AS(Dim(INT64_MIN) / Dim(-1), CompileError);
  CHECK_THROWS_WITH(Dim(~std::uint64_t{0}),
                    "the size 18446744073709551615 is larger than 2^63 - 1");
  CHECK_THROWS_AS(cdiv(1, 0), CompileError);
  CHECK_THROWS_AS(cdiv(~std::uint64_t{0}, 2), CompileError);
  const Dim square = dim_symbol(0) * dim_symbol(0);
  CHECK(evaluate(square, std::vector<std::int64_t>{3}) == 9);
  CHECK_THROWS_AS(evaluate(square, std::vector<std::int64_t>{large}), CompileError);
}

TEST_CASE("a shape of more elements than 64 bits count is refused by name") {
  const Shape shape{1 << 30, 1 << 30, 1 << 30};
  CHECK_THROWS_WITH(shape.size(),
                    "a shape [1073741824,1073741824,1073741824] has more elements "
                    "than 64 bits count");
  CHECK(Shape{1 << 30, 1 << 30, 1 << 30, 0}.size() == 0);
}
