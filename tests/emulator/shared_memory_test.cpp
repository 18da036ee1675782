// Kernels that have less shared memory than a place of its own for everything compute the same.
#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/lower.hpp"
#include "palladium/error.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;
using palladium::_;

namespace {

enum class Outcome { agrees, differs, refused };

// What becomes of the kernel with as little shared memory as it can have, races being looked for.
Outcome with_little_memory(const graph::Graph& g, const std::vector<std::int64_t>& symbols = {},
                           int cc = 90) {
  cuda::Options options{.compute_capability = cc};
  const std::int64_t all = cuda::emit(g, options).shared_bytes;
  std::int64_t least = all;
  for (std::int64_t most = all - 16; most >= 0; most -= std::max<std::int64_t>(16, all / 8)) try {
      options.most_shared_bytes = most;
      least = cuda::emit(g, options).shared_bytes;
    } catch (const CompileError&) {
      break;
    }
  if (least == all) return Outcome::refused;
  options.most_shared_bytes = least;
  Random random(3);
  test::Call a = random_call(g, symbols, random, true), b = a;
  const Tolerance tolerance = tolerance_of(g, a, false);
  run_interpreter(g, a, false);
  run_emulator(g, options, b, false);
  return difference(g, a, b, tolerance) == "" ? Outcome::agrees : Outcome::differs;
}

// One program over whole arrays.
graph::Graph whole(const Body& body, std::vector<trace::ArgumentType> in, OutType out) {
  return traced(body, {.name = "whole", .out_type = std::move(out)}, in);
}

}  // namespace

TEST_CASE("kernels whose exchanges, operands and sums share memory compute the same") {
  CHECK(with_little_memory(softmax_graph(1000), {5}) == Outcome::agrees);
  CHECK(with_little_memory(softmax_graph(3000, 1, f16), {3}, 80) == Outcome::agrees);
  CHECK(with_little_memory(layer_norm_graph(), {6}) != Outcome::differs);
  CHECK(with_little_memory(
            whole(
                [](Ref x, Ref y, Ref o) {
                  Value a = dot(x[_], y[_]), b = dot(y[_], x[_]);
                  o[_] = a + cumsum(b, {.axis = 1}) + transpose(cumsum(a, {.axis = 0}));
                },
                {array({64, 64}, f16), array({64, 64}, f16)}, ShapeDtype{{64, 64}, f32}),
            {}, 80) == Outcome::agrees);
  CHECK(with_little_memory(whole(
            [](Ref x, Ref o) {
              o[_] = loop(
                  0, 3,
                  [&](Value i, Value sum) {
                    Value part = dot(x[{i, _, _}], x[{2 - i, _, _}]);
                    return sum + part / max(part) + cumsum(part, {.axis = 0});
                  },
                  zeros({48, 48}, f32));
            },
            {array({3, 48, 48}, f32)}, ShapeDtype{{48, 48}, f32})) == Outcome::agrees);
}

TEST_CASE("rows that warpgroups send by themselves may lie where others exchange, and are right") {
  for (const bool sums_first : {false, true}) {
    graph::Graph g = by_warps(8, traced(
                                     [=](Ref a, Ref b, Ref o, Ref columns) {
                                       loop(0, 4, [&](Index i) {
                                         const Slice rows = ds(i * 128, 128);
                                         const Value product = loop(
                                             0, 3,
                                             [&](Index l, Value s) {
                                               const Slice k = ds(l * 32, 32);
                                               return s + dot(a[{rows, k}], b[{k, _}]);
                                             },
                                             zeros({128, 64}, f32));
                                         const auto add_up = [&] {
                                           columns[{i, _}] = sum(product, {.axis = 0});
                                         };
                                         if (sums_first) add_up();
                                         o[{rows, _}] = f16(product);
                                         if (!sums_first) add_up();
                                       });
                                     },
                                     {.name = "sums_beside",
                                      .out_type = {{{512, 64}, f16}, {{4, 64}, f32}},
                                      .compiler_params = {.warp_specialize = true}},
                                     {array({512, 96}, f16), array({96, 64}, f16)}));
    CHECK(lowered::sends_by_warpgroups(cuda::lower(g, {.compute_capability = 90})));
    CHECK(with_little_memory(g) == Outcome::agrees);
  }
}

TEST_CASE("what threads exchange behind a loop lies where its copies were, and computes the same") {
  struct Block {
    std::int64_t m, n, k;
    int num_warps;
  };
  for (const Block& p :
       {Block{64, 64, 32, 4}, {64, 128, 64, 4}, {128, 128, 32, 8}, {32, 96, 32, 4}})
    for (const DType t : {f16, bf16, i8})
      for (const bool ragged : {false, true}) {
        CAPTURE(p.m, p.n, p.k, t.name(), ragged);
        const std::int64_t rows = ragged ? p.m + 5 : p.m;
        const DType of = t == i8 ? f16 : t;
        const graph::Graph g = by_warps(
            p.num_warps,
            traced(
                [=](Ref a, Ref b, Ref o, Ref q) {
                  const auto add = [&](Index i, Value sum) {
                    return sum + dot(a[{_, ds(i * p.k, p.k)}], b[{ds(i * p.k, p.k), _}]);
                  };
                  const Value sum = loop(0, 5, add, zeros({p.m, p.n}, f32));
                  o[_] = (sum * 0.25f).astype(t);
                  q[_] = transpose(maximum(sum, 0.0f)).astype(t);
                },
                {.name = "exchanged",
                 .out_type = {{{rows, p.n}, t}, {{p.n, rows}, t}},
                 .grid = {cdiv(rows, p.m)},
                 .in_specs = {BlockSpec{{p.m, 5 * p.k},
                                        [](Index i) {
                                          return Indices{i, 0};
                                        },
                                        {.fill = 0}},
                              BlockSpec{{5 * p.k, p.n},
                                        [](Index) {
                                          return Indices{0, 0};
                                        }}},
                 .out_specs = {BlockSpec{{p.m, p.n}, [](Index i) { return Indices{i, 0}; }},
                               BlockSpec{{p.n, p.m}, [](Index i) { return Indices{0, i}; }}}},
                {array({rows, 5 * p.k}, of), array({5 * p.k, p.n}, of)}));
        const lowered::Program l = cuda::lower(g, {.compute_capability = 80});
        REQUIRE(l.rings.size() == 1);
        const lowered::Ring& ring = l.rings.front();
        const std::int64_t begin = l.storages[ring.storage].shared().offset;
        CHECK(l.shared_bytes == begin + ring.slots * ring.slot_bytes);
        CHECK(on_all_targets(g, {}, 80) == "");
      }
}

TEST_CASE("random kernels compute the same where they share memory") {
  int shared = 0;
  for_seeds(1, 40, [&](std::uint64_t seed) {
    const RandomKernel k = random_kernel(seed, {.aliases = seed % 5 == 0});
    const Outcome outcome = with_little_memory(k.graph, k.symbols);
    CHECK(outcome != Outcome::differs);
    shared += outcome == Outcome::agrees;
  });
  CHECK(shared > 0);
}
