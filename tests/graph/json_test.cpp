// JSON: exact round trips, and text that is not ours.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/base/dim.hpp"
#include "tests/graph/kernel.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::graph;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Graph vector_add() {
  HandMade k({{{8}, f32}, {{8}, f32}}, {{{8}, f32}}, {1});
  k.map(0, [](auto& ids, Builder&) { return std::vector{ids[0]}; });
  k.b.store(k.refs[2], k.op(Op::Add, {k.b.load(k.refs[0]), k.b.load(k.refs[1])}));
  return k.canonical();
}

void expect_equal(const Graph& a, const Graph& b) {
  CHECK(a.name == b.name);
  CHECK(a.insts == b.insts);
  CHECK(a.regions == b.regions);
  CHECK(a.bodies == b.bodies);
  CHECK(a.arguments == b.arguments);
  CHECK(a.aliases == b.aliases);
  CHECK(a.semantics == b.semantics);
  CHECK(a.names == b.names);
  REQUIRE(a.where.size() == b.where.size());
  for (std::size_t i = 0; i < a.where.size(); ++i) {
    CHECK(std::string(a.where[i].file) == b.where[i].file);
    CHECK(a.where[i].line == b.where[i].line);
  }
  CHECK(std::string(a.at.file) == b.at.file);
  CHECK(a.at.line == b.at.line);
  CHECK(to_text(a, true) == to_text(b, true));
  CHECK(canonical_bytes(a) == canonical_bytes(b));
  CHECK(to_json(a) == to_json(b));
}

// A CompileError, or a graph that keeps the contract.
bool accepted(const std::string& json) {
  try {
    const Graph g = from_json(json);
    REQUIRE(defect(g) == "");
    to_text(g, true);
    canonical_bytes(canonicalize(g));
    return true;
  } catch (const CompileError& e) {
    REQUIRE_THAT(e.what(), ContainsSubstring("graph JSON: "));
    return false;
  }
}

}  // namespace

TEST_CASE("the width of a program is in its text and JSON where it was given") {
  Graph g = vector_add();
  CHECK_THAT(to_text(g), !ContainsSubstring("num_warps"));
  CHECK_THAT(to_json(g), !ContainsSubstring("num_warps"));
  CHECK(from_json(to_json(g)).bodies[0].num_warps == 0);
  g.bodies[0].num_stages = 3;
  CHECK_THAT(to_text(g), ContainsSubstring("\nnum_stages 3\n{ %0"));
  CHECK(from_json(to_json(g)).bodies[0].num_stages == 3);
  CHECK_THROWS_WITH(from_json(replaced(to_json(g), "\"num_stages\":3", "\"num_stages\":17")),
                    ContainsSubstring("num_stages is not 0 to 16"));
  g.persistent = true;
  CHECK_THAT(to_text(g), ContainsSubstring("  persistent\n"));
  CHECK(from_json(to_json(g)).persistent);
  g.persistent = false;
  g.grid_rows = 1;
  CHECK_THAT(to_text(g), ContainsSubstring("rows of the grid at once: 1\n"));
  CHECK(from_json(to_json(g)).grid_rows == 1);
  CHECK_THROWS_WITH(from_json(replaced(to_json(g), "\"grid_rows\":1", "\"grid_rows\":-1")),
                    ContainsSubstring("grid_rows is not 0 to 65536"));
  g.grid_rows = 0;
  g.split_k = 2;
  CHECK_THAT(to_text(g), ContainsSubstring("sums split among 2\n"));
  CHECK(from_json(to_json(g)).split_k == 2);
  g.split_k = 0;
  g.bodies[0].warp_specialize = false;
  CHECK_THAT(to_text(g), ContainsSubstring("\nwarp_specialize 0\n{ %0"));
  CHECK(from_json(to_json(g)).bodies[0].warp_specialize == false);
  CHECK_THROWS(
      from_json(replaced(to_json(g), "\"warp_specialize\":false", "\"warp_specialize\":2")));
  g.bodies[0].warp_specialize.reset();
  g.bodies[0].num_stages = 0;
  g.bodies[0].num_warps = 16;
  CHECK_THAT(to_text(g), ContainsSubstring("\nnum_warps 16\n{ %0"));
  const std::string json = to_json(g);
  CHECK(from_json(json).bodies[0].num_warps == 16);
  CHECK_THROWS_WITH(from_json(replaced(json, "\"num_warps\":16", "\"num_warps\":20")),
                    ContainsSubstring("num_warps is not 4, 8 or 16"));
}

