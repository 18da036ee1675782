// GridMapping: invariants and members; the order of grid axes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <optional>

#include "codegen/base/dim.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/grid_order.hpp"
#include "tests/graph/kernel.hpp"

using namespace palladium;
using namespace palladium::graph;
using Catch::Matchers::ContainsSubstring;

namespace {

GridMapping mapping() {
  GridMapping m;
  m.grid = {4, dim_symbol(0)};
  m.grid_names = {"i", "j"};
  m.index_map_tree = {2, 1};
  m.index_map_avals = {{{{}, i32}}, {{{}, i32}}, {{{64}, i32}, true, Space::gmem}};
  m.num_index_operands = 1;
  m.num_inputs = 2;
  m.num_outputs = 1;
  BlockMapping ids;
  ids.block_shape = {64};
  ids.array_aval = {{64}, i32};
  ids.origin = "args[0]";
  ids.memory_space = Space::gmem;
  BlockMapping in;
  in.block_shape = {BlockDim(BlockDim::Kind::squeezed, 1), 16,
                    BlockDim(BlockDim::Kind::element, 6, 1, 2)};
  in.array_aval = {{3, dim_symbol(0), 3}, f32};
  in.origin = "args[1]";
  BlockMapping out;
  out.block_shape = {8};
  out.array_aval = {{32}, f16};
  out.origin = "outputs[0]";
  m.block_mappings = {ids, in, out};
  m.scratch_avals = {{{{8, 8}, f32}, true, Space::smem}, {{{8}, f32}, true, Space::regs}};
  return m;
}

}  // namespace

TEST_CASE("a GridMapping that violates an invariant is refused by name") {
  CHECK_NOTHROW(mapping().check_invariants());
  const std::vector<std::pair<std::function<void(GridMapping&)>, const char*>> cases = {
      {[](auto& m) { m.num_inputs = 3; }, "3 block mappings for 3 inputs and 1 outputs"},
      {[](auto& m) { m.index_map_avals.pop_back(); },
       "2 index map parameters for 2 grid axes and 1 index operands"},
      {[](auto& m) { m.index_map_tree.num_program_ids = 1; },
       "parameter structure is not (*program_ids, *index_operands)"},
      {[](auto& m) {
         m.index_map_tree = {3, 0};
       },
       "3 program ids in the index maps' parameters for 2 grid axes"},
      {[](auto& m) {
         m.vmapped_dims = {1, 1};
       },
       "a vmapped dim is named twice"},
      {[](auto& m) { m.block_mappings[2].components = {m.block_mappings[1]}; },
       "it is still that of several arrays"},
      {[](auto& m) { m.scratch_avals[1].components = {m.scratch_avals[0]}; },
       "a scratch operand is still several"},
      {[](auto& m) { m.block_mappings[2].block_shape[0].kind = BlockDim::Kind::indirect; },
       "an indirect dimension is not as long as its array"},
      {[](auto& m) { m.index_map_avals[1].type.dtype = i64; },
       "index map parameter 1 is a program id but not i32[]"},
      {[](auto& m) { m.index_map_avals[0].type.shape = {1}; },
       "index map parameter 0 is a program id but not i32[]"},
      {[](auto& m) {
         m.vmapped_dims = {0, 1, 1};
       },
       "3 vmapped dims for 2 grid axes"},
      {[](auto& m) { m.vmapped_dims = {2}; }, "vmapped dim 2 is no grid axis"},
      {[](auto& m) { m.grid_names.pop_back(); }, "1 grid names for 2 grid axes"},
      {[](auto& m) { m.grid[0] = -1; }, "grid axis 0 has a negative size"},
      {[](auto& m) { m.block_mappings[1].block_shape.pop_back(); },
       "block mapping of args[1]: block rank 2, array rank 3"},
      {[](auto& m) { m.block_mappings[2].block_shape[0].size = 0; },
       "block mapping of outputs[0]: a block dimension is below 1"},
      {[](auto& m) { m.block_mappings[1].block_shape[0].size = 2; },
       "a squeezed dimension has more than one element"},
      {[](auto& m) { m.block_mappings[1].block_shape[1].pad_hi = 2; },
       "padding on a dimension that is not Element"},
      {[](auto& m) { m.block_mappings[1].alignment = 2; }, "alignment 2"},
      {[](auto& m) { m.block_mappings[1].memory_space = Space::regs; }, "pinned to registers"},
      {[](auto& m) { m.scratch_avals[0].memory_space = Space::automatic; },
       "a scratch operand has no memory space"},
      {[](auto& m) { m.scratch_avals[0].type.shape[0] = dim_symbol(0); },
       "a scratch operand has a symbolic shape"},
      {[](auto& m) { m.num_index_operands = -1; }, "an operand count is negative"},
      {[](auto& m) { m.num_inputs = 0, m.num_outputs = 3; }, "1 index operands, but 0 inputs"},
      {[](auto& m) { m.index_map_avals[2].memory_space = Space::smem; },
       "index operand 0 is no Ref of global memory"},
      {[](auto& m) { m.index_map_avals[2].type.shape[0] = 32; },
       "index operand 0 is i32[64] but index maps take i32[32]"},
      {[](auto& m) { m.block_mappings[0].block_shape[0].size = 32; },
       "index operand 0 is cut into blocks"},
      {[](auto& m) { m.bounds = {0}; }, "1 bounds for 2 grid axes"},
      {[](auto& m) {
         m.bounds = {2, -1};
       },
       "a grid bound is held by input 2, which there is not"},
      {[](auto& m) {
         m.bounds = {-1, 0};
       },
       "a grid bound is held by i32[64], which is not one integer"},
      {[](auto& m) { m.block_mappings[2].fill = 0x10000; }, "a fill of more bits"},
      {[](auto& m) { m.block_mappings[1].buffers = -1; }, "a negative number of buffers"},
  };
  for (const auto& [change, message] : cases) {
    GridMapping m = mapping();
    change(m);
    CHECK_THROWS_AS(m.check_invariants(), InternalError);
    CHECK_THROWS_WITH(m.check_invariants(),
                      ContainsSubstring("GridMapping: ") && ContainsSubstring(message));
  }
}

