// Who is ordered after whom: barriers, fences, asynchronous operations, snapshots.
#include "runtime/race/engine.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "palladium/error.hpp"
#include "runtime/race/shadow.hpp"

using namespace palladium::race;

namespace {

constexpr auto generic = Proxy::generic, async = Proxy::async;
constexpr auto reads = Kind::read, writes = Kind::write, updates = Kind::atomic;

/// Two threads, an asynchronous unit and 64 bytes.
struct Scene {
  explicit Scene(bool strict = true) : engine({.strict_fences = strict}) {}

  std::optional<Race> access(Agent a, Kind kind, Proxy proxy = generic, std::uint32_t tag = 0) {
    return shadow.access(0, 16, {a, kind, proxy, tag});
  }
  /// From a barrier at which `from` arrives and on which `to` waits.
  void pass(Agent from, Agent to) { engine.acquire(to, engine.release(from)); }
  /// An operation that thread `issuer` issues.
  std::optional<Race> issue(Agent issuer, Kind kind, std::uint32_t tag = 0) {
    engine.restart(unit, engine.release(issuer));
    return access(unit, kind, async, tag);
  }

  Engine engine;
  Shadow shadow{engine, 64};
  const Agent a = engine.add_agent(), b = engine.add_agent(), unit = engine.add_agent();
};

}  // namespace

TEST_CASE("accesses of one thread never race") {
  Scene s;
  for (const Kind kind : {writes, reads, updates, writes, updates, reads, writes})
    CHECK_FALSE(s.access(s.a, kind));
}

TEST_CASE("accesses race where one is a write and nothing orders them") {
  for (const Kind first : {reads, writes, updates}) {
    for (const Kind second : {reads, writes, updates}) {
      CAPTURE(int(first), int(second));
      Scene s;
      CHECK_FALSE(s.access(s.a, first, generic, 7));
      const auto race = s.access(s.b, second, generic, 9);
      const bool expected = first == writes || second == writes || first != second;
      REQUIRE(race.has_value() == expected);
      if (race) {
        CHECK(race->earlier.agent == s.a);
        CHECK(race->earlier.kind == first);
        CHECK(race->earlier.tag == 7);
        CHECK(race->later.agent == s.b);
        CHECK(race->later.tag == 9);
        CHECK_FALSE(race->missing_fence);
      }
    }
  }
}

TEST_CASE("what was released and acquired is ordered, what came later is not") {
  Scene s;
  s.access(s.a, writes);
  const Snapshot released = s.engine.release(s.a);
  SECTION("before") {
    s.engine.acquire(s.b, released);
    CHECK_FALSE(s.access(s.b, writes));
  }
  SECTION("after") {
    s.access(s.a, writes);
    s.engine.acquire(s.b, released);
    CHECK(s.access(s.b, reads));
  }
  SECTION("a read after") {
    s.access(s.a, reads);
    s.engine.acquire(s.b, released);
    CHECK_FALSE(s.access(s.b, reads));
    CHECK(s.access(s.b, writes));
  }
}

TEST_CASE("knowledge is passed on") {
  Scene s;
  const Agent c = s.engine.add_agent();
  s.access(s.a, writes);
  s.pass(s.a, s.b);
  s.pass(s.b, c);
  CHECK_FALSE(s.access(c, writes));
  CHECK(s.access(s.a, reads));
}

TEST_CASE("a barrier joins what arrives") {
  Engine engine;
  Shadow shadow(engine, 4096);
  constexpr std::uint32_t threads = 100;
  for (std::uint32_t t = 0; t < threads; ++t) engine.add_agent();
  Snapshot arrived;
  for (std::uint32_t t = 0; t < threads; ++t) {
    CHECK_FALSE(shadow.access(16 * t, 16, {t, writes}));
    arrived = engine.join(arrived, engine.release(t));
  }
  for (std::uint32_t t = 0; t < threads; ++t) {
    engine.acquire(t, arrived);
    CHECK_FALSE(shadow.access(16 * ((t + 1) % threads), 16, {t, reads}));
  }
  CHECK(shadow.access(0, 16, {5, writes}));
}

