// pl::Buffered: how many copies of a window's blocks there are, each window its own.
#include <algorithm>
#include <functional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
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

/// Sums of products over as many iterations of a sequential axis.
graph::Graph sums(const Buffers& of, int iterations, DType t = f16) {
  return traced(
      [](Ref a, Ref b, Ref o) {
        const Value k = program_id(0);
        when(k == 0, [&] { o[_] = zeros({64, 64}, f32); });
        o[_] = o[_] + dot(a[_], b[_]);
      },
      {.name = "sums",
       .out_type = ShapeDtype{{64, 64}, f32},
       .grid = {iterations},
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
      {array({64, 32 * iterations}, t), array({32 * iterations, 64}, t)});
}

/// Slots of each ring, most first.
std::vector<int> slots(const graph::Graph& g, int cc) {
  std::vector<int> all;
  for (const lowered::Ring& r : cuda::lower(g, {.compute_capability = cc}).rings)
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
    CHECK(remarks(sums({.a = 1, .b = 3}, 20), cc)
              .find("args[0]: not pipelined, as pl::Buffered(1) says") != std::string::npos);
    for (const int many : {200, 1 << 30})
      CHECK(remarks(sums({.a = many}, 300), cc)
                .find(fmt::format("stages, not {}: a block has no more shared", many)) !=
            std::string::npos);
  }
}

TEST_CASE("windows of different numbers of copies agree over an axis of the grid") {
  for (const int cc : {80, 90})
    for (const auto& [a, b] : {std::pair{1, 3}, {2, 5}, {3, 1}, {2, 0}})
      for (const int iterations : {1, 3, 6}) {
        INFO(a << " and " << b << " copies, " << iterations << " iterations on " << cc);
        CHECK(on_all_targets(sums({.a = a, .b = b}, iterations), {}, cc) == "");
      }
}

TEST_CASE("windows of different numbers of copies agree for loops of 0 to 6 iterations") {
  constexpr int programs = 7;
  for (const int cc : {80, 90})
    for (const auto& [a, b] : {std::pair{1, 3}, {2, 5}, {5, 2}, {3, 1}}) {
      INFO(a << " and " << b << " copies on " << cc);
      const auto whole = [](int copies, std::int64_t rows, std::int64_t columns) {
        return BlockSpec{{rows, columns},
                         [](Index) {
                           return Indices{0, 0};
                         },
                         {.pipeline_mode = Buffered(copies)}};
      };
      constexpr int depth = 32 * programs + 1024;  // too much to stage at once
      const graph::Graph g = traced(
          [](Ref a, Ref b, Ref o) {
            o[_] = loop(
                0, program_id(0),
                [&](Index k, Value sum) {
                  return sum + dot(a[{_, ds(k * 32, 32)}], b[{ds(k * 32, 32), _}]);
                },
                zeros({64, 64}, f32));
          },
          {.name = "sums",
           .out_type = ShapeDtype{{64 * programs, 64}, f32},
           .grid = {programs},
           .in_specs = {whole(a, 64, depth), whole(b, depth, 64)},
           .out_specs = {{{64, 64},
                          [](Index i) {
                            return Indices{i, 0};
                          }}}},
          {array({64, depth}, f16), array({depth, 64}, f16)});
      CHECK(slots(g, cc) == (std::min(a, b) == 1
                                 ? std::vector<int>{std::max(a, b)}
                                 : std::vector<int>{std::max(a, b), std::min(a, b)}));
      CHECK(on_all_targets(g, {}, cc) == "");
    }
}
