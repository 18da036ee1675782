// What becomes known about symbolic dims: values, pins, equalities.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "codegen/base/dim.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

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

TEST_CASE("a number that all values of a dim are multiples of follows from its symbols") {
  const Dim a = dim_symbol(0), b = dim_symbol(1), c = dim_symbol(2);
  const DimFacts facts{{8, 4}};
  const auto multiple = [&](const Dim& d) { return multiple_of(d, facts); };
  CHECK(multiple(24) == 24);
  CHECK(multiple(-24) == 24);
  CHECK(multiple(0) == 0);
  CHECK(multiple(a) == 8);
  CHECK(multiple(c) == 1);
  CHECK(multiple(a + b) == 4);
  CHECK(multiple(a - 16) == 8);
  CHECK(multiple(a * b) == 32);
  CHECK(multiple(c * 6) == 6);
  CHECK(multiple(a * INT64_MAX) == 8);  // what 64 bits do not hold is not computed
  CHECK(multiple(a / 2) == 4);
  CHECK(multiple(cdiv(a, 8)) == 1);
  CHECK(multiple(a / 3) == 1);
  CHECK(multiple(a / b) == 1);
  CHECK(multiple(a % 6) == 2);
  CHECK(multiple(cdiv(a, 64) * 64) == 64);
}

TEST_CASE("multiples of dims hold for all values of random expressions") {
  test::Random random(7);
  using detail::DimOp;
  int tried = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<Dim> pool{dim_symbol(0), dim_symbol(1), dim_symbol(2), 1, 2, 3, 8, 16, 24};
    for (int k = 0; k < 4; ++k) try {
        const auto op = static_cast<DimOp>(
            random.between(static_cast<int>(DimOp::add), static_cast<int>(DimOp::max)));
        const Dim a = random.pick(pool), b = random.pick(pool);
        pool.push_back(detail::dim_binary(op, a, b));
      } catch (const CompileError&) {
      }
    const std::int64_t values[] = {8 * random.below(9), 4 * random.below(9), random.below(40)};
    std::vector<DimSizes> known, loose;
    for (const std::int64_t v : values) {
      known.push_back(DimSizes::only(v));
      loose.push_back({.most = v + random.below(3)});
    }
    try {
      const std::int64_t value = evaluate(pool.back(), values);
      INFO(to_string(pool.back()));
      const std::int64_t multiple = multiple_of(pool.back(), {{8, 4}});
      REQUIRE((multiple == 0 ? value == 0 : value % multiple == 0));
      REQUIRE(most(pool.back(), known).within(value, value));
      const Checked bound = most(pool.back(), loose);
      if (bound.fits()) REQUIRE(bound.value() >= value);
      ++tried;
    } catch (const CompileError&) {  // divided by zero
    }
  }
  CHECK(tried > 2000);
}

TEST_CASE("the largest value of a dim is known as far as those of its symbols are") {
  const Dim a = dim_symbol(0), b = dim_symbol(1);
  const std::vector<DimSizes> sizes{{.most = 10}, {.least = 2, .most = 4}};
  CHECK(most(a * 3 + b, sizes).value() == 34);
  CHECK(most(a - b, sizes).value() == 8);
  CHECK(most(a / b, sizes).value() == 5);
  CHECK(most(b % a, sizes).fits() == false);  // 0 divides nothing
  CHECK(most(a % b, sizes).value() == 3);
  CHECK_FALSE(most(dim_symbol(2), sizes).fits());
  CHECK_FALSE(most(a * INT64_MAX, sizes).fits());
}

TEST_CASE("what pl::dim is told stands in its handle, and names stay equal") {
  const Dim m = dim("m"), told = dim("m", {.multiple_of = 8, .at_most = 64});
  CHECK(m.same(told));
  CHECK(promised(told).multiple == 8);
  CHECK(promised(told).most == 64);
  CHECK(promised(m).multiple == 1);
  CHECK(promised(dim("n", {.multiple_of = 8, .at_most = 64})).most == 64);
  CHECK_THROWS_WITH(dim("m", {.multiple_of = 0}),
                    ContainsSubstring("dim 'm': .multiple_of is a number from 1, given 0"));
  CHECK_THROWS_WITH(dim("m", {.at_most = -1}),
                    ContainsSubstring("dim 'm': .at_most is a number from 0, given -1"));
}

TEST_CASE("what is known of sizes from two sides holds together") {
  DimSizes s{.multiple = 4, .most = 100};
  s.narrow({.multiple = 6, .least = 3, .most = 50});
  CHECK(s.multiple == 12);
  CHECK(s.least == 3);
  CHECK(s.most == 50);
  s.narrow({.multiple = INT64_MAX});  // their product is not held
  CHECK(s.multiple == 12);
  s.narrow(DimSizes::only(0));
  CHECK(s.multiple == 0);
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
