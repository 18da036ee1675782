// The contract at the top of graph.hpp: what breaks it is found; and the uses of values.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "codegen/base/dim.hpp"
#include "codegen/graph/uses.hpp"
#include "tests/graph/kernel.hpp"
#include "tests/support/graph_text.hpp"

using namespace palladium;
using namespace palladium::graph;
using Catch::Matchers::ContainsSubstring;

namespace {

// %0 in, %1 out; %2, %3 constants; %4 load; %5 loop { %6 i, %7 carry, %8 max }; %9 get; %10 store
Graph sample() {
  HandMade k({{{8}, f32}}, {{{8}, f32}}, {2});
  k.map(0, [](auto& ids, Builder&) { return std::vector{ids[0]}; });
  const ValueId x = k.b.load(k.refs[0]);
  const ValueId lo = k.b.constant(i32, 0), hi = k.b.constant(i32, 9);
  const RegionId r = k.region([&](Builder& b) {
    b.param(Type::value(i32));
    const ValueId acc = b.param(Type::value(f32, {8}));
    b.yield({b.add(Op::Max, {acc, x})});
  });
  const ValueId loop = k.b.add(Op::Loop, {lo, hi, x}, std::vector<RegionId>{r}, {{1, 1}, 0});
  k.b.store(k.refs[1], k.op(Op::Get, {loop}, {{0}, 0}));
  return k.canonical();
}

Inst& find(Graph& g, Op op) {
  for (Inst& in : g.insts)
    if (in.op == op) return in;
  throw InternalError("no such instruction");
}

}  // namespace

namespace {

// %3 while { %4 carry; %5 lt; yield } { %6 carry, %7 add, yield }, %8 get, %9 gt,
// %10 switch { yield } { %11 neg; yield }, %12 get, %13 store
Graph chosen() {
  HandMade k({{{}, f32}}, {{{}, f32}});
  const ValueId x = k.b.load(k.refs[0]);
  const RegionId condition = k.region([&](Builder& b) {
    b.yield({b.add(Op::Lt, {b.param(Type::value(f32)), x})});
  });
  const RegionId body = k.region([&](Builder& b) {
    b.yield({b.add(Op::Add, {b.param(Type::value(f32)), x})});
  });
  const ValueId loop = k.b.add(Op::While, {x}, std::vector<RegionId>{condition, body});
  const ValueId y = k.op(Op::Get, {loop}, {{0}, 0});
  const RegionId first = k.region([&](Builder& b) { b.yield({y}); });
  const RegionId second = k.region([&](Builder& b) { b.yield({b.add(Op::Neg, {y})}); });
  const ValueId chosen =
      k.b.add(Op::Switch, {k.op(Op::Gt, {y, x})}, std::vector<RegionId>{first, second});
  k.b.store(k.refs[1], k.op(Op::Get, {chosen}, {{0}, 0}));
  return k.canonical();
}

}  // namespace

TEST_CASE("what breaks the contract of a scope is found") {
  const auto scoped = [](const Type& type) {
    HandMade k({{{}, f32}}, {{{}, f32}});
    const RegionId r = k.region([&](Builder& b) {
      const ValueId tmp = b.param(type);
      b.yield({b.load(tmp)});
    });
    const ValueId v = k.b.add(Op::Scoped, {}, std::vector<RegionId>{r});
    k.b.store(k.refs[1], k.op(Op::Get, {v}, {{0}, 0}));
    return k.g;
  };
  CHECK(defect(scoped(Type::ref(f32, {}, Space::smem))) == "");
  CHECK(defect(scoped(Type::ref(f32, {}, Space::gmem))) ==
        "a parameter of a run_scoped is no Ref of shared memory or registers");
  Graph g = scoped(Type::ref(f32, {}, Space::regs));
  find(g, Op::Scoped).regions.push_back(find(g, Op::Scoped).regions[0]);
  CHECK(defect(g) == "a wrong number of regions");
}

