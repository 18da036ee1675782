// Cells of every width, and many readers.
#include "runtime/race/shadow.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

using namespace palladium::race;

namespace {

constexpr auto reads = Kind::read, writes = Kind::write, updates = Kind::atomic;

struct Memory {
  explicit Memory(std::uint32_t threads, std::size_t bytes = 32768) : shadow(engine, bytes) {
    for (std::uint32_t t = 0; t < threads; ++t) engine.add_agent();
  }
  std::optional<Race> access(Agent a, std::size_t offset, std::size_t bytes, Kind kind,
                             std::uint32_t tag = 0) {
    return shadow.access(offset, bytes, {a, kind, Proxy::generic, tag});
  }
  void barrier() {
    Snapshot all;
    for (Agent a = 0; a < engine.agents(); ++a) all = engine.join(all, engine.release(a));
    for (Agent a = 0; a < engine.agents(); ++a) engine.acquire(a, all);
  }
  Engine engine;
  Shadow shadow;
};

}  // namespace

TEST_CASE("neighbouring accesses of every width do not race, overlapping ones do") {
  for (const std::size_t bytes : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 4096, 5000}) {
    for (const std::size_t offset : {0, 1, 2, 4, 7, 8, 15, 16, 31, 4090, 8191}) {
      CAPTURE(bytes, offset);
      Memory m(4);
      CHECK_FALSE(m.access(0, offset, bytes, writes));
      CHECK_FALSE(m.access(1, offset + bytes, bytes, writes));
      if (offset > 0) CHECK_FALSE(m.access(2, 0, offset, writes));
      for (const std::size_t inside : {std::size_t{0}, bytes / 2, bytes - 1}) {
        const auto race = m.access(3, offset + inside, 1, reads);
        REQUIRE(race);
        CHECK(race->earlier.agent == 0);
        CHECK(race->offset == offset + inside);
        CHECK(race->bytes == 1);
      }
      CHECK(m.access(3, offset + bytes, 1, reads)->earlier.agent == 1);
    }
  }
}

TEST_CASE("two threads store the halves and the bytes of one word") {
  Memory m(8);
  CHECK_FALSE(m.access(0, 32, 2, writes));
  CHECK_FALSE(m.access(1, 34, 2, writes));
  CHECK_FALSE(m.access(2, 36, 1, writes));
  CHECK_FALSE(m.access(3, 37, 1, writes));
  CHECK_FALSE(m.access(4, 38, 1, writes));
  CHECK_FALSE(m.access(5, 39, 1, writes));
  CHECK_FALSE(m.access(0, 40, 8, writes));
  CHECK(m.access(6, 35, 1, writes)->earlier.agent == 1);
  CHECK(m.access(6, 38, 1, writes)->earlier.agent == 4);
  m.barrier();
  CHECK_FALSE(m.access(7, 32, 16, writes));
  CHECK_FALSE(m.access(7, 33, 1, reads));
  CHECK(m.access(6, 47, 1, reads)->earlier.agent == 7);
}

TEST_CASE("a race tells all bytes of the later access that raced with the same one") {
  Memory m(3);
  CHECK_FALSE(m.access(0, 4000, 200, writes, 1));
  CHECK_FALSE(m.access(1, 4200, 8, writes, 2));
  const auto race = m.access(2, 3000, 3000, reads, 3);
  REQUIRE(race);
  CHECK(race->offset == 4000);
  CHECK(race->bytes == 200);
  CHECK(race->earlier.tag == 1);
  CHECK(race->later.tag == 3);
}

TEST_CASE("no reader of a cell is forgotten") {
  constexpr std::uint32_t readers = 300;
  for (std::uint32_t late = 0; late < readers; ++late) {
    CAPTURE(late);
    Memory m(readers + 1, 32);
    const Agent writer = readers;
    CHECK_FALSE(m.access(writer, 0, 32, writes));
    m.barrier();
    for (Agent a = 0; a < readers; ++a) CHECK_FALSE(m.access(a, 0, 16, reads, a));
    CHECK_FALSE(m.access(7, 0, 16, reads, 7));
    // All but one have arrived when the writer goes on.
    Snapshot most;
    for (Agent a = 0; a < readers; ++a)
      if (a != late) most = m.engine.join(most, m.engine.release(a));
    m.engine.acquire(writer, most);
    CHECK_FALSE(m.access(writer, 16, 16, writes));
    const auto race = m.access(writer, late % 16, 1, writes);
    REQUIRE(race);
    CHECK(race->earlier.agent == late);
    CHECK(race->earlier.tag == late);
  }
}

TEST_CASE("many readers of a cell are forgotten once a write is ordered after all") {
  Memory m(200, 64);
  for (int round = 0; round < 5; ++round) {
    for (Agent a = 0; a < 200; ++a) CHECK_FALSE(m.access(a, 0, 48, reads));
    m.barrier();
    CHECK_FALSE(m.access(3, 4, 4, writes));
    CHECK_FALSE(m.access(4, 16, 16, writes));
    m.barrier();
    for (Agent a = 0; a < 200; ++a) CHECK_FALSE(m.access(a, 4, 16, reads));
    m.barrier();
  }
}

TEST_CASE("many atomics do not race with each other, but with a plain access") {
  Memory m(100, 64);
  for (int round = 0; round < 2; ++round)
    for (Agent a = 0; a < 99; ++a) CHECK_FALSE(m.access(a, 8, 4, updates));
  CHECK_FALSE(m.access(99, 12, 4, reads));
  CHECK(m.access(99, 8, 4, reads));
  CHECK(m.access(5, 8, 4, reads));
  m.barrier();
  CHECK_FALSE(m.access(6, 8, 4, reads));
  CHECK(m.access(7, 8, 4, updates)->earlier.agent == 6);
}

TEST_CASE("places of equal size are one access") {
  Memory m(3);
  CHECK_FALSE(m.access(0, 1000, 2, writes));
  const std::vector<Snapshot> known = {m.engine.release(1)};
  const std::vector<std::uint32_t> rows = {0, 128, 256, 992, 2000};
  const auto race = m.shadow.access(rows, 32, {1, reads}, known);
  REQUIRE(race);
  CHECK(race->offset == 1000);
  CHECK(race->bytes == 2);
  CHECK(m.access(2, 2031, 1, writes));
  CHECK_FALSE(m.access(2, 2032, 1, writes));
  CHECK_FALSE(m.access(2, 160, 96, writes));
}

TEST_CASE("a cleared memory was accessed by nobody") {
  Memory m(40);
  for (Agent a = 0; a < 40; ++a) {
    CHECK_FALSE(m.access(a, 100, 1, reads));
    CHECK_FALSE(m.access(a, 5000, 1000, updates));
  }
  m.shadow.clear();
  CHECK_FALSE(m.access(0, 0, 32768, writes));
  CHECK(m.access(1, 100, 1, reads));
}

TEST_CASE("nothing is no access") {
  Memory m(2, 64);
  CHECK_FALSE(m.access(0, 0, 64, writes));
  CHECK_FALSE(m.access(1, 64, 0, writes));
  CHECK_FALSE(m.access(1, 3, 0, writes));
}