TEST_CASE("a GridMapping tells the calling conventions [C26] [E26]") {
  const GridMapping m = mapping();
  CHECK_FALSE(m.static_grid());
  CHECK(m.num_dynamic_grid_bounds() == 1);
  CHECK(m.num_scratch_operands() == 2);
  CHECK(m.in_shapes() == std::vector<ShapeDtype>{{{64}, i32}, m.block_mappings[1].array_aval});
  CHECK(m.out_shapes() == std::vector<ShapeDtype>{{{32}, f16}});
  CHECK(m.block_mappings_output().size() == 1);
  CHECK(m.block_mappings_output()[0].origin == "outputs[0]");
  CHECK(m.slice_index_ops() == GridMapping::Range{0, 1});
  CHECK(m.slice_block_ops() == GridMapping::Range{1, 3});
  CHECK(m.slice_scratch_ops() == GridMapping::Range{3, 5});
  CHECK(m.block_mappings[1].ref_shape() == std::vector<std::int64_t>{16, 6});
}

TEST_CASE("a GridMapping is replaced only by one that keeps the invariants") {
  const GridMapping m = mapping();
  CHECK(m.replace([](GridMapping& n) { n.debug = true; }).debug);
  CHECK_FALSE(m.debug);
  CHECK_THROWS_WITH(m.replace([](GridMapping& n) { n.num_outputs = 2; }),
                    ContainsSubstring("3 block mappings for 2 inputs and 2 outputs"));
}

TEST_CASE("operands of several arrays are flattened, with all that counts them") {
  const GridMapping m = mapping();
  GridMapping several = m;
  const auto group = [](auto first, auto second) {
    auto both = first;
    both.components = {first, second};
    return both;
  };
  several.block_mappings = {group(m.block_mappings[0], m.block_mappings[0]),
                            group(m.block_mappings[1], group(m.block_mappings[0],
                                                             m.block_mappings[1])),
                            group(m.block_mappings[2], m.block_mappings[2])};
  several.index_map_avals[2] = group(m.index_map_avals[2], m.index_map_avals[2]);
  several.scratch_avals = {group(m.scratch_avals[0], m.scratch_avals[1]), m.scratch_avals[0]};
  several.bounds = {-1, 1};
  const GridMapping flat = several.to_lojax();
  CHECK(flat.block_mappings.size() == 7);
  CHECK(flat.block_mappings[4].origin == "args[1]");
  CHECK(flat.num_index_operands == 2);
  CHECK(flat.num_inputs == 5);
  CHECK(flat.num_outputs == 2);
  CHECK(flat.index_map_avals.size() == 4);
  CHECK(flat.index_map_tree == IndexMapTree{2, 2});
  CHECK(flat.num_scratch_operands() == 3);
  CHECK(flat.bounds == std::vector{-1, 2});
  CHECK_NOTHROW(flat.replace([](GridMapping& n) { n.bounds.clear(); }));
  CHECK(m.to_lojax().block_mappings.size() == 3);
}