TEST_CASE("random kernels come back from JSON as they were") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    const Graph g = random_kernel(seed).graph;
    expect_equal(g, from_json(to_json(g)));
  }
}

TEST_CASE("every field of a GridMapping and of a graph comes back from JSON") {
  HandMade k({{{1}, i32}, {{8}, f32}}, {{{8}, f32}}, {dim_symbol(0), 3}, {{{2}, i8}}, {u64});
  GridMapping& m = k.g.mapping;
  m.grid[0] = cdiv(dim_symbol(0) * 2 + 1, 4);
  m.grid_names = {"i", "j"};
  m.block_mappings[1].array_aval.shape[0] = dim_symbol(0);
  m.block_mappings[1].block_shape = {BlockDim(BlockDim::Kind::element, 8, 2, 3)};
  m.block_mappings[1].dense = false;
  m.block_mappings[1].alignment = 4;
  m.vmapped_dims = {1};
  m.debug = true;
  for (RegionIndex* r : {&m.get_grid_indices, &m.local_grid_env}) {
    *r = index(k.g.add_region());
    Builder b(k.g, RegionId{*r});
    const ValueId i = b.param(Type::value(i32)), j = b.param(Type::value(i32));
    b.yield({j, i});
  }
  m.num_index_operands = 1;
  m.index_map_tree = {2, 1};
  m.index_map_avals.push_back({{{1}, i32}, true, Space::gmem});
  m.block_mappings[0].memory_space = k.g[k.refs[0]].type.space = Space::gmem;
  m.bounds = {-1, 0};
  m.block_mappings[1].fill = 0x3f800000;
  m.block_mappings[1].buffers = 3;
  k.g.arguments[2].symbol = 0;
  k.g.cost = {1, 2, 3};
  k.g.metadata = {{"author", "me"}, {"", "\n"}};
  k.g.expect = {.on = "sm_90a", .tensor_cores = true, .spills = 0, .registers = 9, .of_limit = 0.7};
  k.g.split_k = 4;
  k.g.approx_math = k.g.fast_accumulation = k.g.allow_revisit = k.g.lineinfo = true;
  k.g.fma = false;
  k.g.cluster = {2, 1};
  k.g.cluster_names = {"x", "y"};
  k.g.thread_name = "wg";
  k.g.semantics = {graph::Semantics::sequential, graph::Semantics::parallel};
  k.g.at = {"a.cpp", 12};
  k.g.bodies[0].warpgroups = 3;
  k.g.num_symbols = 1;
  k.b.store(k.refs[3], k.b.constant(f32, 0.1, {8}), no_value, {"b.cpp", 3});
  Graph g = k.canonical();
  g.facts.multiples = {4};
  g.short_offsets = true;
  const std::string json = to_json(g);
  const Graph back = from_json(json);
  expect_equal(g, back);
  CHECK(back.expect == g.expect);
  const GridMapping& n = back.mapping;
  CHECK(n.grid[0].same(m.grid[0]));
  CHECK(n.grid_names == m.grid_names);
  CHECK(n.block_mappings.size() == 3);
  CHECK(n.block_mappings[1].block_shape == m.block_mappings[1].block_shape);
  CHECK(n.block_mappings[1].origin == "args[1]");
  CHECK_FALSE(n.block_mappings[1].dense);
  CHECK(n.block_mappings[1].alignment == 4);
  CHECK(n.block_mappings[1].fill == 0x3f800000);
  CHECK(n.block_mappings[1].buffers == 3);
  CHECK(n.bounds == m.bounds);
  CHECK(back.arguments[2].symbol == 0);
  CHECK(back.cost == k.g.cost);
  CHECK(back.metadata == k.g.metadata);
  CHECK(n.index_map_tree == m.index_map_tree);
  CHECK(n.index_map_avals.size() == 3);
  CHECK(n.index_map_avals[2].is_ref);
  CHECK(n.vmapped_dims == m.vmapped_dims);
  CHECK(n.scratch_avals[0].memory_space == Space::smem);
  CHECK(n.num_index_operands == 1);
  CHECK(n.num_inputs == 2);
  CHECK(n.num_outputs == 1);
  CHECK(n.get_grid_indices != no_region);
  CHECK(n.local_grid_env != no_region);
  CHECK(n.debug);
  CHECK(json.find("\"0x3dcccccd\"") != std::string::npos);  // 0.1f, exactly
  CHECK(back.facts.multiples == std::vector<std::int64_t>{4});
  CHECK(back.short_offsets);
}

