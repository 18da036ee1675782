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

std::string decided(const graph::Graph& g, int cc) {
  return lowered::to_text(cuda::lower(g, {.compute_capability = cc}));
}

// Where a product is summed up along K, as users write it.
enum class Sum {
  scratch,  // begun by a store
  first,    // begun in the first program of a sequential axis, stored in the last
  scoped,
  carry,
  block,
};

struct Products {
  Sum sum = Sum::scratch;
  DType dtype = f16;
  std::int64_t m = 320, n = 72, k = 192;
  int num_warps = 0;
  std::optional<bool> specialize = {};
};

graph::Graph products(const Products& p) {
  constexpr std::int64_t rows = 64, columns = 64, depth = 64;
  const int steps = static_cast<int>(cdiv(p.k, depth));
  const bool by_axis = p.sum == Sum::first;
  const auto body = [=](Ref a, Ref b, Ref o, Ref sums) {
    const auto product = [&](const Value& k) {
      return dot(a[{_, ds(k * depth, depth)}], b[{ds(k * depth, depth), _}]);
    };
    const auto sum_up = [&](Ref to) {
      to[_] = zeros({rows, columns});
      loop(0, steps, [&](Value k) { to[_] += product(k); });
    };
    switch (p.sum) {
    case Sum::scratch:
      sum_up(sums);
      o[_] = sums[_];
      break;
    case Sum::first:
      when(program_id(2) == 0, [&] { sums[_] = zeros({rows, columns}); });
      sums[_] += dot(a[_], b[_]);
      when(program_id(2) == steps - 1, [&] { o[_] = sums[_]; });
      break;
    case Sum::scoped:
      run_scoped(
          [&](Ref own) {
            sum_up(own);
            o[_] = own[_];
          },
          {gpu::REGS({rows, columns}, f32)});
      break;
    case Sum::carry:
      o[_] = loop(
          0, steps, {}, [&](Value k, Value sum) { return sum + product(k); },
          zeros({rows, columns}));
      break;
    case Sum::block: sum_up(o); break;
    }
  };
  const std::int64_t of_program = by_axis ? depth : steps * depth;
  PallasCallOptions options{.name = "products",
                            .out_type = {{p.m, p.n}, f32},
                            .grid = {cdiv(p.m, rows), cdiv(p.n, columns), by_axis ? steps : 1},
                            .scratch_types = {gpu::REGS({rows, columns}, f32)},
                            .compiler_params = {.num_warps = p.num_warps,
                                                .num_stages = 2,
                                                .warp_specialize = p.specialize,
                                                .persistent = true}};
  options.in_specs = {{{rows, of_program},
                       [](Index i, Index, Index k) {
                         return Indices{i, k};
                       }},
                      {{of_program, columns}, [](Index, Index j, Index k) {
                         return Indices{k, j};
                       }}};
  options.out_specs = {{{rows, columns}, [](Index i, Index j, Index) { return Indices{i, j}; }}};
  options.compiler_params.dimension_semantics = {parallel, parallel, sequential};
  return traced(body, options,
                {array({p.m, steps * depth}, p.dtype), array({steps * depth, p.n}, p.dtype)});
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
        const std::string text = decided(g, 90);
        CHECK_THAT(text, ContainsSubstring("grid loop programs"));
        CHECK((text.find("producer") != std::string::npos) == specialize);
      }
}

TEST_CASE("a ring goes on from program to program, whatever the number of iterations") {
  for (const int steps : {1, 2, 3, 4, 5, 7})
    for (const Sum sum : {Sum::scratch, Sum::first, Sum::carry}) {
      CAPTURE(steps, static_cast<int>(sum));
      graph::Graph g = products({.sum = sum, .k = 64 * steps, .specialize = true});
      g.bodies[0].num_stages = 3;
      CHECK(on_all_targets(g, {}, 90) == "");
    }
}

TEST_CASE("sums in registers begin anew in each program of a persistent block") {
  for (const Sum sum : {Sum::scratch, Sum::first, Sum::scoped, Sum::carry, Sum::block})
    for (const bool specialize : {false, true})
      for (const int num_warps : {4, 8}) {
        CAPTURE(static_cast<int>(sum), specialize, num_warps);
        const graph::Graph g =
            products({.sum = sum, .num_warps = num_warps, .specialize = specialize});
        CHECK_THAT(decided(g, 90), ContainsSubstring("grid loop programs"));
        CHECK(on_all_targets(g, {}, 90) == "");
      }
  for (const Sum sum : {Sum::scratch, Sum::first, Sum::scoped})
    for (const int cc : {75, 80, 120}) {
      CAPTURE(static_cast<int>(sum), cc);
      CHECK(on_all_targets(products({.sum = sum}), {}, cc) == "");
    }
}

TEST_CASE("what a program stored to scratch is not there for the next of its persistent block") {
  const BlockSpec rows{{64, 64}, [](Index i) { return Indices{i, 0}; }};
  const BlockSpec all{{64, 64}, [](Index) { return Indices{0, 0}; }};
  for (const bool stores : {true, false})
    for (const bool specialize : {false, true}) {
      const graph::Graph g = traced(
          [=](Ref a, Ref b, Ref o, Ref s, Ref n) {
            when((program_id(0) == 0) | stores, [&] {
              s[_] = zeros({64, 64});
              n[_] = zeros({1});
            });
            loop(0, 2, [&](Value i) {
              s[_] += dot(a[{_, ds(i * 32, 32)}], b[{ds(i * 32, 32), _}]);
              n[_] = n[_] + 1.f;
            });
            o[_] = s[_] * n[{0}];
          },
          {.name = "forgets",
           .out_type = {{640, 64}, f32},
           .grid = {10},
           .in_specs = {rows, all},
           .out_specs = {rows},
           .scratch_types = {gpu::REGS({64, 64}, f32), gpu::REGS({1}, f32)},
           .compiler_params = {.num_stages = 2, .warp_specialize = specialize, .persistent = true}},
          {array({640, 64}, f16), array({64, 64}, f16)});
      CAPTURE(stores, specialize);
      if (stores) {
        CHECK(on_all_targets(g, {}, 90) == "");
        continue;
      }
      Random random(1);
      test::Call call = random_call(g, {}, random, true);
      CHECK_THROWS_WITH(run_emulator(g, {.compute_capability = 90}, call),
                        ContainsSubstring("scratch[0] is read before anything was stored"));
    }
}
