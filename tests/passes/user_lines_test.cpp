// What is emitted for a kernel, which its key stands for, does not depend on the user's lines.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "codegen/cuda/emit.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"

using namespace palladium;
using namespace palladium::test;
using pl::_;

namespace {

std::string text_of_lines(graph::Graph g, int lines) {
  g.where.resize(g.insts.size());
  for (std::size_t i = 0; i < g.where.size(); ++i)
    g.where[i] = {"user.cpp", 1 + static_cast<int>(i) % lines};
  return cuda::emit(g, {.compute_capability = 90}).text;
}

void check_lines(const graph::Graph& g) {
  const std::string text = text_of_lines(g, 1);
  CHECK(text_of_lines(g, 2) == text);
  CHECK(text_of_lines(g, 1000) == text);
}

}  // namespace

TEST_CASE("a loop of one assignment stands on one line, wherever the user wrote it") {
  const graph::Graph g = traced(
      [](Ref x, Ref y, Ref o) {
        const Value first = x[_], other = y[_];
        o[_] = loop(
            0, y[{0}].astype(i32), [&](Index, Value) { return other; }, first);
      },
      {.name = "taken", .out_type = ShapeDtype{{128}, f32}}, {array({128}), array({128})});
  check_lines(g);
}

TEST_CASE("the text of random kernels is the same on one line and on many") {
  for_seeds(1, 60, [](std::uint64_t seed) { check_lines(random_kernel(seed).graph); });
}
