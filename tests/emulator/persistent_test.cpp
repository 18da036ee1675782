// Blocks that go through several programs: interpreter and emulator agree, races on, for any number
// of programs for each.
#include <optional>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;

namespace {

graph::Graph persistent(graph::Graph g, std::optional<bool> specialize = {}, int num_stages = 0) {
  g.persistent = true;
  g.bodies[0].warp_specialize = specialize;
  g.bodies[0].num_stages = num_stages;
  return g;
}

std::string lowered(const graph::Graph& g, int cc) {
  return passes::to_text(cuda::lower(g, {.compute_capability = cc}));
}

}  // namespace

TEST_CASE("persistent blocks compute what a block for each program does") {
  for (const std::int64_t n : {1, 700, 4096, 10'007})
    CHECK(on_all_targets(persistent(add_graph(n, 512))) == "");
  CHECK(on_all_targets(persistent(softmax_graph(1000)), {11}) == "");
  CHECK(on_all_targets(persistent(layer_norm_graph()), {9}) == "");
  CHECK(on_all_targets(persistent(add_graph(1000, 128)), {}) == "");
}

TEST_CASE("persistent products agree for any number of programs, iterations and stages") {
  for (const int cc : {75, 80})
    for (const int stages : {1, 3})
      for (const std::int64_t m : {64, 300}) {
        CAPTURE(cc, stages, m);
        const MatmulShape s{.m = m, .n = 130, .k = 100};
        CHECK(on_all_targets(persistent(matmul_graph(f16, s), {}, stages), {}, cc) == "");
      }
}

TEST_CASE("a warpgroup that fetches goes on to the next program of a persistent block") {
  for (const bool specialize : {false, true})
    for (const std::int64_t k : {128, 328})
      for (const std::int64_t m : {64, 640}) {
        CAPTURE(specialize, k, m);
        const graph::Graph g = persistent(
            matmul_graph(bf16, {.m = m, .n = 136, .k = k, .block_k = 64}), specialize, 3);
        CHECK(on_all_targets(g, {}, 90) == "");
        const std::string text = lowered(g, 90);
        CHECK_THAT(text, ContainsSubstring("grid loop programs"));
        CHECK((text.find("producer") != std::string::npos) == specialize);
      }
}
