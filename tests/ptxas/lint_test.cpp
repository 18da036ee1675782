// What ptxas complains of, in its own words of today, becomes a warning.
// PALLADIUM_TEST_REFRESH=1 build/test_ptxas "ptxas speaks as*" records the words of a version.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/device/library.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/support/ptxas_words.hpp"

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

/// A kernel of which line 3 on is `body`, between an accumulator of 64 registers and its store.
std::string around_accumulator(const std::string& body) {
  return "PL_KERNEL(128) k(f32* o, u64 a, u64 b, f32 x, i32 n) {\n"
         "  f32 d[64]; PL_UNROLL for (i32 i = 0; i < 64; ++i) d[i] = x;\n" +
         body +
         "  pl::wgmma_registers(d);\n"
         "  PL_UNROLL for (i32 i = 0; i < 64; ++i) pl::store_global(o + 128 * i, d + i);\n}\n";
}

const std::string product = "  pl::wgmma_m64n128k16_f32_bf16_bf16(d, a, b, true);\n",
                  end_of_products = "  pl::wgmma_commit();\n  pl::wgmma_wait<0>();\n";

/// Kernels that ptxas has something to say of, and one that it has not.
const std::map<std::string, std::string>& kernels() {
  static const std::map<std::string, std::string> all = {
      {"right", around_accumulator("  pl::wgmma_registers(d);\n  pl::wgmma_fence();\n" + product +
                                   end_of_products)},
      {"no_fence", around_accumulator(product + end_of_products)},
      {"no_wait",
       around_accumulator("  pl::wgmma_fence();\n" + product + "  pl::wgmma_commit();\n")},
      {"touched_early",
       around_accumulator("  PL_NOUNROLL for (i32 k = 0; k < n; ++k) {\n    pl::wgmma_fence();\n" +
                          product +
                          "    pl::wgmma_commit();\n"
                          "    PL_UNROLL for (i32 i = 0; i < 64; ++i) d[i] = d[i] * 2.0f;\n"
                          "    pl::wgmma_wait<0>();\n  }\n")},
      {"touched_in_a_branch",
       around_accumulator("  pl::wgmma_fence();\n  if (n > 3) {\n" + product +
                          "  } else { PL_UNROLL for (i32 i = 0; i < 64; ++i) d[i] += 1; }\n" +
                          end_of_products)},
      {"product_in_a_call",
       "__device__ __noinline__ void multiply(f32 (&d)[64], u64 a, u64 b) {\n" + product + "}\n" +
           around_accumulator("  pl::wgmma_fence();\n  multiply(d, a, b);\n" + end_of_products)},
      {"setmaxnreg_without_bounds",
       "extern \"C\" __global__ void k(f32* o) {\n"
       "  pl::setmaxnreg_dec<40>();\n  f32 v = 1;\n  pl::store_global(o, &v);\n}\n"},
      {"bounds_too_large",
       "extern \"C\" __global__ void __launch_bounds__(1024, 4) k(f32* o, f32 x) {\n"
       "  pl::store_global(o, &x);\n}\n"},
      {"sparse_product",
       "PL_KERNEL(128) k(f32* o, u32 x) {\n  f32 d[4] = {};\n"
       "  asm volatile(\"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
       "{%4, %4}, {%4, %4}, {%0, %1, %2, %3}, %4, 0x0;\" "
       ": \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"r\"(x));\n"
       "  pl::store_global(o, d);\n}\n"},
      {"recursion",
       "__device__ __noinline__ i32 f(i32 n) { return n < 2 ? n : f(n - 1) + f(n - 2) * n; }\n"
       "PL_KERNEL(128) k(i32* o, i32 n) {\n  i32 v = f(n);\n  pl::store_global(o, &v);\n}\n"},
      {"tangent",
       "PL_KERNEL(128) k(f32* o, f32 x) {\n  f32 v = tanf(x);\n  pl::store_global(o, &v);\n}\n"},
      {"spills",
       "PL_KERNEL(1024) k(f32* o, const f32* x, i32 n) {\n"
       "  f32 d[96];\n"
       "  PL_UNROLL for (i32 i = 0; i < 96; ++i) pl::load_global(d + i, x + 1024 * i + n);\n"
       "  PL_NOUNROLL for (i32 k = 0; k < n; ++k)\n"
       "    PL_UNROLL for (i32 i = 0; i < 96; ++i) d[i] = d[i] * d[(7 * i + 1) % 96];\n"
       "  PL_UNROLL for (i32 i = 0; i < 96; ++i) pl::store_global(o + 1024 * i, d + i);\n}\n"},
      {"array_in_memory",
       "PL_KERNEL(128) k(f32* o, const f32* x, i32 n) {\n"
       "  f32 d[64];\n"
       "  PL_UNROLL for (i32 i = 0; i < 64; ++i) pl::load_global(d + i, x + 128 * i);\n"
       "  PL_NOUNROLL for (i32 k = 0; k < n; ++k) d[k * n % 64] = d[k % 64] + 1;\n"
       "  PL_UNROLL for (i32 i = 0; i < 64; ++i) pl::store_global(o + 128 * i, d + i);\n}\n"},
  };
  return all;
}

std::vector<std::string> warnings(const std::string& name) {
  return nvrtc::parse_log(compile(kernels().at(name)).log).warnings;
}

