// Agents that stand for what threads have seen.
#include <catch2/catch_test_macros.hpp>

#include "runtime/race/engine.hpp"
#include "runtime/race/shadow.hpp"

using namespace palladium::race;

TEST_CASE("race: what witnesses tell goes by ways that order no accesses, and orders none") {
  Engine engine;
  Shadow memory(engine, 16);
  const Agent writer = engine.add_agent(), reader = engine.add_agent(),
              witness = engine.add_witness(), copy = engine.add_agent({}, Proxy::async);
  REQUIRE_FALSE(memory.access(0, 4, {.agent = writer, .kind = Kind::write}));
  const Record seen = engine.record({.agent = witness});
  CHECK_FALSE(engine.view(writer).knows(seen));
  engine.acquire(writer, engine.released(witness));
  CHECK(engine.view(writer).knows(seen));

  const Snapshot all = engine.release(writer);
  engine.restart(copy, all);
  CHECK_FALSE(engine.view(engine.released(copy)).knows(seen));
  CHECK(engine.view(engine.only_async(all)).knows(seen));
  const Snapshot told = engine.only_witnesses(engine.release(copy));
  CHECK(engine.view(told).knows(seen));
  CHECK(engine.only_witnesses(told) == told);
  engine.acquire(reader, told);
  CHECK(engine.knows(reader, told));

  const auto race = memory.access(0, 4, {.agent = reader, .kind = Kind::read});
  REQUIRE(race);
  CHECK(race->earlier.agent == writer);

  // What it sees later is not told yet.
  const Record later = engine.record({.agent = witness});
  CHECK_FALSE(engine.view(reader).knows(later));
}

TEST_CASE("race: a reset engine has no witnesses") {
  Engine engine;
  engine.add_witness();
  engine.reset();
  const Agent thread = engine.add_agent();
  engine.record({.agent = thread});
  CHECK(engine.only_witnesses(engine.release(thread)) == Snapshot{});
}
