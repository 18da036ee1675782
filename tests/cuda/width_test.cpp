// NVRTC and ptxas on programs of 8 and 16 warps.
#include <catch2/catch_test_macros.hpp>

#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/seeds.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("products, softmax and layer norm compile at 4, 8 and 16 warps without spills") {
  for (const int n : {4, 8, 16}) {
    INFO(n << " warps");
    CHECK(compile_problem(by_warps(n, matmul_graph(f16, {.m = 1024, .n = 1024, .k = 1024}))) == "");
    CHECK(compile_problem(by_warps(n, softmax_graph(4096))) == "");
    CHECK(compile_problem(by_warps(n, layer_norm_graph())) == "");
  }
}

TEST_CASE("running sums compile at 4, 8 and 16 warps without spills") {
  struct Block {
    Shape shape;
    int axis;
    DType dtype;
  };
  for (const int n : {4, 8, 16})
    for (const Block& b : {Block{{4096}, 0, f32}, Block{{64, 64}, 0, i32}, Block{{8, 500}, 1, f16},
                           Block{{100, 40}, 0, f64}}) {
      INFO(n << " warps, " << b.dtype.name());
      CHECK(compile_problem(by_warps(n, cumsum_graph(b.shape, b.axis, n == 8, b.dtype))) == "");
    }
  CHECK(compile_problem(cumsum_graph({128, 256}, 0), "sm_90a") == "");
  CHECK(compile_problem(by_warps(4, cumsum_graph({40'000}, 0, true)), "sm_90a") == "");
}

TEST_CASE("products of large blocks compile at the width that is chosen without spills") {
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"})
    for (const std::int64_t columns : {128, 256}) {
      INFO("128 x " << columns << " for " << arch);
      const MatmulShape s{.m = 1024, .n = 1024, .k = 1024, .block_m = 128, .block_n = columns};
      CHECK(compile_problem(matmul_graph(f16, s), arch) == "");
    }
}

TEST_CASE("random kernels of 8 and 16 warps compile") {
  const char* const architectures[] = {"sm_75", "sm_80", "sm_90a", "sm_100a"};
  for_seeds(20, 6, [&](std::uint64_t seed) {
    const RandomKernel k = random_kernel(seed);
    for (const int n : {8, 16})
      CHECK(compile_problem(by_warps(n, k.graph), architectures[seed % 4]) == "");
  });
}
