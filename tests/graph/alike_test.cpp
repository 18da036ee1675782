// Extents along which arrays are cut alike, and the one symbol that they become.
#include <catch2/catch_test_macros.hpp>

#include "codegen/graph/classes.hpp"
#include "codegen/graph/transform.hpp"
#include "tests/support/graph_text.hpp"

using namespace palladium;
using namespace palladium::test;
using Pairs = std::vector<graph::SymbolPair>;

namespace {

struct Cut {
  std::string array;   // "f32[s0]"
  std::string blocks;  // "[64]"
  std::string map;     // what its index map says: "yield %0"; none: the whole array
};

/// A kernel of two grid axes that touches nothing. The cuts of inputs, then of one output.
graph::Graph kernel_of(const std::vector<Cut>& cuts) {
  std::string text = "kernel k\n  grid 4, 4\n", refs = "{";
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const bool is_output = i + 1 == cuts.size();
    text += "  " + (is_output ? std::string("outputs[0]") : "args[" + std::to_string(i) + "]") +
            ": " + cuts[i].array + " in blocks " + cuts[i].blocks + "\n";
    if (!cuts[i].map.empty())
      text += "    { %0: i32[] %1: i32[]\n      " + cuts[i].map + "\n    }\n";
    refs += " %" + std::to_string(i) + ": ref block " +
            cuts[i].array.substr(0, cuts[i].array.find('[')) +
            cuts[i].blocks.substr(0, cuts[i].blocks.find(']') + 1);
  }
  return graph_of(text + refs + "\n}\n");
}

Pairs alike(const Cut& x, const Cut& y) {
  return graph::alike_symbols(kernel_of({x, y, {"f32[64,64]", "[64,64]", "yield %0, %1"}}));
}

const Cut along_rows{"f32[s0]", "[64]", "yield %0"};

}  // namespace

TEST_CASE("extents are cut alike by blocks of one size at one index") {
  CHECK(alike(along_rows, {"f16[s1]", "[64]", "yield %0"}) == Pairs{{0, 1}});
  CHECK(alike(along_rows, {"f16[s1]", "[64]", "yield %1"}).empty());
  CHECK(alike(along_rows, {"f16[s1]", "[32]", "yield %0"}).empty());
  CHECK(alike(along_rows, {"f16[s0]", "[64]", "yield %0"}).empty());
  CHECK(alike(along_rows, {"f16[100]", "[64]", "yield %0"}).empty());
  CHECK(alike({"f32[s0,s1]", "[8,64]", "yield %0, %1"}, {"f32[s2,s3]", "[8,64]", "yield %0, %1"}) ==
        Pairs{{0, 2}, {1, 3}});
  CHECK(alike({"f32[s0,s1]", "[8,64]", "yield %0, %1"}, {"f32[s2]", "[64]", "yield %1"}) ==
        Pairs{{1, 2}});
}

TEST_CASE("sizes of a product are cut alike along its sum alone") {
  // Square matrices have no kernel of their own: rows and columns are walked by other axes.
  const graph::Graph g = kernel_of({{"f32[s0,s1]", "[64,64]", "yield %0, %1"},
                                    {"f32[s2,s3]", "[64,64]", "yield %1, %0"},
                                    {"f32[s0,s3]", "[64,64]", "yield %0, %0"}});
  CHECK(graph::alike_symbols(g) == Pairs{{0, 3}, {1, 2}});
  const graph::Graph h = kernel_of({{"f32[s0,8]", "[64,8]", "yield %0, %1"},
                                    {"f32[8,s1]", "[8,64]", "yield %0, %1"},
                                    {"f32[s0,s1]", "[64,64]", "yield %0, %1"}});
  CHECK(graph::alike_symbols(h).empty());
}

TEST_CASE("indices are one where their expressions are") {
  const auto twice = [](const std::string& factor) {
    return "%2: i32[] = constant " + factor + "\n      %3: i32[] = mul %0, %2\n      yield %3";
  };
  const Cut x{"f32[s0]", "[64]", twice("2")};
  CHECK(alike(x, {"f32[s1]", "[64]", twice("2")}) == Pairs{{0, 1}});
  CHECK(alike(x, {"f32[s1]", "[64]", twice("3")}).empty());
  CHECK(alike(x, along_rows).empty());
}

TEST_CASE("blocks that stay at the beginning are cut alike") {
  const Cut x{"f32[s0]", "[64]", "%2: i32[] = constant 0\n      yield %2"};
  CHECK(alike(x, {"f32[s1]", "[64]", "%2: i32[] = constant 0\n      yield %2"}) == Pairs{{0, 1}});
  CHECK(alike(x, {"f32[s1]", "[64]", "%2: i32[] = constant 1\n      yield %2"}).empty());
}

TEST_CASE("an extent of outputs alone is like no other") {
  const graph::Graph g =
      kernel_of({along_rows, {"f32[8]", "[8]", "yield %1"}, {"f32[s1]", "[64]", "yield %0"}});
  CHECK(graph::alike_symbols(g).empty());
}

TEST_CASE("symbols that are united are one, and those behind move up") {
  graph::Graph g = kernel_of({{"f16[s0,s1]", "[8,64]", "yield %0, %1"},
                              {"f16[s2,s3]", "[8,64]", "yield %0, %1"},
                              {"f16[s0,s3]", "[8,64]", "yield %0, %1"}});
  graph::set_multiples(g, {1, 8, 1, 1});
  const std::vector<std::uint32_t> group{0, 1, 2, 1};
  CHECK(graph::unite_symbols(g, group) == std::vector<std::uint32_t>{0, 1, 2, 1});
  graph::verify(g, "united");
  CHECK(g.num_symbols == 3);
  CHECK(g.facts.multiples == std::vector<std::int64_t>{1, 8, 1});
  const auto shape = [&](int m) { return to_string(g.mapping.block_mappings[m].array_aval); };
  CHECK(shape(0) == "f16[s0,s1]");
  CHECK(shape(1) == "f16[s2,s1]");
  CHECK(shape(2) == "f16[s0,s1]");

  const std::vector<std::uint32_t> rows{0, 1, 0};
  CHECK(graph::unite_symbols(g, rows) == std::vector<std::uint32_t>{0, 1, 0});
  CHECK(shape(1) == "f16[s0,s1]");
  CHECK(g.num_symbols == 2);
}
