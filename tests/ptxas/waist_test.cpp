// What ptxas says of every function of the device library.
#include <algorithm>
#include <set>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/support/waist_uses.hpp"

using namespace palladium;

namespace {

struct Arch {
  const char* name;
  int number;
};
constexpr Arch archs[] = {{"sm_75", 75}, {"sm_80", 80}, {"sm_90a", 90}, {"sm_100a", 100}};

// Reduces arguments beyond 10^5 with a table that it indexes, so it needs a stack.
bool may_use_stack(std::string_view name) {
  return name == "sin" || name == "cos" || name == "tan";
}

/// Compiles a kernel for each function of these files, where it exists: one of all would take ptxas
/// a minute. Wants no word of complaint.
void accepted(const std::set<std::string_view>& files) {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const Arch& arch : archs) {
    for (const bool stack : {false, true}) {
      std::string text;
      for (const test::WaistUse& use : test::waist_uses(arch.number)) {
        const device::Function& f = test::waist_function(use.name);
        if (files.contains(f.file) && may_use_stack(f.name) == stack &&
            f.first_arch <= arch.number && arch.number <= f.last_arch)
          text += test::waist_kernel("try_" + use.name, use.statement);
      }
      if (text.empty()) continue;
      const nvrtc::Result result = nvrtc::compile(
          {.source = device::prelude(device::Half::cuda, text) + text, .arch = arch.name});
      INFO(arch.name << "\n" << result.log);
      REQUIRE(result.ok);
      CHECK(result.log.find("kernel.cu") == std::string::npos);  // no warning
      const Resources resources = nvrtc::parse_log(result.log);
      CHECK(resources.warnings.empty());
      CHECK(resources.spill_store_bytes + resources.spill_load_bytes == 0);
      if (!stack) CHECK(resources.stack_bytes == 0);
    }
  }
}

}  // namespace

TEST_CASE("ptxas accepts ids, barriers, shuffles and control") {
  accepted({"ids", "barrier", "warp", "control"});
}
TEST_CASE("ptxas accepts memory accesses") { accepted({"memory", "part"}); }
TEST_CASE("ptxas accepts conversions") { accepted({"types", "convert"}); }
TEST_CASE("ptxas accepts arithmetic") { accepted({"arithmetic"}); }
TEST_CASE("ptxas accepts elementary functions") { accepted({"math"}); }
TEST_CASE("ptxas accepts mma, ldmatrix and stmatrix") { accepted({"mma"}); }
TEST_CASE("ptxas accepts reductions and dots") { accepted({"reduce", "dot"}); }
TEST_CASE("ptxas accepts clusters, mbarriers and fences") {
  accepted({"cluster", "mbarrier", "fence"});
}
TEST_CASE("ptxas accepts asynchronous copies") { accepted({"tma", "cp_async"}); }
TEST_CASE("ptxas accepts what stands around wgmma") { accepted({"wgmma"}); }
TEST_CASE("ptxas accepts atomics") { accepted({"atomic"}); }
