// Extents that only a call knows, in graphs.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/graph/extents.hpp"
#include "codegen/graph/transform.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using graph::Op;

namespace {

/// Rows of a table by a list of numbers, and how many these are.
graph::Graph rows_graph() {
  const Dim n = dim("n"), m = dim("m");
  return traced(
      [](Ref ids, Ref table, Ref o) {
        const Ref rows = table.at({_, ds(8, 8)}).transpose({1, 0});
        o[_] = rows[{_, ids[program_id(0)]}].reshape({1, 8}) * f32(ids.shape()[0]);
      },
      {.name = "rows",
       .out_type = ShapeDtype{{n, 8}, f32},
       .num_scalar_prefetch = 1,
       .grid = {n},
       .in_specs = {BlockSpec{}},
       .out_specs = {BlockSpec{{1, 8},
                               [](Index i, Ref) {
                                 return Indices{i, 0};
                               }}}},
      {array({n}, i32), array({m, 16}, f32)});
}

}  // namespace

TEST_CASE("a Ref of unknown extent is read back from text and JSON") {
  const graph::Graph g = rows_graph();
  const std::string text = to_text(g);
  CHECK_THAT(text, ContainsSubstring("f32[s1,16] in blocks [whole,16]") &&
                       ContainsSubstring("ref gmem f32[?,16]") &&
                       ContainsSubstring("dim_value [0]"));
  CHECK(canonical_bytes(graph::from_json(to_json(g))) == canonical_bytes(g));
  CHECK(to_text(graph_of(text)) == text);
}

TEST_CASE("the extents of views of a whole Ref are those of its array") {
  const graph::Graph g = rows_graph();
  for (const graph::ValueId v : g[g.bodies[0].region].insts)
    if (g[v].op == Op::RefTranspose) {
      CHECK(graph::extent_of(g, v, 0).same(8));
      CHECK(graph::extent_of(g, v, 1).same(dim_symbol(1)));
    }
}

TEST_CASE("with sizes a kernel has Refs of these extents") {
  const std::int64_t sizes[] = {5, 3};
  const graph::Graph g = graph::with_sizes(rows_graph(), sizes);
  const std::string text = to_text(g);
  CHECK_THAT(text, !ContainsSubstring("?") && !ContainsSubstring("dim_value") &&
                       ContainsSubstring("ref gmem f32[3,16]"));
}
