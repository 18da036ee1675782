// The timeline of loops made by hand, whose cycles can be counted by hand.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/timeline/timeline.hpp"
#include "tests/passes/protocol_subjects.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Approx;
using lowered::Statement;
using lowered::protocol::Act;
using lowered::protocol::Question;
using lowered::protocol::Step;
using lowered::protocol::Steps;
using pl::_;
using thread::Work;
using timeline::Speeds;

namespace {

// Round numbers: waits and arrivals take no time.
constexpr Speeds plain = {.compute_capability = 90,
                          .device = "paper",
                          .ghz = 2,
                          .wgmma_columns = 2,
                          .wgmma_latency = 50,
                          .l2_bytes = 64,
                          .copy_bytes = 64,
                          .device_bytes = 16,
                          .copy_latency = 300,
                          .special_cycles = 8,
                          .operation_latency = 4};

// A ring of slots that a producer fills, and a product of each by so many warpgroups, of which one
// may still be under way in the next iteration; or threads alone.
class Loop {
 public:
  Loop(int slots, int warpgroups, int iterations) : warpgroups_(warpgroups) {
    m_.program = &l_;
    m_.detail = lowered::protocol::Detail::statements;
    loop_ = {.kind = Step::Kind::loop,
             .question = {Question::Of::axis, 0},
             .bodies = {{}},
             .counts = {iterations},
             .trips = iterations};
    if (slots > 0) add_ring(slots);
  }

  // Of a warpgroup, in cycles of the tensor cores.
  Loop& multiplied(double cycles, int pending) {
    Steps body;
    body.push_back(step({.kind = Act::Kind::wait, .barrier = full_}));
    body.push_back(step({.kind = Act::Kind::product}, {.wgmma_columns = 2 * cycles}));
    body.push_back(step({.kind = Act::Kind::wait_group,
                         .pending = pending,
                         .group = device::Completion::wgmma_group}));
    body.push_back(step({.kind = Act::Kind::arrive, .barrier = empty_, .back = pending}));
    body.push_back(advance());
    return add("consumers", warpgroups_, std::move(body));
  }
  Loop& fetched(std::int64_t bytes) {
    Steps body;
    body.push_back(step({.kind = Act::Kind::wait, .barrier = empty_}));
    body.push_back(step({.kind = Act::Kind::expect, .barrier = full_, .bytes = bytes}));
    body.push_back(step({.kind = Act::Kind::copy, .barrier = full_, .bytes = bytes}));
    body.push_back(advance());
    return add("producer", 1, std::move(body), true);
  }
  Loop& computed(Work work) {
    Steps body;
    body.push_back(step({}, std::move(work)));
    return add("threads", warpgroups_, std::move(body));
  }

  Timeline::Loop of(const Speeds& speeds = plain, int blocks = 1) const {
    const timeline::Costs costs(l_, works_, speeds);
    Timeline t = timeline::timeline_of(m_, costs, blocks);
    INFO(t.unknown);
    REQUIRE(t.loops.size() == 1);
    return t.loops[0];
  }
  /// Of a call in which the loop goes round so often and so many blocks come to a multiprocessor.
  double microseconds(std::optional<std::int64_t> trips, std::int64_t of_each, int blocks = 1) {
    for (Steps& steps : m_.steps) steps[0].trips = trips;
    const timeline::Costs costs(l_, works_, plain);
    return timeline::timeline_of(m_, costs, blocks, of_each).microseconds;
  }
  double cycles(const Speeds& speeds = plain, int blocks = 1) const {
    return of(speeds, blocks).cycles;
  }

