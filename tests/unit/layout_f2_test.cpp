#include "codegen/layout/f2.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "codegen/layout/terms.hpp"
#include "tests/support/layouts.hpp"

namespace palladium::layout {
namespace {

Bits random_vectors(Random& random, int count, int bits) {
  Bits vectors;
  for (int i = 0; i < count; ++i) vectors.push_back(random() & ((1u << bits) - 1));
  return vectors;
}

TEST_CASE("a solver finds a sum exactly where there is one", "[layout]") {
  Random random(2);
  for (int n = 0; n < 500; ++n) {
    const Bits vectors = random_vectors(random, pick(random, 0, 7), 7);
    std::set<std::uint32_t> sums;
    for (std::uint32_t c = 0; c < 1u << vectors.size(); ++c) sums.insert(image_of(vectors, c));
    const Solver solver(vectors);
    CHECK(sums.size() == std::size_t{1} << solver.rank());
    CHECK(rank(vectors) == solver.rank());
    for (std::uint32_t target = 0; target < 128; ++target) {
      const auto sum = solver.solve(target);
      REQUIRE(sum.has_value() == sums.contains(target));
      if (sum) REQUIRE(image_of(vectors, *sum) == target);
    }
  }
}

TEST_CASE("dependent vectors take no part in solutions", "[layout]") {
  Solver solver;
  CHECK(solver.add(3));
  CHECK(solver.add(1));
  CHECK_FALSE(solver.add(2));
  CHECK(solver.solve(2) == 0b011u);
  CHECK_FALSE(solver.solve(4).has_value());
}

TEST_CASE("an inverse composes to the identity, and a singular map has none", "[layout]") {
  Random random(3);
  int singular = 0;
  for (int n = 0; n < 500; ++n) {
    const int size = pick(random, 1, 8);
    const Bits columns = random_vectors(random, size, size);
    const auto back = inverse(columns);
    REQUIRE(back.has_value() == (rank(columns) == size));
    singular += !back;
    if (!back) continue;
    Bits identity;
    for (int i = 0; i < size; ++i) identity.push_back(1u << i);
    CHECK(compose(columns, *back) == identity);
    CHECK(compose(*back, columns) == identity);
  }
  CHECK(singular > 0);
}

TEST_CASE("terms of a linear map are its shifts and masks", "[layout]") {
  // Row of the accumulator: (t >> 2 & 7) | (t >> 1 & 48).
  const Bits row{0, 0, 1, 2, 4, 16, 32};
  const Terms terms = terms_of(row);
  CHECK(terms.terms == std::vector<Term>{{0b0011100, -2}, {0b1100000, -1}});
  CHECK(terms.disjoint);
  CHECK_FALSE(terms_of(Bits{1, 1}).disjoint);
  Random random(4);
  for (int n = 0; n < 200; ++n) {
    const Bits columns = random_vectors(random, pick(random, 0, 8), 12);
    const Terms any = terms_of(columns);
    for (std::uint32_t v = 0; v < 1u << columns.size(); ++v) {
      REQUIRE(evaluate(any, v) == image_of(columns, v));
    }
  }
}

TEST_CASE("coordinates as text computes them are those of the layout", "[layout]") {
  Random random(5);
  for (int n = 0; n < 200; ++n) {
    const Layout l = random_layout(random, random_domain(random), n % 2 == 0, random_warps(random));
    const auto list = coordinates(l);
    for (int t = 0; t < l.threads(); t += 1 + n % 3) {
      for (std::int64_t k = 0; k < l.registers(); ++k) {
        const Extents index = l.index(t, k);
        for (int d = 0; d < l.rank(); ++d) REQUIRE(evaluate(list[d], t, k) == index[d]);
      }
    }
    if (n % 2 == 0) {
      for (const Coordinate& c : list) REQUIRE((c.disjoint && c.thread.disjoint));
    }
  }
}

TEST_CASE("a register table is spelt as shifts and masks where it is linear", "[layout]") {
  const auto terms = terms_of_table(std::vector<int>{0, 0, 1, 1, 0, 0, 1, 1});
  REQUIRE(terms.has_value());
  CHECK(terms->terms == std::vector<Term>{{2, -1}});
  CHECK(terms_of_table(std::vector<int>{0, 2, -1, 3, 4, 6}).has_value());  // 1 fits entry 2
  CHECK_FALSE(terms_of_table(std::vector<int>{0, 1, 2, 0}).has_value());
  CHECK_FALSE(terms_of_table(std::vector<int>{1, 0}).has_value());
  CHECK_FALSE(terms_of_table(std::vector<int>{}).has_value());
}

}  // namespace
}  // namespace palladium::layout