TEST_CASE("kernels see the axes of the grid that no vmap added, by name and size") {
  const GridMapping m = mapping().replace([](GridMapping& n) { n.vmapped_dims = {0}; });
  const std::vector<GridAxis> axes = m.trace_env();
  REQUIRE(axes.size() == 1);
  CHECK(axes[0].name == "j");
  CHECK(axes[0].size.same(m.grid[1]));
  CHECK_FALSE(axes[0].has_static_size);
  CHECK(mapping().trace_env()[0].has_static_size);
}

namespace {

// Two axes; stores what a query of the axis gives; index maps give both of their parameters.
Graph bound(const std::function<void(Graph&, HandMade&)>& change, Op query, std::int64_t axis) {
  HandMade k({}, {{{8, 8}, i32}}, {3, 5});
  k.g.mapping.block_mappings[0].block_shape = {1, 1};
  k.g[k.refs[0]].type.shape = {1, 1};
  k.map(0, [&](auto& ids, Builder&) { return ids; });
  change(k.g, k);
  const ValueId v = k.op(query, {}, Attr{{axis}, 0});
  k.b.store(k.refs[0], k.b.broadcast_to(v, {1, 1}));
  const Graph g = k.canonical();
  Graph result = g;
  bind_grid(result);
  result = canonicalize(result);
  verify(result, "test");
  CHECK_FALSE(has_grid_env(result.mapping));
  return result;
}

RegionIndex grid_region(HandMade& k, const std::function<std::vector<ValueId>(
                                         const std::vector<ValueId>&, Builder&)>& yields) {
  return index(k.region([&](Builder& b) {
    std::vector<ValueId> ids;
    for (int i = 0; i < 2; ++i) ids.push_back(b.param(Type::value(i32)));
    b.yield(yields(ids, b));
  }));
}

}  // namespace

TEST_CASE("get_grid_indices is what index maps take and kernels see") {
  const auto swap = [](Graph& g, HandMade& k) {
    g.mapping.get_grid_indices = grid_region(
        k, [](const auto& ids, Builder&) { return std::vector{ids[1], ids[0]}; });
  };
  const Graph g = bound(swap, Op::ProgramId, 0);
  CHECK_THAT(HandMade::body_of(g), ContainsSubstring("program_id [1]"));
  const Region& map = g[RegionId{g.mapping.block_mappings[0].index_map}];
  CHECK(map.yields == std::vector{map.params[1], map.params[0]});
  CHECK_THAT(HandMade::body_of(bound(swap, Op::NumPrograms, 1)), ContainsSubstring("5"));
}

TEST_CASE("an axis that a vmap added is none that kernels see") {
  const auto mapped = [](Graph& g, HandMade& k) {
    g.mapping.vmapped_dims = {0};
    g.mapping.get_grid_indices = grid_region(k, [](const auto& ids, Builder&) { return ids; });
  };
  CHECK_THAT(HandMade::body_of(bound(mapped, Op::ProgramId, 0)), ContainsSubstring("program_id [1]"));
  CHECK_THAT(HandMade::body_of(bound(mapped, Op::NumPrograms, 0)), ContainsSubstring("5"));
}

TEST_CASE("local_grid_env is what program_id and num_programs give, of more axes than the grid's") {
  const auto env = [](Graph& g, HandMade& k) {
    g.mapping.local_grid_env = grid_region(k, [](const auto& ids, Builder& b) {
      return std::vector{ids[0], b.constant(i32, 3), ids[1], b.constant(i32, 7),
                         b.add(Op::Add, {ids[0], ids[1]}), b.add(Op::NumPrograms, {}, Attr{{1}, 0})};
    });
  };
  CHECK_THAT(HandMade::body_of(bound(env, Op::ProgramId, 2)), ContainsSubstring("add"));
  CHECK_THAT(HandMade::body_of(bound(env, Op::NumPrograms, 1)), ContainsSubstring("7"));
  CHECK_THAT(HandMade::body_of(bound(env, Op::NumPrograms, 2)), ContainsSubstring("5"));
}