 private:
  void add_ring(int slots) {
    const lowered::RingId ring = l_.rings.add({.slots = slots, .fetched = true});
    l_.storages.add({.shape = {slots}});
    l_.storages.add({.shape = {slots}});
    full_ = l_.barriers.add({.storage = lowered::StorageId(0), .ring = ring});
    empty_ =
        l_.barriers.add({.storage = lowered::StorageId(1), .ring = ring, .arrivals = warpgroups_});
    l_.rings[ring].empty_barriers = empty_;
    m_.first_barrier = lowered::Table<lowered::BarrierId, int>(2);
    m_.first_barrier[empty_] = slots;
    m_.barriers = 2 * slots;
  }
  Step step(Act act, Work work = {}) {
    act.by = &statements_.emplace_back(
        Statement{.what = lowered::Close{},
                  .at = {},
                  .id = lowered::StatementId(static_cast<int>(statements_.size()))});
    works_[act.by->id.number()] = work;
    return {.kind = Step::Kind::act, .by = act.by, .act = act};
  }
  Step advance() { return {.kind = Step::Kind::advance, .ring = lowered::RingId(0)}; }
  Loop& add(std::string name, int warpgroups, Steps body, bool is_one_thread = false) {
    Step loop = loop_;
    statements_.emplace_back();
    loop.by = &statements_.back();
    loop.bodies[0] = std::move(body);
    m_.agents.push_back(
        {.name = std::move(name), .warpgroups = warpgroups, .is_one_thread = is_one_thread});
    m_.steps.push_back({std::move(loop)});
    return *this;
  }

  int warpgroups_;
  lowered::Program l_;
  lowered::protocol::Model m_;
  Step loop_;
  std::deque<Statement> statements_;
  std::map<int, Work> works_;
  lowered::BarrierId full_, empty_;
};

double share_of(const Timeline::Loop& loop, const std::string& part) {
  for (const Timeline::Use& u : loop.uses)
    if (u.part == part) return u.share;
  return 0;
}

double wait_of(const Timeline::Loop& loop, const std::string& agent) {
  double cycles = 0;
  for (const Timeline::Wait& w : loop.waits)
    if (w.agent == agent) cycles += w.cycles;
  return cycles;
}

}  // namespace

TEST_CASE("a loop of products that are in flight all the time takes what tensor cores take") {
  Loop loop(4, 1, 24);
  const Timeline::Loop found = loop.multiplied(1000, 1).fetched(6400).of();
  CHECK(found.cycles == Approx(1000));
  CHECK(found.bound_by == "tensor cores");
  CHECK(found.fraction == Approx(1));
  CHECK(share_of(found, "TMA") == Approx(0.1));
  // The producer has a slot to fill again when a product is over, and fills it in no time.
  CHECK(wait_of(found, "producer") == Approx(1000));
}

TEST_CASE("a loop that awaits each copy and each product takes both, one behind the other") {
  Loop loop(1, 1, 24);
  const Timeline::Loop found = loop.multiplied(1000, 0).fetched(6400).of();
  CHECK(found.cycles == Approx(6400 / 64 + 300 + 1000 + 50));
  CHECK(found.bound_by.starts_with("the wait of the consumers for "));
  CHECK(wait_of(found, "consumers") == Approx(found.cycles));
  CHECK(found.fraction == Approx(1000 / 1450.0));
}

TEST_CASE("a loop whose copies take longer than its products takes what they take") {
  Loop loop(8, 1, 32);
  const Timeline::Loop found = loop.multiplied(60, 1).fetched(64 * 200).of();
  CHECK(found.cycles == Approx(200));
  CHECK(found.fraction == Approx(1));
  CHECK(share_of(found, "L2 cache") == Approx(1));
  CHECK(share_of(found, "tensor cores") == Approx(0.3));
}

TEST_CASE("warpgroups that multiply side by side share the tensor cores") {
  Loop loop(4, 2, 24);
  const Timeline::Loop found = loop.multiplied(500, 1).fetched(6400).of();
  CHECK(found.cycles == Approx(1000));
  CHECK(found.lanes.size() == 5);
  CHECK(found.lanes[0].name == "consumers 0");
  CHECK(found.lanes[2].name == "producer");
  CHECK(found.lanes[3].name == "tensor cores");
  CHECK(found.lanes[4].name == "TMA");
}

