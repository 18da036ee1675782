// The passes as a whole: which ran, in which order, and who is blamed for a broken program.
#include "codegen/passes/manifest.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <span>
#include <string>
#include <vector>

#include "codegen/graph/transform.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/run.hpp"
#include "palladium/error.hpp"
#include "tests/passes/lowering.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

graph::Graph sums(const std::string& columns) {
  return graph_of(whole({"f32[8," + columns + "]"}, {"f32[8]"},
                        "  %2: f32[8," + columns + "] = load %0\n" +
                            "  %3: f32[8] = reduce_sum %2 [1]\n  store %1, %3"));
}

std::vector<std::string> names(std::span<const passes::Pass> passes) {
  std::vector<std::string> all;
  for (const passes::Pass& p : passes) all.emplace_back(p.name);
  return all;
}

std::string error_of(const graph::Graph& g, const passes::Observer& observer) {
  try {
    passes::run_passes(g, {.compute_capability = 90, .max_shared_bytes = 232448}, observer);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("passes run in the order of the manifest, those of the chosen attempt last") {
  const graph::Graph g = sums("64");
  std::vector<std::string> ran;
  const lowered::Program l =
      passes::run_passes(g, {.compute_capability = 90, .max_shared_bytes = 232448},
                         [&](const passes::PassRun& run, const lowered::Program& behind) {
                           CHECK(run.attempt == passes::attempt_of(behind));
                           CHECK(run.ms >= 0);
                           ran.emplace_back(run.pass);
                         });
  std::vector<std::string> expected = names(passes::attempt_passes());
  for (const std::string& name : names(passes::chosen_passes())) expected.push_back(name);
  CHECK(ran == expected);
  CHECK(passes::attempt_of(l) == "4");
}

TEST_CASE("names of passes are their own, and each says why it stands where it does") {
  std::vector<std::string> all = names(passes::attempt_passes());
  for (const passes::Pass& p : passes::chosen_passes()) {
    CHECK(std::ranges::find(all, p.name) == all.end());
    CHECK(std::string(p.why) != "");
  }
}

TEST_CASE(
    "who finds a program broken behind a pass names the pass, the program before and behind it") {
  const std::string error = error_of(sums("64"), [](const passes::PassRun& run, const auto&) {
    if (std::string(run.pass) == "build_statements") throw InternalError("it is broken");
  });
  CHECK_THAT(error, Shows({"it is broken", "in the pass build_statements of kernel", "4 warps",
                           "before it: lowered", "behind it: lowered", "reduce_sum"}));
  const std::size_t behind = error.find("behind it:");
  CHECK(error.substr(0, behind).find("reduce_sum") == std::string::npos);
}

TEST_CASE("a pass that leaves a broken graph is refused by its name, with the graph that it left") {
  graph::Graph g = sums("64");
  graph::Region& body = g[g.bodies[0].region];
  body.insts.push_back(body.insts.back());
  const std::string broken = " is listed twice";
  for (const auto& all : {passes::attempt_passes(), passes::chosen_passes()})
    for (const passes::Pass& p : all) {
      const passes::Program l =
          passes::start(g, {.compute_capability = 90, .max_shared_bytes = 232448}, 4, true);
      CAPTURE(p.name);
      if (p.edits == passes::Edits::nothing)
        CHECK_NOTHROW(passes::verify_behind(p, l));
      else
        CHECK_THROWS_MATCHES(passes::verify_behind(p, l), InternalError,
                             Catch::Matchers::MessageMatches(Shows(
                                 {std::string(p.name) + " leaves a broken graph: ", broken})));
    }
  CHECK_THAT(error_of(g, {}), Shows({"arrange_sums leaves a broken graph: ", broken,
                                     "in the pass arrange_sums of kernel", "before it: kernel",
                                     "reduce_sum", "behind it: kernel", "reduce_sum"}));
}

TEST_CASE(
    "products take floats of 8 bits as they are in graphs that passes have edited, no others") {
  const graph::Graph g =
      graph_of(whole({"f8e4m3[32,32]", "f8e5m2[32,32]"}, {"f32[32,32]"},
                     "  %3: f8e4m3[32,32] = load %0\n  %4: f8e5m2[32,32] = load %1\n"
                     "  %5: f16[32,32] = cast %3\n  %6: f16[32,32] = cast %4\n"
                     "  %7: f32[32,32] = dot %5, %6 trans_b\n  store %2, %7"));
  CHECK(graph::defect(g) == "");
  passes::Program l =
      passes::start(g, {.compute_capability = 90, .max_shared_bytes = 232448}, 4, true);
  passes::legalize_dot_operands(l);
  CHECK(graph::defect(l.graph) == "a product of floats of 8 bits");
  CHECK(graph::defect(l.graph, graph::Form::lowered) == "");
}

TEST_CASE("who says so has graphs not checked behind passes, or checked") {
  graph::Graph g = sums("64");
  g.grid_rows = -1;
  const Environment off("PALLADIUM_VERIFY", "0");
  CHECK(error_of(g, {}).empty());
  const Environment on("PALLADIUM_VERIFY", "1");
  CHECK_THAT(error_of(g, {}), Shows({"grid_rows is not 0 to 65536"}));
  const Environment wrong("PALLADIUM_VERIFY", "yes");
  CHECK_THROWS_AS(error_of(sums("64"), {}), CompileError);
}
