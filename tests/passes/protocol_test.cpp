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
#include "tests/support/folder.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace protocols {
namespace {

using lowered::Statement;
using lowered::Statements;
using Verdict = lowered::Protocol::Verdict;

lowered::Program on(const graph::Graph& g, int compute_capability) {
  return cuda::lower(g, {.compute_capability = compute_capability});
}

struct Choice {
  std::optional<bool> specialize = {};
  bool persistent = false;
  int warps = 4, stages = 3, iterations = 12;
};

// o = a b, an iteration for each part of K.
graph::Graph product(const Choice& c) {
  const int k = c.iterations * 32, rows = 16 * c.warps;
  const auto body = [=](Ref a, Ref b, Ref o) {
    const Value sum = loop(
        0, c.iterations,
        [&](Index i, Value before) {
          const Slice at = ds(i * 32, 32);
          return before + dot(a[{_, at}], b[{at, _}]);
        },
        zeros({rows, 64}, f32));
    o[_] = sum.astype(f16);
  };
  const auto by_rows = [](Index i) { return Indices{i, 0}; };
  return traced(body,
                {.name = "product",
                 .out_type = ShapeDtype{{4 * rows, 64}, f16},
                 .grid = {4},
                 .in_specs = {{{rows, k}, by_rows},
                              {{k, 64},
                               [](Index) {
                                 return Indices{0, 0};
                               }}},
                 .out_specs = {{{rows, 64}, by_rows}},
                 .compiler_params = {.num_warps = c.warps,
                                     .num_stages = c.stages,
                                     .warp_specialize = c.specialize,
                                     .persistent = c.persistent}},
                {array({4 * rows, k}, f16), array({k, 64}, f16)});
}

// A loop of two products, of which the second one runs while the next iteration computes.
graph::Graph attention(const Choice& c) {
  const int keys = 32 * c.iterations;
  const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
    const auto iteration = [&](Index i, Value top, Value total, Value acc) {
      const Value s = dot(q[_], k[{ds(i * 32, 32), _}], {.trans_b = true});
      const Value next = maximum(top, max(s, {.axis = {1}, .keepdims = true}));
      const Value p = exp2(s - next), shrink = exp2(top - next);
      return carry(next, total * shrink + pl::sum(p, {.axis = {1}, .keepdims = true}),
                   acc * shrink + dot(p.astype(f16), v[{ds(i * 32, 32), _}]));
    };
    auto [top, total, acc] = loop(0, c.iterations, iteration, full({64, 1}, -1e30f, f32),
                                  zeros({64, 1}, f32), zeros({64, 64}, f32));
    (void)top;
    o[_] = (acc / total).astype(f16);
  };
  const auto rows = [](Index i) { return Indices{i, 0}; };
  const auto all = [](Index) { return Indices{0, 0}; };
  return traced(body,
                {.name = "attention",
                 .out_type = ShapeDtype{{256, 64}, f16},
                 .grid = {4},
                 .in_specs = {{{64, 64}, rows}, {{keys, 64}, all}, {{keys, 64}, all}},
                 .out_specs = {{{64, 64}, rows}},
                 .compiler_params = {.num_stages = c.stages,
                                     .warp_specialize = c.specialize,
                                     .persistent = c.persistent}},
                {array({256, 64}, f16), array({keys, 64}, f16), array({keys, 64}, f16)});
}

struct Subject {
  const char* name;
  graph::Graph graph;
  int compute_capability = 90;
};

std::vector<Subject> subjects() {
  return {
      {"copied by threads", product({}), 80},
      {"fetched", product({.specialize = false})},
      {"fetched, persistent", product({.specialize = false, .persistent = true})},
      {"produced", product({.specialize = true})},
      {"produced for two warpgroups", product({.specialize = true, .warps = 8})},
      {"produced, persistent", product({.specialize = true, .persistent = true})},
      {"pipelined", attention({.specialize = true})},
      {"pipelined, persistent", attention({.specialize = true, .persistent = true})},
      {"two rings", attention({.specialize = false})},
  };
}

// ---- faults

using Check = std::function<void(const std::string& fault)>;

// Calls f for each list of statements.
void for_each_list(lowered::Program& l, const std::function<void(Statements&)>& f) {
  const std::function<void(Statements&)> visit = [&](Statements& list) {
    f(list);
    for (Statement& s : list) lowered::for_each_body(s, [&](Statements& body) { visit(body); });
  };
  for (lowered::ProgramBody& b : l.bodies)
    for (Statements* list : {&b.producer, &b.statements}) visit(*list);
}

template <class Kind>
void leave_out_each(lowered::Program& l, const std::string& word, const Check& check) {
  int number = 0;
  for_each_list(l, [&](Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!std::holds_alternative<Kind>(list[i].what)) continue;
      const Statement s = list[i];
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      check("no " + word + " " + std::to_string(number++));
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), s);
    }
  });
}

template <class Kind, class F>
void change_each(lowered::Program& l, const std::string& word, const F& change,
                 const Check& check) {
  int number = 0;
  for_each_list(l, [&](Statements& list) {
    for (Statement& s : list) {
      Kind* const kind = std::get_if<Kind>(&s.what);
      if (kind == nullptr) continue;
      const Kind was = *kind;
      if (change(*kind)) check(word + " " + std::to_string(number++));
      std::get<Kind>(s.what) = was;
    }
  });
}

