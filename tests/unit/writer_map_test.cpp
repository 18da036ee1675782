#include "runtime/race/writer_map.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>
#include <utility>
#include <vector>

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

TEST_CASE("a write of a part of what was written at once leaves the rest") {
  WriterMap map(200);
  CHECK_FALSE(map.record(0, 200, {.program = 1, .tag = 1}));
  CHECK_FALSE(map.record(70, 2, {.program = 1, .tag = 2}));
  CHECK_FALSE(map.record(199, 1, {.program = 1, .tag = 3}));
  for (std::size_t e = 0; e < 200; ++e) {
    INFO("element " << e);
    CHECK(map.writer(e)->tag == (e == 70 || e == 71 ? 2u : e == 199 ? 3u : 1u));
  }
  const auto part = map.record(100, 3, {.program = 2, .tag = 4});
  REQUIRE(part);
  CHECK(part->element == 100);
  const auto whole = map.record(64, 64, {.program = 2, .tag = 4});
  REQUIRE(whole);
  CHECK(whole->element == 64);
  CHECK(whole->first.tag == 1);
  CHECK_FALSE(map.record(64, 64, {.program = 1, .tag = 5}));
  CHECK(map.writer(71)->tag == 5);
  CHECK(map.next_unwritten(0, 200) == 200);
}

TEST_CASE("elements that nobody wrote are found between others") {
  WriterMap map(300);
  CHECK(map.next_unwritten(0, 300) == 0);
  map.record(0, 128, {.program = 0, .tag = 1});
  CHECK(map.next_unwritten(0, 300) == 128);
  map.record(130, 170, {.program = 1, .tag = 1});
  CHECK(map.next_unwritten(5, 300) == 128);
  CHECK(map.next_unwritten(129, 300) == 129);
  CHECK(map.next_unwritten(130, 300) == 300);
  CHECK(map.next_unwritten(5, 100) == 100);
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

TEST_CASE("a map that is moved keeps its writers") {
  WriterMap map(5000);
  map.record(0, 5000, {.program = 4, .tag = 5});
  WriterMap moved = std::move(map);
  REQUIRE(moved.writer(4999));
  CHECK(moved.writer(4999)->program == 4);
  WriterMap other(3);
  other = std::move(moved);
  CHECK(other.elements() == 5000);
  CHECK(other.record(17, 1, {.program = 5, .tag = 5}));
}

TEST_CASE("programs on several OS threads write their own elements") {
  constexpr std::size_t elements = 1 << 16;
  WriterMap map(elements);
  std::vector<std::thread> threads;
  std::atomic<int> conflicts = 0;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t row = t; row < elements / 64; row += 4)
        conflicts += map.record(64 * row, 64, {.program = t, .tag = 1}).has_value();
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(conflicts == 0);
  for (std::size_t e = 0; e < elements; ++e)
    if (!map.writer(e) || map.writer(e)->program != e / 64 % 4) FAIL("element " << e);
}

TEST_CASE("of several OS threads that write one element all but the first are told") {
  constexpr std::size_t elements = 1 << 15;
  constexpr int writers = 4;
  WriterMap map(elements);
  std::vector<std::atomic<int>> told(elements);
  std::vector<std::thread> threads;
  std::atomic<int> waiting = writers;
  const auto tell = [&](std::size_t first, std::size_t count, std::uint32_t t) {
    if (const auto conflict = map.record(first, count, {.program = t, .tag = 7}))
      told[conflict->element] += conflict->second.program == t && conflict->first.program != t;
  };
  for (std::uint32_t t = 0; t < writers; ++t) {
    threads.emplace_back([&, t] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      // One of them first writes many at once, of which only the first conflict is told.
      for (std::size_t e = 0; e < elements; ++e) {
        if (t == 0 && e % 256 == 0) map.record(e, 64, {.program = t, .tag = 7});
        tell(e, 1, t);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (std::size_t e = 0; e < elements; ++e)
    if (told[e] != writers - 1 || !map.writer(e)) FAIL("element " << e);
}