TEST_CASE("a generic write needs the writer's fence to be seen asynchronously") {
  Scene s;
  CHECK_FALSE(s.access(s.a, writes, generic, 3));
  SECTION("none") {
    s.pass(s.a, s.b);
    const auto race = s.issue(s.b, reads, 4);
    REQUIRE(race);
    CHECK(race->missing_fence);
    CHECK(race->earlier.tag == 3);
    CHECK(race->later.agent == s.unit);
    CHECK(race->later.proxy == async);
  }
  SECTION("none, and it is overwritten") {
    s.pass(s.a, s.b);
    REQUIRE(s.issue(s.b, writes));
  }
  SECTION("before the barrier") {
    s.engine.fence_async(s.a);
    s.pass(s.a, s.b);
    CHECK_FALSE(s.issue(s.b, reads));
  }
  SECTION("before the write") {
    s.engine.fence_async(s.a);
    s.access(s.a, writes);
    s.pass(s.a, s.b);
    CHECK(s.issue(s.b, reads));
  }
  SECTION("of another thread") {
    s.pass(s.a, s.b);
    s.engine.fence_async(s.b);
    const auto race = s.issue(s.b, reads);
    REQUIRE(race);
    CHECK(race->missing_fence);
  }
  SECTION("of the issuing thread, for its own write") {
    s.engine.fence_async(s.a);
    CHECK_FALSE(s.issue(s.a, reads));
  }
  SECTION("fenced but not ordered") {
    s.engine.fence_async(s.a);
    const auto race = s.issue(s.b, reads);
    REQUIRE(race);
    CHECK_FALSE(race->missing_fence);
  }
}

TEST_CASE("a relaxed fence counts for all that its thread knows") {
  Scene s(false);
  s.access(s.a, writes);
  SECTION("after the barrier") {
    s.pass(s.a, s.b);
    s.engine.fence_async(s.b);
    CHECK_FALSE(s.issue(s.b, reads));
  }
  SECTION("before the barrier") {
    s.engine.fence_async(s.b);
    s.pass(s.a, s.b);
    CHECK(s.issue(s.b, reads));
  }
}

TEST_CASE("an atomic needs a fence to be seen asynchronously, a read does not") {
  Scene s;
  SECTION("atomic") {
    s.access(s.a, updates);
    const auto race = s.issue(s.a, reads);
    REQUIRE(race);
    CHECK(race->missing_fence);
  }
  SECTION("read") {
    s.access(s.a, reads);
    CHECK_FALSE(s.issue(s.a, writes));
  }
}

TEST_CASE("an asynchronous write is seen by who waits for it, without a fence") {
  Scene s;
  CHECK_FALSE(s.issue(s.a, writes));
  const Snapshot complete = s.engine.release(s.unit);
  SECTION("by the waiting thread") {
    s.engine.acquire(s.b, complete);
    CHECK_FALSE(s.access(s.b, reads));
  }
  SECTION("by an asynchronous reader") {
    s.engine.acquire(s.b, complete);
    s.engine.restart(s.unit, s.engine.release(s.b));
    CHECK_FALSE(s.access(s.unit, reads, async));
  }
  SECTION("not by its issuer without waiting") { CHECK(s.access(s.a, reads)); }
  SECTION("not by another thread") { CHECK(s.access(s.b, writes)); }
}

TEST_CASE("the completion of an operation carries its issuer's knowledge, `released` does not") {
  for (const bool all : {true, false}) {
    CAPTURE(all);
    Scene s;
    CHECK_FALSE(s.shadow.access(32, 16, {s.a, writes}));
    CHECK_FALSE(s.issue(s.a, writes));
    s.engine.acquire(s.b, all ? s.engine.release(s.unit) : s.engine.released(s.unit));
    CHECK_FALSE(s.access(s.b, reads));
    CHECK(s.shadow.access(32, 16, {s.b, reads}).has_value() == !all);
  }
}

TEST_CASE("a unit's new operation does not complete its old one") {
  Scene s;
  CHECK_FALSE(s.issue(s.a, writes));  // nobody waits for it
  s.engine.restart(s.unit, s.engine.release(s.b));
  CHECK_FALSE(s.shadow.access(32, 16, {s.unit, writes, async}));
  s.engine.acquire(s.b, s.engine.release(s.unit));
  CHECK_FALSE(s.shadow.access(32, 16, {s.b, reads}));
  const auto race = s.access(s.b, reads);
  REQUIRE(race);
  CHECK(race->earlier.agent == s.unit);
}

TEST_CASE("a unit's old operations stay known to who waited for them") {
  Scene s;
  CHECK_FALSE(s.issue(s.a, writes));
  s.engine.acquire(s.b, s.engine.released(s.unit));
  for (int i = 0; i < 5; ++i) {
    s.engine.restart(s.unit, s.engine.release(i % 2 == 0 ? s.a : s.b));
    CHECK_FALSE(s.shadow.access(32, 16, {s.unit, reads, async}));
  }
  CHECK_FALSE(s.access(s.b, reads));
  CHECK(s.access(s.a, reads));
}

