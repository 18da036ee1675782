// Key bytes: equal where the meaning is, different where it is not.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <set>

#include "codegen/base/dim.hpp"
#include "tests/graph/kernel.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::graph;
using namespace palladium::test;

namespace {

Graph sample() {
  HandMade k({{{8}, f32}}, {{{8}, f32}}, {2, 3}, {{{4}, i32}}, {f32});
  k.map(0, [](auto& ids, Builder&) { return std::vector{ids[0]}; });
  const ValueId x = k.b.load(k.refs[0]);
  k.b.store(k.refs[2], k.op(Op::Sub, {k.op(Op::Exp, {x}), k.b.constant(f32, 1.0, {8})}));
  Graph g = k.canonical();
  g.cluster = {1};
  return g;
}

}  // namespace

TEST_CASE("key bytes differ where the meaning does") {
  const std::vector<std::function<void(Graph&)>> changes = {
      [](Graph& g) { g.name = "other"; },
      [](Graph& g) { g.fma = false; },
      [](Graph& g) { g.approx_math = true; },
      [](Graph& g) { g.fast_accumulation = true; },
      [](Graph& g) { g.allow_revisit = true; },
      [](Graph& g) { g.grid_rows = 1; },
      [](Graph& g) { g.split_k = 2; },
      [](Graph& g) { g.persistent = true; },
      [](Graph& g) { g.lineinfo = true; },
      [](Graph& g) { g.whole_arrays = true; },
      [](Graph& g) { g.num_globals = 1; },
      [](Graph& g) { g.semantics[1] = graph::Semantics::sequential; },
      [](Graph& g) { g.mapping.grid[0] = 4; },
      [](Graph& g) { g.mapping.grid[0] = dim_symbol(0); },
      [](Graph& g) { g.mapping.grid[0] = dim_symbol(1); },
      [](Graph& g) { g.mapping.grid[0] = dim_symbol(0) + 1; },
      [](Graph& g) {
        g.mapping.grid_names = {"i", "j"};
      },
      [](Graph& g) { g.mapping.block_mappings[0].block_shape[0].size = 4; },
      [](Graph& g) { g.mapping.block_mappings[0].block_shape[0].kind = BlockDim::Kind::element; },
      [](Graph& g) { g.mapping.block_mappings[0].block_shape[0].pad_lo = 1; },
      [](Graph& g) { g.mapping.block_mappings[0].block_shape[0].pad_hi = 1; },
      [](Graph& g) { g.mapping.block_mappings[0].array_aval.shape[0] = 9; },
      [](Graph& g) { g.mapping.block_mappings[0].array_aval.dtype = i32; },
      [](Graph& g) { g.mapping.block_mappings[0].memory_space = Space::smem; },
      [](Graph& g) { g.mapping.block_mappings[0].dense = false; },
      [](Graph& g) { g.mapping.block_mappings[0].alignment = 4; },
      [](Graph& g) { g.mapping.block_mappings[0].index_map = no_region; },
      [](Graph& g) { g.mapping.block_mappings[1].index_map = 1; },
      [](Graph& g) { g.mapping.scratch_avals[0].memory_space = Space::regs; },
      [](Graph& g) { g.mapping.scratch_avals[0].type.dtype = u32; },
      [](Graph& g) { g.mapping.vmapped_dims = {0}; },
      [](Graph& g) { g.cluster = {2}; },
      [](Graph& g) {
        g.cluster = {1, 1};
      },
      [](Graph& g) { g.cluster_names = {"c"}; },
      [](Graph& g) { g.thread_name = "wg"; },
      [](Graph& g) { g.bodies[0].warpgroups = 2; },
      [](Graph& g) { g.bodies[0].num_warps = 4; },
      [](Graph& g) { g.bodies[0].num_warps = 8; },
      [](Graph& g) { g.bodies[0].num_stages = 2; },
      [](Graph& g) { g.bodies[0].warp_specialize = false; },
      [](Graph& g) { g.bodies[0].warp_specialize = true; },
      [](Graph& g) { g.arguments[1].dtype = i32; },
      [](Graph& g) { std::swap(g.arguments[0], g.arguments[1]); },
      [](Graph& g) {
        g.aliases = {{0, 0}};
      },
      [](Graph& g) { g.num_symbols = 1; },
      [](Graph& g) { g.facts.multiples = {4}; },
      [](Graph& g) { g.short_offsets = true; },
      [](Graph& g) { g.box_extents = true; },
      [](Graph& g) { g.insts[5].op = Op::Exp2; },
      [](Graph& g) { g.insts[6].attr.bits ^= 1; },
      [](Graph& g) { g.insts[5].attr.ints = {0}; },
      [](Graph& g) { g.insts[5].type.dtype = f64; },
      [](Graph& g) { g.insts[5].type.shape = {1}; },
      [](Graph& g) { std::swap(g.insts[7].args[0], g.insts[7].args[1]); },
      [](Graph& g) { std::swap(g.regions[0].insts[0], g.regions[0].insts[2]); },
  };
  std::set<std::string> seen{canonical_bytes(sample())};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Graph g = sample();
    changes[i](g);
    INFO("change " << i);
    CHECK(seen.insert(canonical_bytes(g)).second);
  }
}

TEST_CASE(
    "names, lines, origins, what is expected and the arena's numbering are not in the key bytes") {
  Graph g = sample();
  const std::string bytes = canonical_bytes(g);
  g.where.assign(g.insts.size(), {"x.cpp", 3});
  g.names.assign(g.insts.size(), "secret");
  g.at = {"y.cpp", 4};
  g.mapping.block_mappings[0].origin = "args[0]['q']";
  g.mapping.debug = true;
  g.expect = {.on = "sm_90a", .tensor_cores = true, .of_limit = 0.5};
  g.add({Op::Constant, Type::value(f32), {}, {}, {}});
  g.add_region();
  CHECK(canonical_bytes(g) == bytes);

  // The same instructions elsewhere in the arena.
  Graph moved = sample();
  const auto n = static_cast<std::uint32_t>(moved.insts.size());
  std::vector<Inst> insts(n);
  for (std::uint32_t i = 0; i < n; ++i) insts[n - 1 - i] = moved.insts[i];
  const auto flip = [&](std::vector<ValueId>& list) {
    for (ValueId& v : list) v = ValueId{n - 1 - index(v)};
  };
  for (Inst& in : insts) flip(in.args);
  for (Region& r : moved.regions) {
    flip(r.params);
    flip(r.insts);
    flip(r.yields);
  }
  moved.insts = std::move(insts);
  CHECK(canonical_bytes(moved) == bytes);
}

TEST_CASE("under line info the lines are in the key bytes") {
  Graph g = sample();
  g.lineinfo = true;
  g.where.assign(g.insts.size(), {"x.cpp", 3});
  std::set<std::string> seen{canonical_bytes(g)};
  const std::vector<std::function<void(Graph&)>> changes = {
      [](Graph& g) { g.where[5].line = 4; },
      [](Graph& g) { g.where[5].file = "y.cpp"; },
      [](Graph& g) { g.at.line = 7; },
      [](Graph& g) { g.at.file = "z.cpp"; },
  };
  for (const auto& change : changes) {
    Graph changed = g;
    change(changed);
    CHECK(seen.insert(canonical_bytes(changed)).second);
  }
}

TEST_CASE("random kernels have different key bytes") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    CHECK(seen.insert(canonical_bytes(random_kernel(seed).graph)).second);
}
