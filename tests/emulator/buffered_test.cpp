// pl::Buffered: how many copies of a window's blocks there are, each window its own.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Buffers {
  int a = 0, b = 0, stages = 0;  // 0: not given
};

Buffered copies(int n) { return n == 0 ? Buffered() : Buffered(n); }

/// Sums of products over as many turns of a sequential axis.
graph::Graph sums(const Buffers& of, int turns, DType t = f16) {
  return traced(
      [](Ref a, Ref b, Ref o) {
        const Value k = program_id(0);
        when(k == 0, [&] { o[_] = zeros({64, 64}, f32); });
        o[_] = o[_] + dot(a[_], b[_]);
      },
      {.name = "sums",
       .out_type = ShapeDtype{{64, 64}, f32},
       .grid = {turns},
       .in_specs = {{{64, 32},
                     [](Index k) {
                       return Indices{0, k};
                     },
                     {.pipeline_mode = copies(of.a)}},
                    {{32, 64},
                     [](Index k) {
                       return Indices{k, 0};
                     },
                     {.pipeline_mode = copies(of.b)}}},
       .out_specs = {{{64, 64},
                      [](Index) {
                        return Indices{0, 0};
                      }}},
       .compiler_params = {.dimension_semantics = {sequential}, .num_stages = of.stages}},
      {array({64, 32 * std::max(turns, 1)}, t), array({32 * std::max(turns, 1), 64}, t)});
}

/// Slots of each ring, most first.
std::vector<int> slots(const graph::Graph& g, int cc) {
  std::vector<int> all;
  for (const passes::Ring& r : cuda::lower(g, {.compute_capability = cc}).rings)
    all.push_back(r.slots);
  std::ranges::sort(all, std::greater<>());
  return all;
}

std::string remarks(const graph::Graph& g, int cc) {
  std::string all;
  for (const Remark& r : cuda::lower(g, {.compute_capability = cc}).remarks) all += r.text + "\n";
  return all;
}

}  // namespace

TEST_CASE("each window has as many copies as pl::Buffered says, others as num_stages does") {
  using Slots = std::vector<int>;
  for (const int cc : {80, 90}) {
    CAPTURE(cc);
    CHECK(slots(sums({.a = 2, .b = 2}, 20), cc) == Slots{2});
    CHECK(slots(sums({.a = 5, .b = 2}, 20), cc) == Slots{5, 2});
    CHECK(slots(sums({.b = 3, .stages = 2}, 20), cc) == Slots{3, 2});
    CHECK(slots(sums({.a = 1, .b = 3}, 20), cc) == Slots{3});
    CHECK(slots(sums({.a = 1, .b = 1}, 20), cc).empty());
    CHECK(slots(sums({.a = 4, .stages = 1}, 20), cc) == Slots{4});
    CHECK(remarks(sums({.a = 1, .b = 3}, 20), cc).find(
              "args[0]: not pipelined, as pl::Buffered(1) says") != std::string::npos);
    CHECK(remarks(sums({.a = 200}, 300), cc).find("stages, not 200: a block has no more shared") !=
          std::string::npos);
  }
}

TEST_CASE("windows of different numbers of copies agree for any number of turns") {
  for (const int cc : {80, 90})
    for (const auto& [a, b] : {std::pair{1, 3}, {2, 5}, {5, 2}, {3, 1}, {2, 0}})
      for (const int turns : {0, 1, 2, 3, 5, 6}) {
        if (turns > 1 && turns < 6 && turns != a && turns != b && turns != a + 1) continue;
        INFO(a << " and " << b << " copies, " << turns << " turns on " << cc);
        CHECK(on_all_targets(sums({.a = a, .b = b}, turns), {}, cc) == "");
      }
}