TEST_CASE("an operation of a warpgroup is checked with what each of its warps knows") {
  Scene s;
  const Agent c = s.engine.add_agent(), matrix = s.engine.add_agent();
  s.access(s.a, writes);
  s.engine.fence_async(s.a);
  s.pass(s.a, s.b);
  const std::vector<Agent> issuers = {s.b, c};
  SECTION("one of them does not wait") {
    const auto race = s.shadow.access(0, 16, {matrix, reads, async}, issuers);
    REQUIRE(race);
    CHECK(race->earlier.agent == s.a);
  }
  SECTION("all wait") {
    s.pass(s.a, c);
    CHECK_FALSE(s.shadow.access(0, 16, {matrix, reads, async}, issuers));
    s.engine.acquire(s.a, s.engine.released(matrix));
    CHECK_FALSE(s.access(s.a, writes));
  }
  SECTION("they know it only later") {
    const std::vector<Snapshot> known = {s.engine.release(s.b), s.engine.release(c)};
    s.pass(s.a, c);
    CHECK(s.shadow.access(0, 16, {matrix, reads, async}, known));
  }
}

TEST_CASE("equal knowledge is one snapshot") {
  Scene s;
  CHECK(s.engine.release(s.a) == Snapshot{});
  s.access(s.a, writes);
  const Snapshot a = s.engine.release(s.a);
  CHECK(a != Snapshot{});
  CHECK(s.engine.join(a, Snapshot{}) == a);
  CHECK(s.engine.join(Snapshot{}, a) == a);
  CHECK(s.engine.join(a, a) == a);
  s.engine.acquire(s.b, a);
  const Snapshot b = s.engine.release(s.b);
  CHECK(s.engine.release(s.b) == b);
  s.engine.acquire(s.unit, b);
  CHECK(s.engine.release(s.unit) == b);
  CHECK(s.engine.join(b, s.engine.release(s.unit)) == b);
}

TEST_CASE("who knows a snapshot is told") {
  Scene s;
  s.access(s.a, writes);
  const Snapshot a = s.engine.release(s.a);
  CHECK(s.engine.knows(s.a, a));
  CHECK_FALSE(s.engine.knows(s.b, a));
  s.access(s.b, reads);
  const Snapshot both = s.engine.join(a, s.engine.release(s.b));
  CHECK_FALSE(s.engine.knows(s.a, both));
  s.engine.acquire(s.b, a);
  CHECK(s.engine.knows(s.b, both));
  CHECK(s.engine.knows(s.unit, Snapshot{}));
}

TEST_CASE("thousands of agents know each other") {
  Engine engine;
  Shadow shadow(engine, 16 * 5000);
  Snapshot everybody;
  for (std::uint32_t a = 0; a < 5000; ++a) {
    engine.add_agent();
    CHECK_FALSE(shadow.access(16 * a, 16, {a, writes}));
    everybody = engine.join(everybody, engine.release(a));
  }
  engine.acquire(17, everybody);
  CHECK_FALSE(shadow.access(0, 16 * 5000, {17, writes}));
  const auto race = shadow.access(0, 16 * 5000, {4999, writes});
  REQUIRE(race);
  CHECK(race->offset == 0);
  CHECK(race->bytes == 16 * 5000);
}

TEST_CASE("snapshots that nobody needs are forgotten") {
  Scene s;
  s.access(s.a, writes);
  Snapshot kept = s.engine.release(s.a), same = kept;
  s.pass(s.a, s.b);
  for (int i = 0; i < 1000; ++i) {
    s.access(s.a, writes);
    s.engine.join(s.engine.release(s.a), s.engine.release(s.b));
  }
  CHECK(s.engine.snapshots() > 1000);
  const std::vector<Snapshot*> needed = {&kept, &same};
  s.engine.forget_all_but(needed);
  CHECK(s.engine.snapshots() < 10);
  CHECK(kept == same);
  CHECK(s.engine.knows(s.b, kept));
  CHECK_FALSE(s.engine.knows(s.unit, kept));
  CHECK(s.access(s.b, reads));
  s.pass(s.a, s.b);
  CHECK_FALSE(s.access(s.b, writes));
}

TEST_CASE("after a reset nothing is known") {
  Scene s;
  s.access(s.a, writes);
  s.engine.release(s.a);
  s.engine.reset();
  s.shadow.clear();
  CHECK(s.engine.agents() == 0);
  const Agent c = s.engine.add_agent(), d = s.engine.add_agent();
  CHECK_FALSE(s.access(c, writes));
  CHECK(s.access(d, writes));
}

TEST_CASE("agents and snapshots that do not exist are refused") {
  Scene s;
  CHECK_THROWS_AS(s.engine.release(9), palladium::InternalError);
  CHECK_THROWS_AS(s.engine.acquire(s.a, {100}), palladium::InternalError);
  CHECK_THROWS_AS(s.engine.join({0}, {100}).id + s.engine.join({1}, {100}).id,
                  palladium::InternalError);
  CHECK_THROWS_AS(s.shadow.access(0, 16, {9, reads}), palladium::InternalError);
  CHECK_THROWS_AS(s.shadow.access(60, 16, {s.a, reads}), palladium::InternalError);
  CHECK_THROWS_AS(s.shadow.access(~std::size_t{0}, 16, {s.a, reads}), palladium::InternalError);
}
