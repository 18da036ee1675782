// The text form of layouts, their contract, canonical forms and tiles.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "codegen/layout/constructors.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/layout/transfer.hpp"
#include "palladium/error.hpp"
#include "tests/support/layouts.hpp"

namespace palladium::layout {
namespace {

TEST_CASE("a layout prints as its bits", "[layout]") {
  CHECK(to_string(accumulator({64, 128})) ==
        "dom(64,128) tile(64,8) reg[j1 i8] lane[j2 j4 i1 i2 i4] warp[i16 i32]");
  CHECK(to_string(drop(accumulator({64, 128}), 1)) ==
        "dom(64) tile(64) reg[i8] lane[* * i1 i2 i4] warp[i16 i32]");
  CHECK(to_string(replicated({})) == "dom() tile() reg[] lane[* * * * *] warp[* *]");
}

TEST_CASE("parse reads what to_string prints", "[layout]") {
  Random random(6);
  for (int n = 0; n < 500; ++n) {
    const Layout l = random_layout(random, random_domain(random), n % 2 == 0, random_warps(random));
    REQUIRE(parse(to_string(l)) == l);
  }
  CHECK(parse(to_string(replicated({}))) == replicated({}));
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "no error";
}

TEST_CASE("malformed text is an error that names what was expected where", "[layout]") {
  const std::string lanes = " lane[i1 i2 i4 i8 i16] warp[i32 i64]";
  const auto starts = [](const std::string& text, const std::string& message) {
    const std::string e = error_of(text);
    INFO(e);
    return e.starts_with("layout text: " + message);
  };
  CHECK(error_of("dom(128) tile(128) reg[]" + lanes) == "no error");
  CHECK(starts("", "expected \"dom\" at column 1"));
  CHECK(starts("dom(128 tile(128) reg[]" + lanes, "expected ')' at column 8"));
  CHECK(starts("dom(x) tile(128) reg[]" + lanes, "expected a number at column 5"));
  CHECK(starts("dom(99999999999999999999) tile(1) reg[]", "expected a number at column 5"));
  CHECK(starts("dom(128) tile(100) reg[]" + lanes, "expected tile extents that are powers of two"));
  CHECK(starts("dom(128) tile(64,2) reg[]" + lanes, "expected as many tile extents"));
  CHECK(starts("dom(128) tile(128) reg[]" + lanes + " ", "expected the end at column 61"));
  CHECK(starts("dom(128) tile(128) reg[j1]" + lanes, "expected '*' or the letter of a dimension"));
  CHECK(starts("dom(128) tile(128) reg[i128]" + lanes, "expected an index inside the tile"));
  CHECK(starts("dom(128) tile(128) reg[i1 ]" + lanes, "expected '*' or the letter"));
  CHECK(starts("dom(1,1,1,1,1,1,1,1,1) tile", "expected at most 8 dimensions"));
  CHECK(starts("dom(128) tile(128) reg[*]" + lanes, "malformed layout: a register bit holds"));
  CHECK(starts("dom(128) tile(128) reg[i1]" + lanes, "malformed layout: images are dependent"));
  CHECK(starts("dom(256) tile(256) reg[]" + lanes, "malformed layout: images do not cover"));
  CHECK(starts("dom(128) tile(128) reg[] lane[i1 i2 i4 i8] warp[i32 i64]",
               "malformed layout: five lane bits"));
  CHECK(starts("dom(128) tile(128) reg[] lane[i1 i2 i4 i8 i16] warp[i32]",
               "malformed layout: two to four warp bits"));
  CHECK(starts("dom(1,1) tile(16777216,16777216) reg[] lane[* * * * *] warp[* *]",
               "malformed layout: at most 24 bits"));
}

TEST_CASE("a canonical form is the smallest tile with the same register numbers", "[layout]") {
  CHECK(canonical(operand_a({64, 64}, 16)) == accumulator({64, 64}));
  CHECK(canonical(operand_a({64, 64}, 8)) != accumulator({64, 64}));
  Random random(7);
  int smaller = 0;
  for (int n = 0; n < 500; ++n) {
    const Layout l = random_layout(random, random_domain(random), n % 2 == 0, random_warps(random));
    const Layout c = canonical(l);
    check(c);
    smaller += c.index_bits() < l.index_bits();
    for (int t = 0; t < l.threads(); t += 5) {
      for (std::int64_t k = 0; k < l.registers(); ++k) {
        const Extents index = l.index(t, k);
        if (!l.in_domain(index)) continue;
        REQUIRE(k < c.registers());
        REQUIRE(c.index(t, k) == index);
      }
    }
  }
  CHECK(smaller > 20);
}

TEST_CASE("growing and shrinking a tile keeps every element in its thread", "[layout]") {
  Random random(8);
  for (int n = 0; n < 300; ++n) {
    const Layout l = random_layout(random, random_domain(random), true, random_warps(random));
    std::vector<int> bits = l.tile_bits;
    for (int& b : bits) b = std::min(8, b + pick(random, 0, 2));
    const Layout grown = grow_tile(l, bits);
    check(grown);
    CHECK(same_elements(l, grown));
    for (int d = 0; d < l.rank(); ++d) {
      if (const auto shrunk = shrink_tile(l, d)) {
        check(*shrunk);
        CHECK(same_elements(l, *shrunk));
      }
    }
  }
}

TEST_CASE("widening puts the low memory bits into the low register bits", "[layout]") {
  Random random(9);
  for (int n = 0; n < 300; ++n) {
    const Layout l = random_layout(random, random_domain(random), true, random_warps(random));
    for (const int v : {1, 2, 4, 8}) {
      const Layout wide = widen(l, v);
      check(wide);
      CHECK(wide.domain == l.domain);
      for (int i = 0; 1 << i < v; ++i) CHECK(wide.reg[i] == 1u << i);
    }
  }
  CHECK(widen(accumulator({64, 64}), 2) == accumulator({64, 64}));
  CHECK_THROWS_AS(widen(accumulator({64, 64}), 3), InternalError);
}

TEST_CASE("a huge extent costs nothing but numbers", "[layout]") {
  const std::int64_t million = 1 << 20;
  const Layout l = strided({million * 4096}, 4);
  check(l);
  CHECK(l.registers() == million * 4096 / 128);
  CHECK(l.index(127, l.registers() - 1) == Extents{million * 4096 - 1});
  CHECK(same_elements(l, canonical(l)));
  const auto rows = reshape(l, {4096, million});
  REQUIRE(rows.has_value());
  CHECK(rows->index(127, rows->registers() - 1) == Extents{4095, million - 1});
}

}  // namespace
}  // namespace palladium::layout
