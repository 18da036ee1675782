// The passes as a whole: which ran, in which order, and who is blamed for a broken program.
#include "codegen/passes/manifest.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <span>
#include <string>
#include <vector>

#include "codegen/passes/run.hpp"
#include "palladium/error.hpp"
#include "tests/passes/lowering.hpp"

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
