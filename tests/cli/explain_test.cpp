// Each input of a kernel's key, flipped by itself: the key differs, and `cache explain` names that
// input and no other.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "cache/text_digest.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/components.hpp"
#include "runtime/build/key.hpp"
#include "tests/cli/tool.hpp"

using namespace palladium;
using namespace palladium::test;
using graph::Graph;
using graph::Op;
using pl::_;

namespace {

constexpr const char* arch = "sm_90a";

/// With something of everything that a key is made of.
Graph base() {
  const Kernel kernel = pallas_call(
      [](Value a, Ref x, Ref y, Ref o, Ref s) {
        s[{pl::ds(0, 4), _}] = x[{pl::ds(4, 4), _}] + 1.5f;
        o[_] = s[_] * a + y[_];
      },
      {.name = "base",
       .out_type = {{dim("m"), 128}, f32},
       .grid = {cdiv(dim("m"), 8), 2},
       .grid_names = {"i", "j"},
       .cluster = {2},
       .cluster_names = {"c"},
       .in_specs = {BlockSpec{{Element(8, {1, 2}), 64},
                              [](Index i, Index j) {
                                return Indices{i * 8, j};
                              }},
                    BlockSpec{{8, 64},
                              [](Index i, Index j) {
                                return Indices{i, 1 - j};
                              }}},
       .out_specs = {BlockSpec{{8, 64},
                               [](Index i, Index j) {
                                 return Indices{i, 1 - j};
                               }}},
       .scratch_types = {gpu::SMEM({8, 64}, f32)},
       .input_output_aliases = {{1, 0}}});
  const ShapeDtype rows{{dim("m"), 128}, f32};
  return graph::from_json(kernel.lower(scalar(2.f), rows, rows).json());
}

graph::Inst& first(Graph& g, Op op) {
  for (graph::Inst& in : g.insts)
    if (in.op == op) return in;
  FAIL("no such instruction");
  return g.insts.front();
}

/// A copy of a region with the same parameters, which it gives back.
RegionIndex other_region(Graph& g, RegionIndex like) {
  const graph::Region copied = g.regions[like];
  const RegionIndex made = graph::index(g.add_region());
  g.regions[made] = {.params = copied.params, .insts = {}, .yields = copied.params};
  return made;
}

struct Flip {
  std::string component;
  std::function<void(Graph&)> apply;
};

void add_flips_of_blocks(std::vector<Flip>& flips) {
  const std::string origins[] = {"args[1]", "args[2]", "outputs[0]"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto add = [&](const std::string& part, auto change) {
      flips.push_back({origins[i] + "." + part, [=](Graph& g) {
                         BlockMapping& m = g.mapping.block_mappings[i];
                         REQUIRE(m.origin == origins[i]);
                         change(g, m);
                       }});
    };
    add("dtype", [](Graph&, BlockMapping& m) { m.array_aval.dtype = f64; });
    add("shape", [](Graph&, BlockMapping& m) { m.array_aval.shape[1] = 256; });
    add("shape", [](Graph&, BlockMapping& m) { m.array_aval.shape[0] = 80; });
    add("block_shape", [](Graph&, BlockMapping& m) { m.block_shape[1].size = 32; });
    add("block_shape",
        [](Graph&, BlockMapping& m) { m.block_shape[1].kind = BlockDim::Kind::squeezed; });
    add("index_map", [](Graph& g, BlockMapping& m) { m.index_map = other_region(g, m.index_map); });
    add("memory_space", [](Graph&, BlockMapping& m) { m.memory_space = Space::smem; });
    add("strided", [](Graph&, BlockMapping& m) { m.dense = false; });
    add("alignment", [](Graph&, BlockMapping& m) { m.alignment = 4; });
  }
  flips.push_back({"args[1].block_shape",
                   [](Graph& g) { g.mapping.block_mappings[0].block_shape[0].pad_lo = 2; }});
  flips.push_back({"args[1].block_shape",
                   [](Graph& g) { g.mapping.block_mappings[0].block_shape[0].pad_hi = 1; }});
}

std::vector<Flip> all_flips() {
  std::vector<Flip> flips = {
      {"name", [](Graph& g) { g.name = "other"; }},
      {"grid", [](Graph& g) { g.mapping.grid[1] = 3; }},
      {"grid", [](Graph& g) { g.mapping.grid[0] = 10; }},
      {"grid_names", [](Graph& g) { g.mapping.grid_names[1] = "k"; }},
      {"dimension_semantics", [](Graph& g) { g.semantics[1] = graph::Semantics::sequential; }},
      {"vmapped_dims", [](Graph& g) { g.mapping.vmapped_dims = {0}; }},
      {"cluster", [](Graph& g) { g.cluster[0] = 4; }},
      {"cluster_names", [](Graph& g) { g.cluster_names[0] = "d"; }},
      {"thread_name", [](Graph& g) { g.thread_name = "t"; }},
      {"index_operands", [](Graph& g) { g.mapping.num_index_operands = 1; }},
      {"index_operands", [](Graph& g) { g.mapping.index_map_tree.num_index_operands = 1; }},
      {"index_operands",
       [](Graph& g) {
         g.mapping.index_map_avals.push_back({{{}, i32}});
       }},
      {"get_grid_indices",
       [](Graph& g) {
         g.mapping.get_grid_indices = other_region(g, g.mapping.block_mappings[0].index_map);
       }},
      {"local_grid_env",
       [](Graph& g) {
         g.mapping.local_grid_env = other_region(g, g.mapping.block_mappings[0].index_map);
       }},
      {"arguments", [](Graph& g) { g.arguments[0].dtype = f64; }},
      {"arguments", [](Graph& g) { std::swap(g.arguments[0], g.arguments[1]); }},
      {"arguments", [](Graph& g) { g.arguments[1].index = 1; }},
      {"arguments", [](Graph& g) { g.mapping.num_inputs = 3; }},
      {"arguments", [](Graph& g) { g.mapping.num_outputs = 0; }},
      {"input_output_aliases", [](Graph& g) { g.aliases.clear(); }},
      {"input_output_aliases", [](Graph& g) { g.aliases[0].input = 0; }},
      {"symbols", [](Graph& g) { g.num_symbols = 2; }},
      {"symbol_multiples", [](Graph& g) { g.facts.multiples = {4}; }},
      {"short_offsets", [](Graph& g) { g.short_offsets = true; }},
      {"box_extents", [](Graph& g) { g.box_extents = true; }},
      {"scratch[0]", [](Graph& g) { g.mapping.scratch_avals[0].type.dtype = f16; }},
      {"scratch[0]", [](Graph& g) { g.mapping.scratch_avals[0].type.shape[0] = 16; }},
      {"scratch[0]", [](Graph& g) { g.mapping.scratch_avals[0].memory_space = Space::regs; }},
      {"scratch[1]",
       [](Graph& g) { g.mapping.scratch_avals.push_back(g.mapping.scratch_avals[0]); }},
      {"fma", [](Graph& g) { g.fma = false; }},
      {"approx_math", [](Graph& g) { g.approx_math = true; }},
      {"fast_accumulation", [](Graph& g) { g.fast_accumulation = true; }},
      {"allow_revisit", [](Graph& g) { g.allow_revisit = true; }},
      {"grid_rows", [](Graph& g) { g.grid_rows = 1; }},
      {"persistent", [](Graph& g) { g.persistent = true; }},
      {"lineinfo", [](Graph& g) { g.lineinfo = true; }},
      {"whole_arrays", [](Graph& g) { g.whole_arrays = true; }},
      {"globals", [](Graph& g) { g.num_globals = 1; }},
      {"body.warpgroups", [](Graph& g) { g.bodies[0].warpgroups = 2; }},
      {"body.num_warps", [](Graph& g) { g.bodies[0].num_warps = 8; }},
      {"body.num_stages", [](Graph& g) { g.bodies[0].num_stages = 3; }},
      {"body.warp_specialize", [](Graph& g) { g.bodies[0].warp_specialize = true; }},
      {"body", [](Graph& g) { first(g, Op::Store).op = Op::Swap; }},
      {"body", [](Graph& g) { first(g, Op::At).attr.ints[2] = 5; }},
      {"body", [](Graph& g) { std::swap(first(g, Op::Fma).args[0], first(g, Op::Fma).args[2]); }},
      {"body", [](Graph& g) { first(g, Op::Fma).type.dtype = f16; }},
      {"body",
       [](Graph& g) {
         for (graph::Inst& in : g.insts)
           if (in.op == Op::Constant && in.type.dtype == f32) in.attr.bits ^= 1;
       }},
  };
  add_flips_of_blocks(flips);
  return flips;
}

cache::Entry entry_of(const Graph& g, const std::string& for_arch = arch) {
  cache::Entry entry;
  entry.key = runtime::key_of(g, for_arch);
  entry.toolchain = "0123456789abcdef";
  entry.metadata.kernel = g.name;
  entry.metadata.arch = for_arch;
  entry.metadata.components = runtime::components_of(g, for_arch);
  return entry;
}

std::set<std::string> explained(const Tool& tool, const cache::Entry& a, const cache::Entry& b) {
  std::set<std::string> names;
  const Json told = tool.json({"cache", "explain", a.key.hex(), b.key.hex()});
  for (const Json& d : told.at("differences")) {
    CHECK(d.at("first") != d.at("second"));
    names.insert(d.at("component"));
  }
  return names;
}

}  // namespace

