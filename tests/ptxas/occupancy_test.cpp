// What ptxas makes of the shipped kernels, so that a change for the worse is seen in review.
// PALLADIUM_TEST_REFRESH=1 build/test_ptxas "no shipped kernel takes more*" writes the file anew.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <catch2/catch_test_macros.hpp>

#include "codegen/nvrtc/toolchain.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Figures {
  int registers = 0, spill_bytes = 0, warps = 0;
};

std::map<std::string, Figures> compiled_now() {
  std::map<std::string, Figures> result;
  for (const ops::Entry& e : ops::registry())
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const Report r = e.factory()
                           .lower(std::vector<ArgType>(e.inputs.begin(), e.inputs.end()))
                           .report({.arch = arch});
      INFO(e.name << ' ' << r.not_compiled);
      REQUIRE(r.not_compiled.empty());
      result[std::string(e.name) + " " + arch] = {
          r.resources.registers, r.resources.spill_store_bytes + r.resources.spill_load_bytes,
          r.occupancy.warps};
    }
  return result;
}

}  // namespace

TEST_CASE(
    "no shipped kernel takes more registers or leaves fewer warps than when it was reviewed") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  constexpr double tolerance = 0.1;  // of another NVRTC
  const std::string path = source_dir() + "/tests/ptxas/golden/registers.txt";
  const std::map<std::string, Figures> now = compiled_now();
  if (std::getenv("PALLADIUM_TEST_REFRESH") != nullptr) {
    std::ofstream out(path);
    for (const auto& [name, f] : now)
      out << name << ' ' << f.registers << ' ' << f.spill_bytes << ' ' << f.warps << '\n';
    WARN("wrote " << path);
  }
  std::ifstream reviewed(path);
  std::string kernel, arch;
  Figures then;
  std::size_t compared = 0;
  for (; reviewed >> kernel >> arch >> then.registers >> then.spill_bytes >> then.warps;
       ++compared) {
    CAPTURE(kernel, arch);
    const Figures& f = now.at(kernel + " " + arch);
    CHECK(f.registers <= then.registers * (1 + tolerance));
    CHECK(f.spill_bytes <= then.spill_bytes);
    CHECK(f.warps >= then.warps * (1 - tolerance));
  }
  CHECK(compared == now.size());
}