TEST_CASE("a text of before there were classes says nothing of its symbols") {
  const Graph g = vector_add();
  std::string json = to_json(g);
  json = replaced(json, "\"palladium_graph\":3", "\"palladium_graph\":1");
  json = replaced(json, "\"symbol_multiples\":[],", "");
  json = replaced(json, "\"short_offsets\":false,", "");
  expect_equal(g, from_json(json));
}

TEST_CASE("what a kernel tells is read back, and stays in its order") {
  HandMade k({{{8}, f32}}, {{{8}, f32}});
  const ValueId x = k.b.load(k.refs[0]), s = k.b.constant(i32, 3);
  k.b.add(Op::DebugPrint, {x}, {{7}, 0, "a \"quote\", a \\ and {}"});
  k.b.add(Op::DebugPrint, {s, s}, {{9}, 0, "{}\n{}"});
  k.b.add(Op::DebugCheck, {k.b.constant(bool_, 1)}, {{8}, 0, "holds"});
  k.b.store(k.refs[1], x);
  const Graph g = k.canonical();
  expect_equal(g, from_json(to_json(g)));
  CHECK(to_text(g) == R"(kernel k
  grid
  args[0]: f32[8] in blocks [8]
  outputs[0]: f32[8] in blocks [8]
{ %0: ref block f32[8] %1: ref block f32[8]
  %2: f32[8] = load %0
  debug_print 7 "a \"quote\", a \\ and {}" %2
  %3: i32[] = constant 3
  debug_print 9 "{}\n{}" %3, %3
  %4: bool[] = constant true
  debug_check 8 "holds" %4
  store %1, %2
}
)");
  Graph other = g;
  for (Inst& i : other.insts)
    if (i.op == Op::DebugCheck) i.attr.text = "held";
  CHECK(canonical_bytes(other) != canonical_bytes(g));
}

TEST_CASE("a graph read from JSON may be copied and outlive the original") {
  Graph copy;
  {
    HandMade k({{{8}, f32}}, {{{8}, f32}});
    k.b.store(k.refs[1],
              k.b.load(k.refs[0], no_value, no_value, {"a/rather/long/path/to/attention.cpp", 9}));
    const Graph read = from_json(to_json(k.canonical()));
    copy = canonicalize(read);
  }
  CHECK(to_text(copy, true).find("; attention.cpp:9") != std::string::npos);
}

TEST_CASE("what is wrong with a text is said") {
  const std::string json = to_json(vector_add());
  const auto error = [&](const std::string& text, const char* what) {
    CHECK_THROWS_WITH(from_json(text),
                      ContainsSubstring("graph JSON: ") && ContainsSubstring(what));
  };
  error("", "parse");
  error("[]", "expected an object with 'palladium_graph'");
  error("{}", "'palladium_graph' is missing");
  for (const char* other : {"0", "4"})
    error(replaced(json, "\"palladium_graph\":3", std::string("\"palladium_graph\":") + other),
          "but this Palladium reads versions 1 to 3");
  error(replaced(json, "\"symbol_multiples\":[]", "\"symbol_multiples\":[\"8\"]"),
        "not one multiple per symbol");
  error(replaced(json, "\"symbol_multiples\":[]", "\"symbol_multiples\":[8]"), "is no string");
  error(replaced(json, "\"short_offsets\":false", "\"short_offsets\":true"),
        "short offsets where all arrays are known");
  error(replaced(json, "\"op\":\"add\"", "\"op\":\"nothing\""), "unknown operation 'nothing'");
  error(replaced(json, "\"op\":\"add\"", "\"op\":7"), "'op' is no string");
  error(replaced(json, "\"op\":\"add\"", "\"op\":\"exp\""), "expected 1 operands, given 2");
  error(replaced(json, "\"op\":\"add\"", "\"op\":\"lt\""),
        "has type 'f32[8]' instead of 'bool[8]'");
  error(replaced(json, "\"dtype\":\"f32\"", "\"dtype\":\"f33\""), "unknown dtype 'f33'");
  error(replaced(json, "\"args\":[0]", "\"args\":[4000000000]"), "out of range");
  error(replaced(json, "\"args\":[0]", "\"args\":[-1]"), "out of range");
  error(replaced(json, "\"args\":[0]", "\"args\":[5]"), "is used where it is not defined");
  error(replaced(json, "\"num_inputs\":2", "\"num_inputs\":3"), "block mappings");
  error(replaced(json, "\"shape\":[\"8\"]", "\"shape\":[\"8x\"]"), "no 64-bit integer");
  error(replaced(json, "\"grid\":[\"1\"]", "\"grid\":[{\"symbol\":0}]"), "symbolic dim");
  error(replaced(json, "\"insts\":[{", "\"insts\":[{\"op\":\"param\"},{"), "");
  error(std::string(1000, '['), "nested deeper than 256");
}