bool frees(const Statement& s) {
  const auto* const a = std::get_if<lowered::Arrive>(&s.what);
  return a != nullptr && a->bytes == 0;
}
bool is_wait(const Statement& s) { return std::holds_alternative<lowered::Wait>(s.what); }
bool is_advance(const Statement& s) { return std::holds_alternative<lowered::Advance>(s.what); }
// For which somebody waits before.
bool is_begun(const Statement& s) {
  return std::holds_alternative<lowered::Dot>(s.what) ||
         std::holds_alternative<lowered::Copy>(s.what);
}

// Each statement that is `late` stands behind the next one that is `meant`.
template <class Late, class Meant>
void delay_each(lowered::Program& l, const std::string& word, const Late& late, const Meant& meant,
                const Check& check) {
  int number = 0;
  for_each_list(l, [&](Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto at = list.begin() + static_cast<std::ptrdiff_t>(i);
      const auto found = std::find_if(at + 1, list.end(), meant);
      if (!late(*at) || found == list.end()) continue;
      const Statements was = list;
      std::rotate(at, at + 1, found + 1);
      check(word + " " + std::to_string(number++));
      list = was;
    }
  });
}

void for_each_fault(lowered::Program& l, const Check& check) {
  leave_out_each<lowered::Wait>(l, "wait", check);
  leave_out_each<lowered::Arrive>(l, "arrive", check);
  leave_out_each<lowered::Advance>(l, "advance", check);
  leave_out_each<lowered::WaitGroup>(l, "wait for a group", check);
  leave_out_each<lowered::Close>(l, "close", check);
  leave_out_each<lowered::Copy>(l, "copy", check);
  leave_out_each<lowered::Lead>(l, "lead", check);
  change_each<lowered::Arrive>(
      l, "fewer bytes", [](lowered::Arrive& a) { return a.bytes > 0 && (a.bytes -= 16) > 0; },
      check);
  change_each<lowered::Arrive>(
      l, "more bytes", [](lowered::Arrive& a) { return a.bytes > 0 && (a.bytes += 16) > 0; },
      check);
  change_each<lowered::WaitGroup>(
      l, "one more pending", [](lowered::WaitGroup& w) { return ++w.pending > 0; }, check);
  for (const lowered::BarrierId b : l.barriers.ids())
    for (const int more : {1, -1}) {
      l.barriers[b].arrivals += more;
      check(fmt::format("{} arrival for m{}", more > 0 ? "one more" : "one less", b.number()));
      l.barriers[b].arrivals -= more;
    }
  delay_each(l, "late wait", is_wait, is_begun, check);
  delay_each(l, "product behind its slot", is_begun, frees, check);
  delay_each(l, "product behind the next slot", is_begun, is_advance, check);
}

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
    const Choice c{.specialize = random.pick<std::optional<bool>>({std::nullopt, true, false}),
                   .persistent = random.chance(50),
                   .warps = random.pick({4, 4, 8}),
                   .stages = random.between(1, 5),
                   .iterations = random.between(1, 12)};
    const graph::Graph g = random.chance(50) ? product(c) : attention(c);
    const int compute_capability = random.pick({80, 90, 90, 100});
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
    if (name == "produced" || name == "produced for two warpgroups")
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
             Shows({"producer", "grid loop programs", "first iteration of loop",
                    "behind the last iteration", "close bulk_group"}));
}

TEST_CASE("a producer may fill rings of their own in another order than their readers come") {
  lowered::Program l = on(attention({.specialize = true}), 90);
  Statements& producer = l.bodies[0].producer;
  Statements& list = std::get<lowered::Loop>(producer.back().what).body;
  const auto first_end = std::find_if(list.begin(), list.end(), is_advance) + 1;
  REQUIRE(std::find_if(first_end, list.end(), is_advance) + 1 == list.end());
  std::rotate(list.begin(), first_end, list.end());
  CHECK(lowered::to_text(lowered::protocol_of(l)).starts_with("good: "));
}

TEST_CASE("a producer may wait first for the slot that is freed last") {
  // Who has read the second operand of an iteration has read the first one.
  lowered::Program l = on(attention({.specialize = true}), 90);
  Statements& list = std::get<lowered::Loop>(l.bodies[0].producer.back().what).body;
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
  REQUIRE(lowered::defect(l, true) == "");
  const Environment on("PALLADIUM_VERIFY", "1");
  CHECK_THROWS_MATCHES(
      passes::verify_behind(last, l), InternalError,
      Catch::Matchers::MessageMatches(Shows(
          {std::string(last.name) + " leaves a broken program: protocol: wait of line ",
           "deadlock: producer waits for phase 0 of m1 of slot 0", "producer", "consumers"})));
}

TEST_CASE("a schedule shows an iteration, what stands around it, and the verdict") {
  const lowered::Program l = on(product({.specialize = true}), 90);
  CHECK_THAT(lowered::schedule(l),
             Shows({"producer: one thread\nconsumers: 4 warps\nring 0: 3 slots of ",
                    "m0 of each slot of ring 0: the consumers wait for the producer and copies of "
                    "the producer, 1 arrival\nm1",
                    "the producer waits for the consumers, 1 arrival\n", "iteration 3 of 5",
                    "producer", "consumers", "waits for phase 0 of m1 of slot 0",
                    "waits for phase 1 of m0 of slot 0", "begins a product",
                    "behind, the consumers: ", "waits for all sends", "protocol: good: 5 ways"}));
  CHECK(lowered::schedule(on(product({}), 75)) == "protocol: good: nothing is asynchronous\n");
}

}  // namespace protocols
