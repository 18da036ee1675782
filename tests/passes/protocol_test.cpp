// Who waits for whom: what is shipped and drawn at random waits as it must, and where one wait,
// arrival or step is missing or wrong the steps that lead to the harm are told.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/protocol.hpp"
#include "codegen/lowered/verify.hpp"
#include "codegen/passes/manifest.hpp"
#include "codegen/passes/run.hpp"
#include "palladium/error.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/passes/lowering.hpp"
#include "tests/passes/protocol_subjects.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::test;
using namespace palladium::test::waiting;
using Catch::Matchers::ContainsSubstring;

namespace {

using Verdict = lowered::Protocol::Verdict;

struct Found {
  int faults = 0;
  std::string missed = {};
};

// Each fault has a counterexample that ends at a line of the user's.
Found found_in(lowered::Program& l) {
  Found found;
  for_each_fault(l, [&](const std::string& fault) {
    ++found.faults;
    const lowered::Protocol p = lowered::protocol_of(l);
    if (p.verdict != Verdict::counterexample) {
      found.missed += fault + "\n";
      return;
    }
    INFO(fault << ": " << p.why);
    CHECK(p.by->at.line > 0);
    CHECK(!p.why.empty());
    CHECK(!p.steps.empty());
  });
  return found;
}

}  // namespace

TEST_CASE("who works on a shipped kernel waits as it must") {
  int asynchronous = 0;
  for (const ops::Entry& entry : ops::registry()) {
    const std::vector<ArgType> types(entry.inputs.begin(), entry.inputs.end());
    const graph::Graph g = graph::from_json(entry.factory().lower(types).json());
    for (const int compute_capability : {75, 80, 90, 100}) {
      const lowered::Protocol p = lowered::protocol_of(on(g, compute_capability));
      INFO(entry.name << " on sm_" << compute_capability << ": " << lowered::to_text(p));
      CHECK(p.verdict == Verdict::good);
      asynchronous += p.ways > 0;
    }
  }
  CHECK(asynchronous >= 6);
}

TEST_CASE("who works on a kernel drawn at random waits as it must") {
  for (int seed = 0; seed < 40; ++seed)
    for (const int compute_capability : {80, 90}) {
      const lowered::Protocol p =
          lowered::protocol_of(on(random_kernel(seed, {}).graph, compute_capability));
      INFO("seed " << seed << " on sm_" << compute_capability << ": " << lowered::to_text(p));
      CHECK(p.verdict == Verdict::good);
    }
}

TEST_CASE("who works on products in loops drawn at random waits as it must") {
  Random random(1);
  int asynchronous = 0;
  for (int n = 0; n < 80; ++n) {
    Choice c{.specialize = random.pick<std::optional<bool>>({std::nullopt, true, false}),
             .persistent = random.chance(50),
             .warps = random.pick({4, 4, 8}),
             .stages = random.between(1, 5),
             .iterations = random.between(1, 12)};
    const int compute_capability = random.pick({80, 90, 90, 100});
    if (!c.persistent && compute_capability >= 90)
      c.cluster = random.pick<std::vector<Dim>>({{}, {2, 1}, {1, 2}, {2, 2}, {4, 1}});
    const graph::Graph g = random.chance(50) ? product(c) : attention(c);
    const lowered::Program l = on(g, compute_capability);
    const lowered::Protocol p = lowered::protocol_of(l);
    INFO(n << " on sm_" << compute_capability << ": " << lowered::to_text(p)
           << lowered::to_text(l));
    CHECK(p.verdict == Verdict::good);
    asynchronous += p.ways > 0;
  }
  CHECK(asynchronous == 80);
}

