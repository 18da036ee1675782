// Programs of 8 and 16 warps compute what those of 4 do.
#include <catch2/catch_test_macros.hpp>

#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

/// "" if the kernel agrees on interpreter and emulator.
std::string both(const graph::Graph& g, std::vector<std::int64_t> symbols = {}, int cc = 90) {
  Random random(7);
  test::Call a = random_call(g, symbols, random, true), b = a;
  const Tolerance tolerance = tolerance_of(g, a);
  run_interpreter(g, a);
  run_emulator(g, {.compute_capability = cc}, b);
  return difference(g, a, b, tolerance);
}

}  // namespace

TEST_CASE("elementwise kernels, softmax and layer norm agree at 8 and 16 warps") {
  for (const int n : {8, 16}) {
    INFO(n << " warps");
    CHECK(both(by_warps(n, add_graph(10'007, 2048))) == "");
    CHECK(both(by_warps(n, add_graph(1003, 256, f16))) == "");
    CHECK(both(by_warps(n, softmax_graph(1000)), {5}) == "");
    CHECK(both(by_warps(n, softmax_graph(300, 8, bf16)), {11}) == "");
    CHECK(both(by_warps(n, softmax_graph(16'384)), {2}) == "");
    CHECK(both(by_warps(n, layer_norm_graph()), {6}) == "");
  }
}

TEST_CASE("matrix products agree at 8 and 16 warps for every operand type") {
  for (const int n : {8, 16})
    for (const int cc : {75, 80, 90})
      for (const DType t : {f16, bf16, f32, i8}) {
        INFO(n << " warps, " << t.name() << " on sm_" << cc);
        CHECK(both(by_warps(n, matmul_graph(t, {.m = 70, .n = 140, .k = 50, .block_n = 128})), {},
                   cc) == "");
      }
}

TEST_CASE("products of all shapes and orders agree at 8 and 16 warps") {
  for (const int n : {8, 16})
    for (const bool transposed : {false, true}) {
      INFO(n << " warps, " << transposed);
      const MatmulShape wide{.m = 16,
                             .n = 300,
                             .k = 16,
                             .block_m = 16,
                             .block_n = 256,
                             .block_k = 16,
                             .trans_a = transposed,
                             .trans_b = transposed};
      const MatmulShape tall{.m = 300,
                             .n = 8,
                             .k = 16,
                             .block_m = 256,
                             .block_n = 8,
                             .block_k = 16,
                             .trans_a = transposed,
                             .trans_b = transposed};
      CHECK(both(by_warps(n, matmul_graph(f16, wide))) == "");
      CHECK(both(by_warps(n, matmul_graph(f16, tall))) == "");
      CHECK(both(by_warps(n, matmul_graph(f32, wide, Precision::tf32))) == "");
    }
}

TEST_CASE("relayouts through shared memory agree at 8 and 16 warps") {
  for (const int n : {8, 16}) {
    const graph::Graph turned = traced(
        [](Ref x, Ref o, Ref p) {
          const Value v = dot(x[_], x[_], {.trans_b = true});
          o[_] = transpose(v, {1, 0}) + sum(v, {.axis = {1}, .keepdims = true});
          p[_] = reshape(v, {32, 128});
        },
        {.name = "turned", .out_type = {{{64, 64}, f32}, {{32, 128}, f32}}},
        {array({64, 32}, f16)});
    for (const int cc : {75, 90}) CHECK(both(by_warps(n, turned), {}, cc) == "");
  }
}

TEST_CASE("random kernels agree at 4, 8 and 16 warps") {
  const int architectures[] = {75, 80, 90, 100};
  for_seeds(300, 30, [&](std::uint64_t seed) {
    RandomKernel k = random_kernel(seed, {.aliases = seed % 5 == 0});
    Random random(seed);
    const test::Call call = random_call(k.graph, k.symbols, random, true);
    test::Call meant = call;
    run_interpreter(k.graph, meant, false);
    for (const int n : {4, 8, 16}) {
      INFO(n << " warps");
      test::Call got = call;
      run_emulator(by_warps(n, k.graph), {.compute_capability = architectures[seed % 4]}, got,
                   false);
      CHECK(difference(k.graph, meant, got) == "");
    }
  });
}