TEST_CASE("instructions and regions that nothing lists are refused") {
  Graph g = vector_add();
  g.add_region();
  CHECK_THROWS_WITH(from_json(to_json(g)), ContainsSubstring("region 2 belongs to nothing"));
  g = vector_add();
  g.add({Op::Constant, Type::value(f32), {}, {}, {}});
  CHECK_THROWS_WITH(from_json(to_json(g)), ContainsSubstring("stands in no region"));
}

TEST_CASE("truncated texts are refused") {
  const std::string json = to_json(vector_add());
  for (std::size_t n = 0; n < json.size(); n += 3) REQUIRE_FALSE(accepted(json.substr(0, n)));
}

TEST_CASE("damaged texts are refused or read as a graph that keeps the contract") {
  Random random(1);
  int read = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    test::RandomOptions options;
    options.statements = 10;
    const std::string json = to_json(random_kernel(seed, options).graph);
    for (int i = 0; i < 400; ++i) {
      std::string text = json;
      for (int n = random.between(1, 2); n > 0; --n) {
        const auto at = static_cast<std::size_t>(random.below(static_cast<int>(text.size())));
        switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text[at] = static_cast<char>('0' + random.below(10)); break;
        case 2: text.erase(at, static_cast<std::size_t>(random.between(1, 40))); break;
        case 3: {  // a piece of it somewhere else
          const auto from = static_cast<std::size_t>(random.below(static_cast<int>(text.size())));
          text.insert(at, text.substr(from, static_cast<std::size_t>(random.between(1, 60))));
        }
        }
      }
      ++(accepted(text) ? read : refused);
    }
  }
  CHECK(read > 10);  // names, lines, constants
  CHECK(refused > 500);
}

TEST_CASE("numbers in place of other numbers are refused or keep the contract") {
  Random random(2);
  const std::string json = to_json(random_kernel(5).graph);
  for (int i = 0; i < 500; ++i) {
    std::string text = json;
    std::size_t at = static_cast<std::size_t>(random.below(static_cast<int>(text.size())));
    at = text.find_first_of("0123456789", at);
    if (at == std::string::npos) continue;
    const std::size_t end = text.find_first_not_of("0123456789", at);
    const char* const numbers[] = {"0",
                                   "1",
                                   "2",
                                   "7",
                                   "255",
                                   "65536",
                                   "4294967295",
                                   "9223372036854775807",
                                   "-9223372036854775808"};
    text.replace(at, end - at, numbers[random.below(9)]);
    accepted(text);
  }
}

TEST_CASE("numbers in JSON that no kernel can have are refused with what they are") {
  const std::string json = to_json(vector_add());
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& sentence) {
    CAPTURE(from, to);
    CHECK_THROWS_WITH(from_json(replaced(json, from, to)), ContainsSubstring(sentence));
  };
  refused(R"("grid":["1"])", R"("grid":["4294967296"])", "grid axis 0 has 4294967296 programs");
  refused(R"("cluster":[])", R"("cluster":[65536,65536])", "a cluster of more than 16 blocks");
  refused(R"("size":"8")", R"("size":"4611686018427387904")", "a block has at most 2147483647");
  refused(R"("size":"8")", R"("size":"9223372036854775808")", "'size' is no 64-bit integer");
  const std::string array = R"("array_aval":{"dtype":"f32","shape":[)";
  refused(array + R"("8"])", array + R"("4611686018427387904"])", "span at most 2^47 elements");
  CHECK(accepted(json));
}
