// What ptxas makes of the shipped kernels, so that a change for the worse is seen in review.
// PALLADIUM_TEST_REFRESH=1 build/test_ptxas "no shipped kernel takes more*" writes the file anew.
#include <algorithm>
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

using Types = std::vector<ShapeDtype>;

/// The types with symbols of such sizes.
Types of_sizes(Types types, DimOptions sizes) {
  for (ShapeDtype& type : types)
    for (int d = 0; d < type.shape.rank(); ++d)
      if (!type.shape[d].is_static()) type.shape[d] = dim(to_string(type.shape[d]).c_str(), sizes);
  return types;
}

/// For any size, and where that is another kernel for those that most calls have.
std::map<std::string, Figures> compiled_now() {
  std::map<std::string, Figures> result;
  for (const ops::Entry& e : ops::registry()) {
    const auto add = [&](const std::string& name, const Types& types) {
      const Lowered lowered = e.factory().lower(std::vector<ArgType>(types.begin(), types.end()));
      for (const char* arch : {"sm_80", "sm_90a"}) {
        const Report r = lowered.report({.arch = arch});
        INFO(name << ' ' << r.not_compiled);
        REQUIRE(r.not_compiled.empty());
        result[name + " " + arch] = {r.resources.registers,
                                     r.resources.spill_store_bytes + r.resources.spill_load_bytes,
                                     r.occupancy.warps};
      }
    };
    add(e.name, e.inputs);
    const Types usual = of_sizes(e.inputs, {.multiple_of = 16, .at_most = 1 << 16});
    const auto is_symbolic = [](const ShapeDtype& t) { return !t.shape.is_static(); };
    if (std::ranges::any_of(usual, is_symbolic)) add(std::string(e.name) + "_of_few_wide", usual);
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
