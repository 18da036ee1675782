#include "runtime/race/writer_map.hpp"

#include <catch2/catch_test_macros.hpp>

#include "palladium/error.hpp"

using palladium::race::Write;
using palladium::race::WriterMap;

TEST_CASE("writes of one program to one element never conflict") {
  WriterMap map(10000);
  CHECK_FALSE(map.record(0, 10000, {.program = 3, .tag = 1}));
  CHECK_FALSE(map.record(2047, 2, {.program = 3, .tag = 2}));
  REQUIRE(map.writer(2048));
  CHECK(map.writer(2048)->tag == 2);
  CHECK(map.writer(2049)->tag == 1);
}

TEST_CASE("two programs that write one element are found, with both writes") {
  WriterMap map(10000);
  CHECK_FALSE(map.record(0, 5000, {.program = 0, .tag = 11}));
  CHECK_FALSE(map.record(5001, 4999, {.program = 1, .tag = 12}));
  auto conflict = map.record(4998, 10, {.program = 1, .tag = 13});
  REQUIRE(conflict);
  CHECK(conflict->element == 4998);
  CHECK(conflict->first.program == 0);
  CHECK(conflict->first.tag == 11);
  CHECK(conflict->second.program == 1);
  CHECK(conflict->second.tag == 13);
  CHECK(map.writer(4999)->program == 0);
  CHECK(map.writer(5000)->program == 1);
}

TEST_CASE("a huge array costs only the pages that are written") {
  WriterMap map(std::size_t{1} << 33);
  CHECK_FALSE(map.record((std::size_t{1} << 33) - 1, 1, {.program = 0, .tag = 0}));
  CHECK(map.record((std::size_t{1} << 33) - 1, 1, {.program = 1, .tag = 0}));
  CHECK_FALSE(map.writer(0));
}

TEST_CASE("elements that an array does not have are refused") {
  WriterMap map(8);
  CHECK_THROWS_AS(map.record(8, 1, {}), palladium::InternalError);
  CHECK_THROWS_AS(map.record(1, ~std::size_t{0}, {}), palladium::InternalError);
  CHECK_FALSE(map.record(8, 0, {}));
}
