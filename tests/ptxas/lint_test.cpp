// What ptxas complains of, in its own words of today, becomes a warning.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

namespace {

nvrtc::Result compile(const std::string& text, const std::vector<std::string>& options = {}) {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  nvrtc::Result result = nvrtc::compile(
      {.source = "#line 1 \"library.cuh\"\n" + device::prelude(device::Half::cuda, text) + text,
       .options = options,
       .arch = "sm_90a"});
  INFO(result.log);
  REQUIRE(result.ok);
  return result;
}

/// The only warning about a text.
std::string warning(const std::string& text) {
  const std::vector<std::string> warnings = nvrtc::parse_log(compile(text).log).warnings;
  REQUIRE(warnings.size() == 1);
  return warnings[0];
}

/// The same when its line is looked up.
std::string located_warning(const std::string& text) {
  CHECK(nvrtc::blame_a_line({warning(text)}));
  const std::vector<std::string> warnings =
      nvrtc::located_warnings(compile(text, {"--generate-line-info"}));
  REQUIRE(warnings.size() == 1);
  return warnings[0];
}

/// A kernel of which line 3 on is `body`, between an accumulator of 64 registers and its store.
std::string around_accumulator(const std::string& body) {
  return "PL_KERNEL(128) k(f32* o, u64 a, u64 b, f32 x, i32 n) {\n"
         "  f32 d[64]; PL_UNROLL for (i32 i = 0; i < 64; ++i) d[i] = x;\n" +
         body +
         "  pl::wgmma_registers(d);\n"
         "  PL_UNROLL for (i32 i = 0; i < 64; ++i) pl::store_global(o + 128 * i, d + i);\n}\n";
}

}  // namespace

TEST_CASE("a wgmma between its fence, commit and wait gives no warning") {
  const std::string text = around_accumulator(
      "  pl::wgmma_registers(d);\n"
      "  pl::wgmma_fence();\n"
      "  pl::wgmma_m64n128k16_f32_bf16_bf16(d, a, b, true);\n"
      "  pl::wgmma_commit();\n"
      "  pl::wgmma_wait<0>();\n");
  CHECK(nvrtc::parse_log(compile(text).log).warnings.empty());
}

TEST_CASE("a missing wgmma_fence, which ptxas mends, is a warning with the wgmma's line") {
  const std::string text = around_accumulator(
      "  pl::wgmma_m64n128k16_f32_bf16_bf16(d, a, b, true);\n"
      "  pl::wgmma_commit();\n"
      "  pl::wgmma_wait<0>();\n");
  CHECK_THAT(warning(text),
             ContainsSubstring("(C7519) warpgroup.arrive is injected in around line"));
  CHECK_THAT(located_warning(text),
             ContainsSubstring("(C7519) warpgroup.arrive is injected in around kernel.cu(3) by"));
}

TEST_CASE("accumulators touched before the wait are a warning with the line that touches them") {
  const std::string text = around_accumulator(
      "  PL_NOUNROLL for (i32 k = 0; k < n; ++k) {\n"
      "    pl::wgmma_fence();\n"
      "    pl::wgmma_m64n128k16_f32_bf16_bf16(d, a, b, true);\n"
      "    pl::wgmma_commit();\n"
      "    PL_UNROLL for (i32 i = 0; i < 64; ++i) d[i] = d[i] * 2.0f;\n"
      "    pl::wgmma_wait<0>();\n"
      "  }\n");
  CHECK_THAT(located_warning(text),
             ContainsSubstring("(C7517) warpgroup.wait is injected in around kernel.cu(7) by"));
}

TEST_CASE("a wgmma that is serialized at a call is a warning") {
  const std::string text =
      "__device__ __noinline__ void multiply(f32 (&d)[64], u64 a, u64 b) {\n"
      "  pl::wgmma_m64n128k16_f32_bf16_bf16(d, a, b, true);\n}\n" +
      around_accumulator(
          "  pl::wgmma_fence();\n  multiply(d, a, b);\n"
          "  pl::wgmma_commit();\n  pl::wgmma_wait<0>();\n");
  const Resources resources = nvrtc::parse_log(compile(text).log);
  std::string all;
  for (const std::string& each : resources.warnings) all += each + "\n";
  CHECK_THAT(all, ContainsSubstring("(C7510) Potential Performance Loss: wgmma.mma_async "
                                    "instructions are serialized"));
  CHECK_THAT(all, ContainsSubstring("256 bytes of local memory per thread: an array"));
}

TEST_CASE("setmaxnreg that ptxas ignores is a warning") {
  CHECK_THAT(warning("extern \"C\" __global__ void k(f32* o) {\n"
                     "  pl::setmaxnreg_dec<40>();\n  f32 v = 1;\n  pl::store_global(o, &v);\n}\n"),
             ContainsSubstring("(C7508)") && ContainsSubstring("'setmaxnreg' ignored"));
}

TEST_CASE("registers that spill are a warning with the bytes") {
  const std::string text =
      "PL_KERNEL(1024) k(f32* o, const f32* x, i32 n) {\n"
      "  f32 d[96];\n"
      "  PL_UNROLL for (i32 i = 0; i < 96; ++i) pl::load_global(d + i, x + 1024 * i + n);\n"
      "  PL_NOUNROLL for (i32 k = 0; k < n; ++k)\n"
      "    PL_UNROLL for (i32 i = 0; i < 96; ++i) d[i] = d[i] * d[(7 * i + 1) % 96];\n"
      "  PL_UNROLL for (i32 i = 0; i < 96; ++i) pl::store_global(o + 1024 * i, d + i);\n}\n";
  const Resources resources = nvrtc::parse_log(compile(text).log);
  CHECK(resources.spill_store_bytes > 0);
  CHECK(resources.spill_load_bytes > 0);
  REQUIRE(resources.warnings.size() == 1);
  CHECK(resources.warnings[0] == "registers spill to " + std::to_string(resources.stack_bytes) +
                                     " bytes of local memory per thread: code for " +
                                     std::to_string(resources.spill_store_bytes) +
                                     " bytes of stores and " +
                                     std::to_string(resources.spill_load_bytes) + " of loads");
}

TEST_CASE("an array indexed at run time is a warning with its bytes") {
  const std::string text =
      "PL_KERNEL(128) k(f32* o, const f32* x, i32 n) {\n"
      "  f32 d[64];\n"
      "  PL_UNROLL for (i32 i = 0; i < 64; ++i) pl::load_global(d + i, x + 128 * i);\n"
      "  PL_NOUNROLL for (i32 k = 0; k < n; ++k) d[k * n % 64] = d[k % 64] + 1;\n"
      "  PL_UNROLL for (i32 i = 0; i < 64; ++i) pl::store_global(o + 128 * i, d + i);\n}\n";
  CHECK_THAT(warning(text), ContainsSubstring("256 bytes of local memory per thread: an array"));
}