TEST_CASE(
    "a wait, an arrival or a step that is missing, too weak or too late has a counterexample") {
  // The steps of a ring that is unrolled stand in its text: expanding asks no Advance of who reads.
  const std::string unrolled = "no advance";
  // A send that is not made waits for nobody: somebody else misses it.
  const std::string sent = "no copy";
  // Of the last iteration nobody waits for the slot any more, but in front of the next program.
  const std::string last_slot = "no arrive 6\nno advance 5\n";
  const auto missed = [&](const std::string& name) -> std::string {
    if (name == "copied by threads") return "";
    if (name == "fetched") return unrolled + " 0\n" + sent + " 0\n";
    if (name == "fetched, persistent") return sent + " 0\n";
    if (name == "produced" || name == "produced for two warpgroups" ||
        name == "produced, one operand shared" || name == "produced, both shared")
      return unrolled + " 1\n" + sent + " 2\n";
    if (name == "produced, persistent") return sent + " 2\n";
    if (name == "pipelined") return last_slot + sent + " 3\n";
    if (name == "pipelined, persistent") return sent + " 3\n";
    return sent + " 1\n";
  };
  int faults = 0;
  for (const Subject& s : subjects()) {
    lowered::Program l = on(s.graph, s.compute_capability);
    INFO(s.name << "\n" << lowered::to_text(l));
    REQUIRE(lowered::protocol_of(l).verdict == Verdict::good);
    const Found found = found_in(l);
    CHECK(found.missed == missed(s.name));
    faults += found.faults;
  }
  CHECK(faults > 300);
}

TEST_CASE("what is made for loops that go on, stand in others and are pipelined is what is tried") {
  const auto text = [](const Choice& c, bool two) {
    return lowered::to_text(on(two ? attention(c) : product(c), 90));
  };
  CHECK_THAT(text({.specialize = true}, false), ContainsSubstring("over the slots of ring 0"));
  CHECK_THAT(text({.specialize = true, .persistent = true}, true),
             Shows({"grid loop programs", "first iteration of loop", "behind the last iteration",
                    "close bulk_group", "producer"}));
}

// What the producer's loop does.
static Statements& produced(lowered::Program& l) {
  const auto elected = std::ranges::find_if(
      l.bodies[0].agents[1].statements,
      [](const Statement& s) { return std::holds_alternative<lowered::Elected>(s.what); });
  Statements& all = std::get<lowered::Elected>(elected->what).body;
  return std::get<lowered::Loop>(all.back().what).body;
}

TEST_CASE("a producer may fill rings of their own in another order than their readers come") {
  lowered::Program l = on(attention({.specialize = true}), 90);
  Statements& list = produced(l);
  const auto first_end = std::find_if(list.begin(), list.end(), is_advance) + 1;
  REQUIRE(std::find_if(first_end, list.end(), is_advance) + 1 == list.end());
  std::rotate(list.begin(), first_end, list.end());
  CHECK(lowered::to_text(lowered::protocol_of(l)).starts_with("good: "));
}

TEST_CASE("a producer may wait first for the slot that is freed last") {
  // Who has read the second operand of an iteration has read the first one.
  lowered::Program l = on(attention({.specialize = true}), 90);
  Statements& list = produced(l);
  const auto first = std::find_if(list.begin(), list.end(), is_wait);
  const auto second = std::find_if(first + 1, list.end(), is_wait);
  REQUIRE(second != list.end());
  std::swap(first->what, second->what);
  CHECK(lowered::to_text(lowered::protocol_of(l)).starts_with("good: "));
  // The second alone is waited for before its slot is free.
  std::get<lowered::Wait>(second->what).barrier = std::get<lowered::Wait>(first->what).barrier;
  CHECK(lowered::protocol_of(l).verdict == Verdict::counterexample);
}

TEST_CASE("what happens until it goes wrong is a table by agents, with the user's lines") {
  lowered::Program l = on(product({.specialize = true}), 90);
  std::string text;
  leave_out_each<lowered::Wait>(l, "wait", [&](const std::string& fault) {
    if (fault == "no wait 0") text = lowered::to_text(lowered::protocol_of(l));
  });
  CHECK_THAT(text, Shows({"counterexample, behind these steps: m0 of slot 0 may be told before its "
                          "phase 0 is over, and count for that\n",
                          "line", "producer", "\n   1", "expects 8192 bytes at m0 of slot 0",
                          "begins to fetch", "in slot 0"}));
  CHECK(text.find("consumers") == text.npos);  // who has not come so far
}