TEST_CASE("each input of a key, flipped by itself, is what explain names") {
  const Tool tool;
  const cache::Store store(tool.cache());
  const Graph unchanged = base();
  const cache::Entry before = entry_of(unchanged);
  REQUIRE(store.publish(before));
  const std::vector<Flip> flips = all_flips();
  CHECK(flips.size() >= 60);
  std::set<cache::Key> keys = {before.key};
  for (const Flip& flip : flips) {
    Graph g = unchanged;
    flip.apply(g);
    const cache::Entry after = entry_of(g);
    INFO(flip.component);
    CHECK(keys.insert(after.key).second);
    REQUIRE(store.publish(after));
    CHECK(explained(tool, before, after) == std::set{flip.component});
  }
  const cache::Entry elsewhere = entry_of(unchanged, "sm_80");
  CHECK(keys.insert(elsewhere.key).second);
  REQUIRE(store.publish(elsewhere));
  CHECK(explained(tool, before, elsewhere) == std::set<std::string>{"arch"});
}

TEST_CASE("explain says in words which sizes two kernels are for") {
  const Tool tool;
  const cache::Store store(tool.cache());
  const auto entry = [&](const Dim& columns, bool is_bounded = false) {
    const Kernel kernel =
        pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2; },
                    [=](ShapeDtype x) {
                      const BlockDim row = is_bounded ? bounded(x.shape[1], 64) : BlockDim(8);
                      const BlockSpec rows{{1, row}, [](Index i) { return Indices{i, 0}; }};
                      return PallasCallOptions{.name = "rows",
                                               .out_type = x,
                                               .grid = {x.shape[0]},
                                               .in_specs = {rows},
                                               .out_specs = {rows}};
                    });
    const cache::Entry e =
        entry_of(graph::from_json(kernel.lower(ShapeDtype{{dim("m"), columns}, f32}).json()));
    REQUIRE(store.publish(e));
    return e.key.hex();
  };
  const auto told = [&](const std::string& a, const std::string& b) {
    return tool.json({"cache", "explain", a, b}).at("sizes");
  };
  const std::string is_100 = entry(100), is_200 = entry(200), is_any = entry(dim("n")),
                    is_wide = entry(dim("n", {.multiple_of = 4})),
                    is_few = entry(dim("n", {.at_most = 1000})), is_up_to = entry(dim("n"), true);
  CHECK(told(is_100, is_200)[0] == "args[0].shape[1] is 100 in the first, 200 in the second");
  CHECK(told(is_200, is_any)[0] ==
        "args[0].shape[1] is 200 in the first, any number in the second");
  CHECK(told(is_wide, is_any) ==
        Json{"args[0].shape[1] is any multiple of 4 in the first, any number in the second",
             "outputs[0].shape[1] is any multiple of 4 in the first, any number in the second"});
  CHECK(told(is_any, is_up_to)[0] ==
        "args[0].shape[1] is any number in the first, any number up to 64 in the second");
  CHECK(told(is_any, is_any).empty());
  CHECK_THAT(tool({"cache", "explain", is_100, is_200}).out,
             ContainsSubstring("\nsize    args[0].shape[1] is 100 in the first, 200"));
}

