// Programs of 8 and 16 warps compute what those of 4 do.
#include <catch2/catch_test_macros.hpp>

#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tolerance.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("elementwise kernels, softmax and layer norm agree at 8 and 16 warps") {
  for (const int n : {8, 16}) {
    INFO(n << " warps");
    CHECK(on_all_targets(by_warps(n, add_graph(10'007, 2048))) == "");
    CHECK(on_all_targets(by_warps(n, add_graph(1003, 256, f16))) == "");
    CHECK(on_all_targets(by_warps(n, softmax_graph(1000)), {5}) == "");
    CHECK(on_all_targets(by_warps(n, softmax_graph(300, 8, bf16)), {11}) == "");
    CHECK(on_all_targets(by_warps(n, softmax_graph(16'384)), {2}) == "");
    CHECK(on_all_targets(by_warps(n, layer_norm_graph()), {6}) == "");
  }
}

TEST_CASE("matrix products agree at 8 and 16 warps for every operand type") {
  for (const int n : {8, 16})
    for (const int cc : {75, 80, 90})
      for (const DType t : {f16, bf16, f32, i8}) {
        INFO(n << " warps, " << t.name() << " on sm_" << cc);
        CHECK(on_all_targets(
                  by_warps(n, matmul_graph(t, {.m = 70, .n = 140, .k = 50, .block_n = 128})), {},
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
      CHECK(on_all_targets(by_warps(n, matmul_graph(f16, wide))) == "");
      CHECK(on_all_targets(by_warps(n, matmul_graph(f16, tall))) == "");
      CHECK(on_all_targets(by_warps(n, matmul_graph(f32, wide, Precision::tf32))) == "");
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
    for (const int cc : {75, 90}) CHECK(on_all_targets(by_warps(n, turned), {}, cc) == "");
  }
}

TEST_CASE("random kernels agree at 8 and 16 warps") {
  const int architectures[] = {75, 80, 90, 100};
  for_seeds(300, 30, [&](std::uint64_t seed) {
    RandomKernel k = random_kernel(seed, {.aliases = seed % 5 == 0});
    Random random(seed);
    const test::Call call = random_call(k.graph, k.symbols, random, true);
    test::Call meant = call;
    run_interpreter(k.graph, meant, false);
    for (const int n : {8, 16}) {
      INFO(n << " warps");
      test::Call got = call;
      run_emulator(by_warps(n, k.graph), {.compute_capability = architectures[seed % 4]}, got,
                   false);
      CHECK(difference(k.graph, meant, got) == "");
    }
  });
}

TEST_CASE("products without tensor cores agree for every shape, type and transposition") {
  Random random(20261122);
  const auto one_of = [&](std::vector<int> list) {
    return list[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(list.size())))];
  };
  const DType types[] = {f32, f64, i32, bf16};
  for (int n = 0; n < 40; ++n) {
    const DType t = types[n % 4];
    const int rows = one_of({1, 3, 16, 17, 64, 100}), columns = one_of({1, 2, 3, 8, 33, 64, 130});
    const int depth = one_of({1, 2, 3, 4, 5, 7, 16, 33}), warps = one_of({4, 8, 16});
    const bool trans_a = random.chance(50), trans_b = random.chance(50);
    INFO(t.name() << " " << rows << "x" << columns << "x" << depth << ", transposed " << trans_a
                  << trans_b << ", " << warps << " warps");
    const graph::Graph g =
        traced([&](Ref x, Ref y,
                   Ref o) { o[_] = dot(x[_], y[_], {.trans_a = trans_a, .trans_b = trans_b}); },
               {.name = "product", .out_type = {{rows, columns}, t == bf16 ? f32 : t}},
               {array(trans_a ? Shape{depth, rows} : Shape{rows, depth}, t),
                array(trans_b ? Shape{columns, depth} : Shape{depth, columns}, t)});
    CHECK(on_all_targets(by_warps(warps, g), {}, 75) == "");
  }
}