TEST_CASE("what breaks the contract of a while or a switch is found") {
  const std::vector<std::pair<std::function<void(Graph&)>, const char*>> cases = {
      {[](Graph& g) { find(g, Op::While).regions.pop_back(); }, "a wrong number of regions"},
      {[](Graph& g) { find(g, Op::Switch).regions.pop_back(); }, "a wrong number of regions"},
      {[](Graph& g) { g[find(g, Op::While).regions[0]].yields.clear(); },
       "the condition of a while does not yield one bool[]"},
      {[](Graph& g) {
         Region& r = g[find(g, Op::While).regions[0]];
         r.yields = r.params;
       },
       "the condition of a while does not yield one bool[]"},
      {[](Graph& g) { g[find(g, Op::While).regions[0]].params.clear(); },
       "a while has 0 parameters instead of 1"},
      {[](Graph& g) { g[find(g, Op::While).regions[1]].yields.clear(); },
       "a region does not yield one value per carry"},
      {[](Graph& g) { g[find(g, Op::Switch).regions[1]].yields.clear(); },
       "the regions of a switch yield differently many"},
      {[](Graph& g) { g[find(g, Op::Switch).regions[0]].yields[0] = find(g, Op::Switch).args[0]; },
       "result 0 of a switch is bool[] in region 0 but f32[] in region 1"},
      {[](Graph& g) {
         for (const RegionId r : find(g, Op::Switch).regions) g[r].yields[0] = ValueId{0};
       },
       "a region yields no value"},
  };
  REQUIRE(defect(chosen()) == "");
  for (const auto& [change, expected] : cases) {
    Graph g = chosen();
    change(g);
    CHECK_THAT(defect(g), ContainsSubstring(expected));
  }
}

TEST_CASE("what breaks the contract is found") {
  const std::vector<std::pair<std::function<void(Graph&)>, const char*>> cases = {
      {[](Graph& g) { find(g, Op::Max).args[0] = ValueId{10}; }, "is used where it is not defined"},
      {[](Graph& g) { find(g, Op::Max).args[0] = ValueId{999}; }, "an operand's id out of range"},
      {[](Graph& g) { find(g, Op::Store).args[1] = g.regions[1].insts[0]; },
       "is used where it is not defined"},
      {[](Graph& g) { find(g, Op::Max).type.dtype = f16; },
       "has type 'f16[8]' instead of 'f32[8]'"},
      {[](Graph& g) { find(g, Op::Get).attr.ints[0] = 1; },
       "get: expected a carry below 1, given 1"},
      {[](Graph& g) { find(g, Op::Loop).regions.clear(); }, "a wrong number of regions"},
      {[](Graph& g) { find(g, Op::Max).regions.push_back(RegionId{1}); },
       "a wrong number of regions"},
      {[](Graph& g) { find(g, Op::Loop).regions[0] = RegionId{0}; }, "two owners share a region"},
      {[](Graph& g) { find(g, Op::Loop).regions[0] = RegionId{99}; }, "a region id out of range"},
      {[](Graph& g) { g.regions[1].yields.clear(); },
       "a region does not yield one value per carry"},
      {[](Graph& g) { g.regions[1].yields[0] = g.regions[1].params[0]; },
       "carry 0 starts as f32[8] but the body yields i32[]"},
      {[](Graph& g) { g.regions[1].params.pop_back(); }, ""},
      {[](Graph& g) { g.regions[0].insts.push_back(g.regions[0].insts[0]); }, "is listed twice"},
      {[](Graph& g) { g.regions[0].insts.push_back(g.regions[0].params[0]); }, "is listed twice"},
      {[](Graph& g) { g.regions[0].yields.push_back(ValueId{0}); }, "a body yields"},
      {[](Graph& g) { g.insts[0].type.shape = {4}; },
       "parameter 0 of a body is ref block f32[4] instead of ref block f32[8]"},
      {[](Graph& g) { g.regions[2].yields.push_back(g.regions[2].params[0]); },
       "the index map of args[0] yields 2 values instead of 1"},
      {[](Graph& g) { g.bodies.clear(); }, "a kernel without a body"},
      {[](Graph& g) { g.bodies[0].warpgroups = 0; }, "warpgroups"},
      {[](Graph& g) { g.bodies[0].num_warps = 12; }, "num_warps is not 4, 8 or 16"},
      {[](Graph& g) { g.bodies[0].num_warps = -4; }, "num_warps is not 4, 8 or 16"},
      {[](Graph& g) { g.bodies[0].num_stages = 17; }, "num_stages is not 0 to 16"},
      {[](Graph& g) { g.persistent = g.whole_arrays = true; },
       "persistent programs that see or wait for each other"},
      {[](Graph& g) { g.grid_rows = -1; }, "grid_rows is not 0 to 65536"},
      {[](Graph& g) { g.split_k = -1; }, "split_k is not 0 to 8"},
      {[](Graph& g) { g.split_k = 9; }, "split_k is not 0 to 8"},
      {[](Graph& g) { g.grid_rows = 2; }, "grid_rows without two parallel axes"},
      {[](Graph& g) { g.bodies[0].num_stages = -1; }, "num_stages is not 0 to 16"},
      {[](Graph& g) {
         g.bodies[0] = {g.bodies[0].region, 2, 8};
       },
       "one of several Pallas threads is wider than a warpgroup"},
      {[](Graph& g) { g.bodies.push_back(g.bodies[0]); }, "two bodies share a region"},
      {[](Graph& g) { g.semantics.clear(); }, "not one order per grid axis"},
      {[](Graph& g) { g.mapping.grid[0] = dim_symbol(0); },
       "a symbolic dim that is none of the graph's"},
      {[](Graph& g) { g.arguments[0].index = 1; },
       "array arguments are not numbered in call order"},
      {[](Graph& g) { g.arguments.clear(); }, "a block mapping without an argument"},
      {[](Graph& g) {
         g.aliases = {{0, 1}};
       },
       "an alias of no output"},
      {[](Graph& g) {
         g.aliases = {{0, 0}, {0, 0}};
       },
       "an input or output is aliased twice"},
      {[](Graph& g) { g.cluster = {0}; }, "a cluster axis below 1"},
      {[](Graph& g) { g.facts.multiples = {4}; }, "not one multiple per symbol"},
      {[](Graph& g) {
         g.num_symbols = 1;
         g.facts.multiples = {6};
       },
       "a symbol's multiple is no power of two from 1 to 16"},
      {[](Graph& g) {
         g.num_symbols = 2;
         g.facts.multiples = {1, 1};
       },
       "multiples of 1 for all symbols"},
      {[](Graph& g) { g.short_offsets = true; }, "short offsets where all arrays are known"},
      {[](Graph& g) { g.box_extents = true; }, "extents of boxes where all arrays"},
      {[](Graph& g) { g.mapping.num_outputs = 2; }, "GridMapping: 2 block mappings"},
  };
  REQUIRE(defect(sample()) == "");
  for (const auto& [change, message] : cases) {
    Graph g = sample();
    change(g);
    CHECK_THAT(defect(g), ContainsSubstring(message));
    CHECK(defect(g) != "");
    CHECK_THROWS_AS(verify(g, "pass"), InternalError);
  }
}

