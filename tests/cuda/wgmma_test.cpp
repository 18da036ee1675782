// ptxas takes products by wgmma without serialising them and without spills.
#include <catch2/catch_test_macros.hpp>

#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/kernels.hpp"

using namespace palladium;
using namespace palladium::test;

TEST_CASE("products by wgmma of all widths and transpositions compile without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const MatmulShape shapes[] = {
      {.m = 1000, .n = 1000, .k = 1000, .block_m = 64, .block_n = 64, .trans_a = true},
      {.m = 1000, .n = 1000, .k = 1000, .block_m = 128, .block_n = 128, .block_k = 64},
      {.m = 1024, .n = 1024, .k = 1024, .block_m = 128, .block_n = 256, .block_k = 64},
      {.m = 1000,
       .n = 999,
       .k = 1000,
       .block_m = 128,
       .block_n = 256,
       .block_k = 64,
       .trans_b = true},
      {.m = 1000, .n = 1000, .k = 1000, .block_m = 256, .block_n = 128, .block_k = 64}};
  for (const MatmulShape& s : shapes) {
    INFO(s.block_m << "x" << s.block_n << "x" << s.block_k);
    CHECK(compile_problem(matmul_graph(bf16, s), "sm_90a") == "");
  }
}