TEST_CASE("a key is over the graph, the name, the architecture and the sources that decide text") {
  const Graph g = base();
  const std::string bytes = graph::canonical_bytes(g);
  const auto key = [&](const std::string& text) {
    return cache::key_of({{"arch", arch}, {"graph", bytes}, {"name", g.name}, {"text", text}});
  };
  CHECK(runtime::key_of(g, arch) == key(cache::text_digest));
  CHECK(runtime::key_of(g, arch) != key(std::string(cache::text_digest).replace(0, 1, "x")));

  const Tool tool;
  const cache::Store store(tool.cache());
  const cache::Entry now = entry_of(g);
  cache::Entry then = now;
  then.key = key("of another Palladium");
  then.metadata.components["text"] = "sha256:of another";
  REQUIRE(store.publish(now));
  REQUIRE(store.publish(then));
  CHECK(explained(tool, now, then) == std::set<std::string>{"text"});
}

TEST_CASE("the lines of a kernel are in its key only where its text names them") {
  Graph g = base(), moved = base();
  moved.at.line += 1;
  CHECK(runtime::key_of(g, arch) == runtime::key_of(moved, arch));
  CHECK(runtime::components_of(g, arch) == runtime::components_of(moved, arch));
  g.lineinfo = moved.lineinfo = true;
  CHECK(runtime::key_of(g, arch) != runtime::key_of(moved, arch));
  auto parts = runtime::components_of(g, arch), other = runtime::components_of(moved, arch);
  CHECK(parts.at("lineinfo") != other.at("lineinfo"));
  parts.erase("lineinfo"), other.erase("lineinfo");
  parts.erase("graph"), other.erase("graph");
  CHECK(parts == other);
}
