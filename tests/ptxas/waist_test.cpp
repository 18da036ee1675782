// What ptxas says of every function of the device library.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "codegen/device/library.hpp"
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
        const device::RowInfo& f = test::waist_function(use.name);
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
      CHECK(resources.spill_store_bytes + resources.spill_load_bytes == 0);
      CHECK(resources.warnings.size() == (stack ? 1 : 0));  // of the stack
    }
  }
}

}  // namespace

TEST_CASE("ids, barriers, shuffles and control compile without complaint") {
  accepted({"ids", "barrier", "warp", "control"});
}
TEST_CASE("memory accesses compile without complaint") { accepted({"memory", "part"}); }
TEST_CASE("conversions compile without complaint") { accepted({"types", "convert"}); }
TEST_CASE("arithmetic compiles without complaint") { accepted({"arithmetic"}); }
TEST_CASE("elementary functions compile without complaint") { accepted({"math"}); }
TEST_CASE("mma, ldmatrix and stmatrix compile without complaint") { accepted({"mma"}); }
TEST_CASE("reductions and dots compile without complaint") { accepted({"reduce", "dot"}); }
TEST_CASE("clusters, mbarriers and fences compile without complaint") {
  accepted({"cluster", "mbarrier", "fence"});
}
TEST_CASE("asynchronous copies compile without complaint") { accepted({"tma", "cp_async"}); }
TEST_CASE("what stands around wgmma compiles without complaint") { accepted({"wgmma"}); }
TEST_CASE("atomics compile without complaint") { accepted({"atomic", "semaphore", "debug"}); }

TEST_CASE("every function comes with all that it needs, for each of its types") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  // Each in a namespace of its own, where it meets no other's declarations.
  std::string source;
  int kernels = 0;
  const auto compile = [&] {
    const nvrtc::Result result =
        nvrtc::compile({.source = source, .options = {"--fdevice-syntax-only"}, .arch = "sm_90a"});
    INFO(result.log << "\n" << source);
    CHECK(result.ok);
    source.clear();
  };
  for (const test::WaistUse& use : test::waist_uses(90)) {
    // Its statements, one a line, by the types that bring overloads.
    std::map<std::string, std::string> groups;
    std::istringstream statements(use.statement);
    for (std::string statement; std::getline(statements, statement);) {
      std::string types;
      for (const char* type : {"bf16", " f16", "f32", "f64"})
        if (statement.find(type) != std::string::npos) types += type;
      groups[types] += statement;
    }
    for (const auto& [types, group] : groups) {
      const std::string name = "k" + std::to_string(kernels++);
      const std::string text = test::waist_kernel(name, group);
      source += "namespace " + name + "_alone {\n" + device::prelude(device::Half::cuda, text) +
                text + "}\n";
      if (kernels % 8 == 0) compile();
    }
  }
  compile();
}
