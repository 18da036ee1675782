// ptxas takes products by wgmma without serialising them and without spills.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/full.hpp"
#include "tests/support/kernels.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::ContainsSubstring;
using pl::_;

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

TEST_CASE("products of tf32 and of 8 bits compile without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const DType t : {f32, f8e4m3, f8e5m2, i8, u8}) {
    INFO(t.name());
    const MatmulShape whole{.m = 1024,
                            .n = 1024,
                            .k = 1024,
                            .block_m = 128,
                            .block_n = 128,
                            .block_k = 128 / t.bytes(),
                            .trans_b = true};
    MatmulShape odd = whole, turned = whole;
    odd.m = odd.n = odd.k = 999;
    turned.trans_a = true;
    turned.trans_b = false;
    const Precision precision = t == f32 ? tf32 : ieee;
    CHECK(compile_problem(matmul_graph(t, whole, precision), "sm_90a") == "");
    if (t == f8e5m2 || t == u8) continue;
    CHECK(compile_problem(matmul_graph(t, odd, precision), "sm_90a") == "");
    CHECK(compile_problem(matmul_graph(t, turned, precision), "sm_90a") == "");
    std::vector<const char*> others = {"sm_89", "sm_100a"};
    if (is_full()) others = {"sm_75", "sm_80", "sm_89", "sm_100a", "sm_120a"};
    for (const char* arch : others)
      CHECK(compile_problem(matmul_graph(t, whole, precision), arch) == "");
  }
}

TEST_CASE("wgmma is in texts for one architecture alone") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const ShapeDtype square{{128, 128}, bf16};
  const Lowered k = pallas_call([](Ref a, Ref b, Ref o) { o[_] = dot(a[_], b[_]); },
                                {.name = "product", .out_type = ShapeDtype{{128, 128}, f32}})
                        .lower(square, square);
  CHECK_THAT(k.cuda_source({.arch = "sm_90a"}), ContainsSubstring("wgmma"));
  for (const char* arch : {"sm_90", "sm_100", "sm_100a", "sm_120f"}) {
    CAPTURE(arch);
    CHECK_THAT(k.cuda_source({.arch = arch}), !ContainsSubstring("wgmma"));
    CHECK_NOTHROW(k.compile({.arch = arch}));
  }
}