/// The same when their lines are looked up.
std::vector<std::string> located_warnings(const std::string& name) {
  CHECK(nvrtc::blame_a_line(warnings(name)));
  return nvrtc::located_warnings(compile(kernels().at(name), {"--generate-line-info"}));
}

std::string only(const std::vector<std::string>& warnings) {
  REQUIRE(warnings.size() == 1);
  return warnings[0];
}

std::string joined(const std::vector<std::string>& warnings) {
  std::string all;
  for (const std::string& each : warnings) all += each + "\n";
  return all;
}

/// Whether the NVRTC at hand is at least that old, or as new.
bool is_at_most(int major, int minor) {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  const nvrtc::Toolchain& by = *nvrtc::toolchain().found;
  return by.major * 100 + by.minor <= major * 100 + minor;
}

/// A log as it is on any day: without the time that the compile took.
std::string timeless(std::string log) {
  for (std::size_t at; (at = log.find("ptxas info    : Compile time")) != log.npos;)
    log.erase(at, log.find('\n', at) - at + 1);
  return log.ends_with('\n') ? log : log + '\n';
}

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

TEST_CASE("a wgmma between its fence, commit and wait gives no warning") {
  CHECK(warnings("right").empty());
}

TEST_CASE("a missing wgmma_fence, which ptxas mends, is a warning with the wgmma's line") {
  // From 13.1 on ptxas mends it without a word; the emulator knows a fence that is missing.
  if (!is_at_most(13, 0)) {
    CHECK(warnings("no_fence").empty());
    return;
  }
  CHECK_THAT(only(warnings("no_fence")), ContainsSubstring("(C7519)"));
  CHECK_THAT(only(located_warnings("no_fence")),
             ContainsSubstring("(C7519)") && ContainsSubstring(" around kernel.cu(3) by"));
}

TEST_CASE("accumulators touched before the wait are a warning with the line that touches them") {
  CHECK_THAT(only(located_warnings("touched_early")),
             ContainsSubstring("(C7517)") && ContainsSubstring(" around kernel.cu(7) by"));
}

TEST_CASE("a wgmma that is serialized is a warning, with its line where ptxas tells one") {
  const std::string at_a_call = joined(warnings("product_in_a_call")),
                    at_a_branch = joined(located_warnings("touched_in_a_branch"));
  CHECK_THAT(at_a_call, ContainsSubstring("(C7510)") && ContainsSubstring("serialized"));
  CHECK_THAT(at_a_call, ContainsSubstring("256 bytes of local memory per thread: an array"));
  CHECK_THAT(at_a_branch, ContainsSubstring("(C7515)") && ContainsSubstring("serialized"));
  if (is_at_most(13, 0)) return;
  // From the branch to where its products are awaited: which of these lines is up to the version.
  const std::size_t at = at_a_branch.find(" in kernel.cu(", at_a_branch.find("(C7515)"));
  REQUIRE(at != at_a_branch.npos);
  const int line = std::atoi(at_a_branch.c_str() + at + std::string(" in kernel.cu(").size());
  CHECK((line >= 4 && line <= 8));
}

TEST_CASE("setmaxnreg that ptxas ignores is a warning") {
  CHECK_THAT(only(warnings("setmaxnreg_without_bounds")),
             ContainsSubstring("(C7508)") && ContainsSubstring("'setmaxnreg' ignored"));
}

TEST_CASE("advice without a number on a line of the text is a warning with the kernel's line") {
  CHECK_THAT(only(warnings("sparse_product")),
             ContainsSubstring("Advisory: ") && ContainsSubstring(".sp::ordered_metadata"));
  CHECK_THAT(only(located_warnings("sparse_product")), ContainsSubstring(", kernel.cu(3); "));
}

TEST_CASE("registers that spill are a warning with the bytes") {
  const Resources resources = nvrtc::parse_log(compile(kernels().at("spills")).log);
  CHECK(resources.spill_store_bytes > 0);
  CHECK(resources.spill_load_bytes > 0);
  CHECK(only(resources.warnings) == "registers spill to " + std::to_string(resources.stack_bytes) +
                                        " bytes of local memory per thread: code for " +
                                        std::to_string(resources.spill_store_bytes) +
                                        " bytes of stores and " +
                                        std::to_string(resources.spill_load_bytes) + " of loads");
}

TEST_CASE("an array indexed at run time is a warning with its bytes") {
  CHECK_THAT(only(warnings("array_in_memory")),
             ContainsSubstring("256 bytes of local memory per thread: an array"));
}

TEST_CASE("ptxas speaks as was recorded of its version") {
  test::PtxasWords now;
  for (const auto& [name, text] : kernels()) now[name] = timeless(compile(text).log);
  const std::string version = nvrtc::toolchain().found->version();
  if (std::getenv("PALLADIUM_TEST_REFRESH") != nullptr) {
    test::record_words(version, now);
    WARN("recorded the words of " << version);
  }
  const test::PtxasWords recorded = test::recorded_words(version);
  if (recorded.empty()) {
    WARN("nobody has recorded the words of NVRTC " << version);
    return;
  }
  // Words alone: numbers of lines and registers follow the device library.
  for (const auto& [name, log] : now) {
    CAPTURE(name);
    CHECK(without_digits(log) == without_digits(recorded.at(name)));
  }
  CHECK(recorded.size() == now.size());
}
