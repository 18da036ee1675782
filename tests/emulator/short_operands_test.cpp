// Operands that threads convert between a copy and a product, in a text that goes over all slots of
// what is copied: interpreter and emulator agree, races on, for any number of iterations.
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/cuda/lower.hpp"
#include "codegen/graph/packed.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/tolerance.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

namespace {

struct Weights {
  DType dtype = i8, wide = bf16;
  std::int64_t m = 128, n = 128, steps = 7;
  bool scaled = false;     // by column, before the product
  bool activated = false;  // x / (1 + |x|) of what is converted
  bool persistent = false;
  int num_stages = 0;
};

graph::Graph graph_of(const Weights& w) {
  constexpr std::int64_t rows = 64, columns = 64, depth = 64;
  const std::int64_t k = w.steps * depth;
  const auto body = [=](Ref a, Ref b, Ref scale, Ref o) {
    const auto add = [&](Index l, Value sum) {
      const Slice now = ds(l * depth, depth);
      Value x = b[{now, _}].astype(w.wide);
      if (w.scaled) x = x * scale[_];
      if (w.activated) x = x / (abs(x) + 1.0f);
      return sum + dot(a[{_, now}], x);
    };
    o[_] = loop(0, w.steps, add, zeros({rows, columns}, f32));
  };
  PallasCallOptions options{.name = "weights",
                            .out_type = {{w.m, w.n}, f32},
                            .grid = {w.m / rows, w.n / columns},
                            .compiler_params = {.num_warps = 4,
                                                .num_stages = w.num_stages,
                                                .warp_specialize = true,
                                                .persistent = w.persistent}};
  options.in_specs = {{{rows, k},
                       [](Index i, Index) {
                         return Indices{i, 0};
                       }},
                      {{k, columns},
                       [](Index, Index j) {
                         return Indices{0, j};
                       }},
                      {{1, columns}, [](Index, Index j) {
                         return Indices{0, j};
                       }}};
  options.out_specs = {{{rows, columns}, [](Index i, Index j) { return Indices{i, j}; }}};
  const graph::Graph g = traced(
      body, options, {array({w.m, k}, w.wide), array({k, w.n}, w.dtype), array({1, w.n}, w.wide)});
  return graph::has_packed(g) ? graph::in_bytes(g) : g;
}

std::string decided(const graph::Graph& g) {
  return lowered::to_text(cuda::lower(g, {.compute_capability = 90}));
}

void check(const Weights& w) {
  CAPTURE(w.dtype.name(), w.wide.name(), w.steps, w.scaled, w.persistent, w.num_stages);
  const graph::Graph g = graph_of(w);
  CHECK_THAT(decided(g), ContainsSubstring("over the slots of ring"));
  CHECK(on_all_targets(g, {}, 90) == "");
}

}  // namespace

TEST_CASE("converted operands go over the slots of what is copied, however many iterations") {
  for (const std::int64_t steps : {6, 7, 8, 9, 10, 11, 12, 13, 19}) check({.steps = steps});
}

TEST_CASE("operands of each dtype are converted in the slots of what is copied") {
  for (const DType wide : {bf16, f16})
    for (const DType dtype : {i8, u8, i4, u4, f8e4m3})
      check({.dtype = dtype, .wide = wide, .scaled = dtype == i4 || wide == f16});
}

TEST_CASE("the slots of converted operands go on from program to program") {
  for (const std::int64_t steps : {6, 7, 8, 11})
    check({.m = 320, .n = 192, .steps = steps, .persistent = true});
}

TEST_CASE("slots that somebody gave stay, and are gone over where converted operands can be") {
  check({.steps = 10, .num_stages = 3});
  check({.steps = 8, .num_stages = 6});
  const graph::Graph four = graph_of({.steps = 9, .num_stages = 4});
  CHECK_THAT(decided(four), !ContainsSubstring("over the slots of ring"));
  CHECK(on_all_targets(four, {}, 90) == "");
}

TEST_CASE("an operand of many instructions is not written again for each slot") {
  const graph::Graph g = graph_of({.steps = 8, .activated = true});
  CHECK_THAT(decided(g), !ContainsSubstring("over the slots of ring"));
  CHECK(on_all_targets(g, {}, 90) == "");
}