TEST_CASE("what was not looked at to its end is not good") {
  lowered::Program l = on(product({.specialize = true}), 90);
  const lowered::Protocol all = lowered::protocol_of(l);
  REQUIRE(all.verdict == Verdict::good);
  for (const std::int64_t most : {std::int64_t{0}, std::int64_t{10}, all.happenings / 2}) {
    const lowered::Protocol p = lowered::protocol_of(l, most);
    CHECK(p.verdict == Verdict::not_explored);
    CHECK(p.ways < all.ways);
    CHECK_THAT(lowered::to_text(p), ContainsSubstring(fmt::format("more than {} things", most)));
  }
  CHECK(lowered::protocol_of(l, all.happenings).verdict == Verdict::good);
}

TEST_CASE("a program in which nothing is asynchronous is good without a look") {
  const lowered::Protocol p = lowered::protocol_of(on(product({}), 75));
  CHECK(p.verdict == Verdict::good);
  CHECK(p.ways == 0);
}

TEST_CASE("whether another program signals a semaphore in time is not known") {
  const lowered::Protocol p = lowered::protocol_of(on(changed_graph_of(R"(kernel waits
  grid
  args[0]: i32[4] in blocks [4]
  outputs[0]: i32[4] in blocks [4]
{ %0: ref block i32[4] %1: ref block i32[4] %2: ref semaphore i32[4]
  %3: i32[] = constant 1
  %4: ref semaphore i32[] = at %2 [1]
  semaphore_wait %4, %3 [1]
  %5: i32[4] = load %0
  store %1, %5
}
)"),
                                                      90));
  CHECK(p.verdict == Verdict::not_explored);
  CHECK_THAT(p.why, ContainsSubstring("semaphore"));
}

TEST_CASE("a pass that leaves a program whose agents wait in vain is refused by its name") {
  lowered::Program l = on(product({.specialize = true}), 90);
  ++l.barriers[lowered::BarrierId(1)].arrivals;
  const passes::Pass& last = passes::chosen_passes().back();
  REQUIRE(lowered::defect(l, {.waits = true, .offsets = true, .order = true}) == "");
  const Environment on("PALLADIUM_VERIFY", "1");
  CHECK_THROWS_MATCHES(
      passes::verify_behind(last, l), InternalError,
      Catch::Matchers::MessageMatches(Shows(
          {std::string(last.name) + " leaves a broken program: protocol: wait of line ",
           "deadlock: consumers waits for phase 1 of m0 of slot 0", "consumers", "producer"})));
}

TEST_CASE("a schedule shows an iteration, what stands around it, and the verdict") {
  const lowered::Program l = on(product({.specialize = true}), 90);
  CHECK_THAT(lowered::schedule(l),
             Shows({"consumers: 4 warps\nproducer: one thread\nring 0: 3 slots of ",
                    "m0 of each slot of ring 0: the consumers wait for the producer and copies of "
                    "the producer, 1 arrival\nm1",
                    "the producer waits for the consumers, 1 arrival\n", "iteration 3 of 5",
                    "producer", "consumers", "waits for phase 0 of m1 of slot 0",
                    "waits for phase 1 of m0 of slot 0", "begins a product",
                    "behind, the consumers: ", "waits for all sends", "protocol: good: 5 ways"}));
  CHECK_THAT(lowered::schedule(on(product({}), 80)),
             Shows({"in front, the threads: ", "iteration 2 of 5",
                    "waits for all copies but the "
                    "last 1",
                    "waits for all its threads", "begins copies to ", "closes a group of copies",
                    "reads ", "protocol: good: "}));
  CHECK(lowered::schedule(on(product({}), 75)) == "protocol: good: nothing is asynchronous\n");
}