TEST_CASE("a loop without products takes its instructions, and the last one's result") {
  Loop loop(0, 1, 24);
  loop.computed({.mix = {.operations = 100}});
  CHECK(loop.cycles() == Approx(104));
  CHECK(share_of(loop.of(), "issue slots") == Approx(100 / 104.0));
  // Each of two blocks has half of the slots, and waits while the other one works.
  CHECK(loop.cycles(plain, 2) > 199.9);
  CHECK(loop.cycles(plain, 2) < 208.5);
  Loop special(0, 1, 24);
  special.computed({.mix = {.special = 10}});
  CHECK(special.cycles() == Approx(80));
}

TEST_CASE("a call takes what all iterations of its blocks take, one block behind the other") {
  // 250 cycles for a product, 50 until its sum is there; 2,000 cycles are a microsecond.
  const auto call = [](std::optional<std::int64_t> trips, std::int64_t of_each, int blocks = 1) {
    Loop loop(4, 1, 40);
    loop.multiplied(250, 0).fetched(64);
    return loop.microseconds(trips, of_each, blocks);
  };
  CHECK((call(80, 1) - call(40, 1)) * 2000 == Approx(40 * 300));
  CHECK(call(40, 1) * 2000 > 40 * 300);
  CHECK(call(40, 1) * 2000 < 40 * 300 + 700);
  CHECK(call(40, 3) == Approx(3 * call(40, 1)));
  // Two blocks side by side hide what each waits for.
  CHECK(call(400, 2, 2) < 0.9 * call(400, 2, 1));
  CHECK(call(400, 3, 2) == Approx(2 * call(400, 2, 2)));
  // What only a call knows.
  CHECK(call({}, 1) == 0);
  CHECK(call(40, 0) == 0);
}

TEST_CASE("the lanes of a timeline show two iterations, and nothing over another") {
  Loop loop(2, 1, 24);
  const Timeline::Loop found = loop.multiplied(300, 0).fetched(6400).of();
  for (const Timeline::Lane& lane : found.lanes) {
    double last = 0;
    for (const Timeline::Span& s : lane.spans) {
      CHECK(s.begin >= last - 1e-6);
      CHECK(s.end > s.begin);
      last = s.end;
    }
    CHECK(last <= 2 * found.cycles + 1e-6);
  }
}

TEST_CASE("more slots are never slower, nor is slower memory ever faster") {
  for (const double product : {40.0, 150.0, 700.0})
    for (const std::int64_t bytes : {1024, 8192, 49152})
      for (const int pending : {0, 1}) {
        double before = 1e30;
        for (int slots = 1 + pending; slots <= 7; ++slots) {
          const double now =
              Loop(slots, 2, 4 * slots + 12).multiplied(product, pending).fetched(bytes).cycles();
          INFO(product << " cycles, " << bytes << " bytes, " << slots << " slots");
          CHECK(now <= before * 1.0001);
          before = now;
        }
        before = 1e30;
        for (const double speed : {4.0, 16.0, 46.0, 64.0}) {
          Speeds speeds = plain;
          speeds.l2_bytes = speed;
          const double now =
              Loop(3, 2, 24).multiplied(product, pending).fetched(bytes).cycles(speeds);
          CHECK(now <= before * 1.0001);
          before = now;
        }
      }
}

TEST_CASE("what the L2 cache has does not wait for what memory brings") {
  // Activations of all programs, and weights that each has for itself: 16,384 bytes of both.
  const auto body = [](Ref x, Ref w, Ref o) {
    const auto add = [&](Index i, Value sum) {
      const Slice now = ds(i * 128, 128);
      return sum + dot(x[{_, now}], w[{_, now}].astype(bf16), {.trans_b = true});
    };
    o[_] = loop(0, 64, add, zeros({64, 128}, f32));
  };
  const graph::Graph g = traced(body,
                                {.name = "k",
                                 .out_type = {{64, 16384}, f32},
                                 .grid = {128},
                                 .in_specs = {{},
                                              {{128, 8192},
                                               [](Index j) {
                                                 return Indices{j, 0};
                                               }}},
                                 .out_specs = {{{64, 128},
                                                [](Index j) {
                                                  return Indices{0, j};
                                                }}}},
                                {array({64, 8192}, bf16), array({16384, 8192}, f8e4m3)});
  const Timeline t = cuda::report(g, {.compute_capability = 90}).timeline;
  REQUIRE(t.loops.size() == 1);
  CHECK(t.loops[0].fraction > 0.95);
  CHECK(share_of(t.loops[0], "memory") > 0.95);
  CHECK(share_of(t.loops[0], "L2 cache") > 0.4);
  const auto lane = [&](const char* name) {
    return std::ranges::count(t.loops[0].lanes, name, &Timeline::Lane::name);
  };
  CHECK(lane("TMA") == 1);
  CHECK(lane("TMA from memory") == 1);
}