TEST_CASE("a semaphore is counted by an array") {
  const Graph g = test::changed_graph_of(R"(kernel k
  grid
  outputs[0]: i32[] in blocks []
{ %0: ref block i32[] %1: ref semaphore i32[]
  %2: i32[] = semaphore_read %1
  store %0, %2
}
)");
  CHECK(defect(g) == "a semaphore that no array counts");
  CHECK_THROWS_AS(blocks_may_wait(g), InternalError);
}

TEST_CASE("a failed verification names the stage and shows the graph") {
  Graph g = sample();
  g.semantics.clear();
  CHECK_THROWS_WITH(verify(g, "after streaming"),
                    ContainsSubstring("after streaming: not one order per grid axis\nkernel k\n"));
}

TEST_CASE("an index map must yield i32 and may not write") {
  HandMade k({{{8}, f32}}, {}, {2});
  k.map(0, [](auto& ids, Builder& b) { return std::vector{b.cast(ids[0], i64)}; });
  CHECK(defect(k.g) == "an index map yields something other than i32[]");
}

TEST_CASE("uses are counted, users listed, regions known") {
  const Graph g = sample();
  const Uses uses(g);
  const ValueId x{4};
  REQUIRE(g[x].op == Op::Load);
  CHECK(uses.count(x) == 2);
  REQUIRE(uses.users(x).size() == 2);
  CHECK(g[uses.users(x)[0]].op == Op::Loop);
  CHECK(g[uses.users(x)[1]].op == Op::Max);
  CHECK(uses.region(x) == RegionId{0});
  CHECK(uses.region(g.regions[1].insts[0]) == RegionId{1});
  CHECK(uses.count(g.regions[1].insts[0]) == 1);  // its yield
  CHECK(uses.users(g.regions[1].insts[0]).empty());
  CHECK(g[uses.owner(RegionId{1})].op == Op::Loop);
  CHECK(uses.owner(RegionId{0}) == no_value);
  CHECK(uses.encloses(RegionId{0}, RegionId{1}));
  CHECK_FALSE(uses.encloses(RegionId{1}, RegionId{0}));
  CHECK(root_regions(g) == std::vector<RegionId>{RegionId{0}, RegionId{2}});
}