namespace {

// One output over the grid, with that index map.
template <class Map>
Graph over(std::vector<Dim> grid, const Map& map) {
  HandMade k({}, {{{8}, f32}}, std::move(grid));
  k.map(0, [&](auto& ids, Builder& b) { return std::vector{map(ids, b)}; });
  k.b.store(k.refs[0], k.b.constant(f32, 0.0, {8}));
  k.g.at = {"user.cpp", 5};
  return canonicalize(k.g);
}

constexpr auto parallel = graph::Semantics::parallel, sequential = graph::Semantics::sequential;
using Wanted = std::vector<std::optional<graph::Semantics>>;
using Order = std::vector<graph::Semantics>;

}  // namespace

TEST_CASE("an axis on which an output's block does not depend is sequential [C30]") {
  const Graph g = over({4, 5}, [](auto& ids, Builder&) { return ids[0]; });
  CHECK(grid_order(g, {}) == Order{parallel, sequential});
  CHECK(grid_order(g, Wanted{std::nullopt, sequential}) == Order{parallel, sequential});
  CHECK(grid_order(g, Wanted{sequential, std::nullopt}) == Order{sequential, sequential});
}

TEST_CASE("an output without an index map is revisited along every axis [C08]") {
  HandMade k({}, {{{8}, f32}}, {2, 1, dim_symbol(0)});
  CHECK(grid_order(k.g, {}) == Order{sequential, parallel, sequential});
}

TEST_CASE("an axis of one program is not revisited") {
  const Graph g = over({1, 5}, [](auto& ids, Builder&) { return ids[1]; });
  CHECK(grid_order(g, {}) == Order{parallel, parallel});
  CHECK(grid_order(g, Wanted{parallel, parallel}) == Order{parallel, parallel});
}

TEST_CASE("dependence on an axis goes through arithmetic, loops and axis queries") {
  CHECK(grid_order(over({4, 5},
                        [](auto& ids, Builder& b) {
                          return b.add(Op::Add, {ids[0], b.add(Op::ProgramId, {}, Attr{{1}, 0})});
                        }),
                   {}) == Order{parallel, parallel});
  CHECK(
      grid_order(over({4, 5},
                      [](auto& ids, Builder& b) {
                        return b.add(Op::Add, {ids[0], b.add(Op::AxisIndex, {}, Attr{{0, 1}, 0})});
                      }),
                 {}) == Order{parallel, parallel});
  CHECK(grid_order(over({4, 5},
                        [](auto& ids, Builder& b) {
                          return b.add(Op::Add, {ids[0], b.add(Op::NumPrograms, {}, Attr{{1}, 0})});
                        }),
                   {}) == Order{parallel, sequential});
  CHECK(grid_order(over({4, 5},
                        [](auto& ids, Builder& b) {
                          const RegionId r = b.graph().add_region();
                          Builder inner(b.graph(), r);
                          inner.param(Type::value(i32));
                          const ValueId carry = inner.param(Type::value(i32));
                          inner.yield({inner.add(Op::Add, {carry, ids[1]})});
                          const ValueId loop =
                              b.add(Op::Loop, {b.constant(i32, 0), b.constant(i32, 3), ids[0]},
                                    std::vector<RegionId>{r}, {{1, 1}, 0});
                          return b.add(Op::Get, {loop}, Attr{{0}, 0});
                        }),
                   {}) == Order{parallel, parallel});
}

TEST_CASE("parallel on a revisited axis is an error that names output and axis") {
  Graph g = over({4, 5}, [](auto& ids, Builder&) { return ids[0]; });
  g.mapping.grid_names = {"i", "k"};
  CHECK_THROWS_WITH(grid_order(g, Wanted{parallel, parallel}),
                    ContainsSubstring("grid axis 1 ('k') cannot be parallel: the index map of "
                                      "outputs[0] does not depend on it") &&
                        ContainsSubstring("at user.cpp:5"));
  CHECK_THROWS_AS(grid_order(g, Wanted{parallel, parallel}), CompileError);
  g.allow_revisit = true;
  CHECK(grid_order(g, Wanted{parallel, parallel}) == Order{parallel, parallel});
  CHECK_THROWS_WITH(grid_order(g, Wanted{parallel}),
                    ContainsSubstring("expected one entry per grid axis (2), given 1"));
}
