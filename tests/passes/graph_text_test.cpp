// The reader of the graph's text, which the tests of passes start from.
#include <stdexcept>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "codegen/graph/transform.hpp"
#include "palladium/ops/registry.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/graph_text.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

void check_round_trip(const graph::Graph& g) {
  const std::string text = graph::to_text(g);
  INFO(text);
  const graph::Graph back = graph_of(text);
  CHECK(graph::to_text(back) == text);
  CHECK(graph::canonical_bytes(graph::canonicalize(back)) == graph::canonical_bytes(g));
}

}  // namespace

TEST_CASE("a graph that is read from its text is the same graph") {
  for (const ops::Entry& e : ops::registry()) {
    const std::vector<ArgType> types(e.inputs.begin(), e.inputs.end());
    check_round_trip(graph::from_json(e.factory().lower(types).json()));
  }
  for_seeds(0, 200, [](std::uint64_t seed) { check_round_trip(random_kernel(seed).graph); });
}

TEST_CASE("every kind of line of a graph's text is read") {
  const std::string text = R"(kernel odds
  grid i=s0, j=cdiv((s1 - 3), 8) sequential
  cluster c=2, d=1
  thread axis wg
  without fma
  approximate maths
  revisits allowed
  line info
  args[0]: f32[s0,3,8] in blocks [element(4,2,1),squeezed,8] strided aligned 4
  args[1]: u64[4] in blocks [4]
  outputs[0]: bf16[4,s1] in blocks [4,8]
  outputs[1]: u64[4] in blocks [4]
  scalar 0: f32
  alias: input 1 is output 1
warpgroups 2
{ %0: ref block f32[4,8] %1: ref smem u64[4] %2: f32[] %3: ref gmem bf16[4,8] %4: ref block u64[4] %5: ref regs f64[4]
  %6: i32[] = axis_index thread 0
  %7: ref block f32[3] = at %0 [%6, ds(1,3,2)]
  %8: bool[3] = constant false
  %9: f32[3] = constant nan 0x7fc00000
  %10: f32[3] = load %7 mask %8 other %9
  %11: i32[] = constant -2
  %12 = loop %11, %6 carry %10 step 3 unroll 2
    { %13: i32[] %14: f32[3]
      %15: f32[3] = mul %14, %10
      yield %15
    }
  %16: f32[3] = get %12 [0]
  %17: bf16[3] = cast %16
  %18: ref gmem bf16[3] = at %3 [3, ds(0,3)]
  store %18, %17 mask %8
  %19: u64[4] = constant 18446744073709551615
  store %1, %19
  %20: f64[4] = constant 0.1
  store %5, %20
}
)";
  CHECK(graph::to_text(graph_of(text)) == text);
}

TEST_CASE("the width of a program and its stages are read") {
  const std::string text =
      "kernel k\n  grid\n  outputs[0]: f32[8] in blocks [8]\nnum_warps 8\nnum_stages 3\n"
      "{ %0: ref block f32[8]\n  %1: f32[8] = constant 0\n  store %0, %1\n}\n";
  CHECK(graph_of(text).bodies[0].num_warps == 8);
  CHECK(graph_of(text).bodies[0].num_stages == 3);
  CHECK(graph::to_text(graph_of(text)) == text);
}

TEST_CASE("a text that is no graph is refused with its line") {
  const auto refusal = [](const char* text) -> std::string {
    try {
      graph_of(text);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "";
  };
  CHECK(refusal("kernel k\n  grid 4\n{\n  %0: f32[4] = constant x\n}")
            .starts_with("line 4: expected a number"));
  CHECK(refusal("kernel k\n  grid\n{\n  %0: f32[4] = frob\n}")
            .starts_with("line 4: 'frob' is no operation"));
  CHECK(refusal("kernel k\n  grid\n{ %0: ref block f32[4] %1\n}")
            .starts_with("line 3: expected ':'"));
  CHECK(refusal("kernel k\n  grid\n{ %0: ref block f32[4] load\n}")
            .starts_with("line 3: expected a parameter"));
  CHECK(refusal("kernel k\n  grid\n{ %0: ref block f32[]\n  atomic atomic_sub %0, %0\n}")
            .starts_with("line 4: 'atomic_sub' is no update"));
  CHECK(refusal("kernel k\n  grid\n{ %0: f32[]\n}") == "no line says what scalar 0 is");
  CHECK(refusal("kernel k\n  grid\n{\n  %1: f32[4] = neg %0\n}")
            .starts_with("line 4: %0 is not defined"));
  CHECK(refusal("kernel k\n  grid\n{\n  %0: f33[4] = constant 0\n}")
            .starts_with("line 4: 'f33' is no type"));
  CHECK(refusal("kernel k\n  grid\n{\n  %0: f32[4] = constant 0 1\n}")
            .starts_with("line 4: did not expect more"));
  CHECK(refusal("kernel k\n  grid\n{\n  %0: f32[4] = constant 0\n").find("ends too early") !=
        std::string::npos);
}