// Each program has keys of its own, which it reads for each of its blocks of rows.
TEST_CASE("what a loop reads in each iteration of the one around it is in the L2 cache") {
  const auto timeline_of = [](bool again) {
    const graph::Graph g = traced(
        [=](Ref rows, Ref keys, Ref o) {
          loop(0, 8, [&](Index i) {
            const auto add = [&](Index l, Value sum) {
              const Index first = again ? l * 64 : (i * 8 + l) * 64;
              return sum + dot(rows[{ds(i * 128, 128), ds(l * 64, 64)}], keys[{ds(first, 64), _}]);
            };
            o[{ds(i * 128, 128), _}] = loop(0, 8, add, zeros({128, 128}, f32)).astype(f16);
          });
        },
        {.name = "again",
         .out_type = {{128 * 1024, 128}, f16},
         .grid = {128},
         .in_specs = {BlockSpec{{1024, 512},
                                [](Index) {
                                  return Indices{0, 0};
                                }},
                      BlockSpec{{4096, 128},
                                [](Index i) {
                                  return Indices{i, 0};
                                }}},
         .out_specs = {BlockSpec{{1024, 128},
                                 [](Index i) {
                                   return Indices{i, 0};
                                 }}}},
        {array({1024, 512}, f16), array({128 * 4096, 128}, f16)});
    const lowered::Program l = cuda::lower(g, {.compute_capability = 90});
    return timeline::timeline_of(l, cuda::thread_program(l));
  };
  const Timeline again = timeline_of(true), once = timeline_of(false);
  REQUIRE(!again.loops.empty());
  REQUIRE(!once.loops.empty());
  CHECK(share_of(once.loops[0], "memory") > 0.3);
  CHECK(share_of(again.loops[0], "memory") < 0.1);
  CHECK(again.loops[0].cycles < once.loops[0].cycles);
}

TEST_CASE("products in loops and kernels drawn at random have a timeline") {
  Random random(7);
  const auto check = [](const graph::Graph& g, int compute_capability) {
    const Timeline t = cuda::report(g, {.compute_capability = compute_capability}).timeline;
    CHECK(t.unknown == "");
    for (const Timeline::Loop& loop : t.loops) {
      CHECK(loop.cycles > 0);
      CHECK(!loop.bound_by.empty());
      CHECK(loop.fraction <= 1.001);
      for (const Timeline::Use& u : loop.uses) CHECK(u.share <= 1.001);
    }
  };
  for (int n = 0; n < 24; ++n) {
    const waiting::Choice c{
        .specialize = random.pick<std::optional<bool>>({std::nullopt, true, false}),
        .persistent = random.chance(50),
        .warps = random.pick({4, 4, 8}),
        .stages = random.between(1, 5),
        .iterations = random.between(3, 40)};
    INFO("product " << n);
    const int compute_capability = random.pick({80, 90});
    check(random.chance(50) ? waiting::product(c) : waiting::attention(c), compute_capability);
  }
  for (int seed = 0; seed < 24; ++seed) {
    INFO("seed " << seed);
    check(random_kernel(seed, {}).graph, seed % 2 == 0 ? 80 : 90);
  }
}

TEST_CASE("an architecture that nobody has measured has no timeline") {
  lowered::Program l;
  l.machine.compute_capability = 75;
  const Timeline t = timeline::timeline_of(l, thread::Program{});
  CHECK(t.loops.empty());
  CHECK(t.unknown == "how fast the parts of sm_75 are is not known");
}
