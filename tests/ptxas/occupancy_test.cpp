// What ptxas makes of the shipped kernels, so that a change for the worse is seen in review.
// PALLADIUM_TEST_REFRESH=1 build/test_ptxas "no shipped kernel takes more*" writes the file anew,
// where there is an nvdisasm: instructions are counted by it.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>

#include <catch2/catch_test_macros.hpp>

#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/sass.hpp"
#include "codegen/nvrtc/toolchain.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

struct Figures {
  int registers = 0, spill_bytes = 0, warps = 0;
  int usual = 0;     // instructions on the usual way through the kernel
  int products = 0;  // instructions of the innermost loop with the most products of matrices
};

using Types = std::vector<ShapeDtype>;

// ---- machine code

/// 3 of what stores 16 bytes, 2 of 8, 1 of fewer, 0 of what stores nothing to global memory.
int width_stored(std::string_view name) {
  if (!name.starts_with("STG")) return 0;
  return name.find(".128") != name.npos ? 3 : name.find(".64") != name.npos ? 2 : 1;
}

bool is_branch(std::string_view name) { return name.starts_with("BRA") || name.starts_with("JMP"); }

bool ends(const nvrtc::Instruction& i) {
  const std::string_view o = i.operands;
  const bool is_conditional = i.is_predicated || o.starts_with('P') || o.starts_with("!P") ||
                              o.starts_with("UP") || o.starts_with("!UP");
  return !is_conditional && (is_branch(i.name) || i.name.starts_with("EXIT"));
}

/// Instructions of the shortest way through that stores as wide as any: past what is for rare
/// operands and for blocks at an edge, and through each loop once.
int usual_way(const std::vector<nvrtc::Instruction>& all) {
  int widest = 0;
  for (const nvrtc::Instruction& i : all) widest = std::max(widest, width_stored(i.name));
  std::vector<int> steps(2 * all.size(), 0);  // to an instruction, before and behind such a store
  std::deque<std::size_t> reached;
  const auto reach = [&](std::size_t i, bool stored, int n) {
    if (i >= all.size()) return;
    const std::size_t state = 2 * i + (stored || width_stored(all[i].name) == widest);
    if (steps[state] > 0) return;
    steps[state] = n;
    reached.push_back(state);
  };
  reach(0, false, 1);
  for (; !reached.empty(); reached.pop_front()) {
    const std::size_t state = reached.front(), at = state / 2;
    const bool stored = state % 2 != 0;
    if (ends(all[at]) && stored && !is_branch(all[at].name)) return steps[state];
    if (is_branch(all[at].name))
      for (const std::size_t to : all[at].targets) reach(to, stored, steps[state] + 1);
    if (!ends(all[at])) reach(at + 1, stored, steps[state] + 1);
  }
  return 0;
}

int products_in(const SassMix& mix) {
  int n = 0;
  for (const auto& [kind, count] : mix.classes)
    if (kind == "HMMA" || kind == "HGMMA") n += count;
  return n;
}

void count(const Compiled& compiled, const std::string& function, Figures& f) {
  const Sass sass = compiled.sass();
  f.usual = usual_way(nvrtc::instructions_of(sass.text, function));
  int most = 0;
  for (const SassLoop& loop : sass.loops)
    if (const int n = products_in(loop.mix);
        n > most || (n == most && n > 0 && loop.mix.instructions < f.products)) {
      most = n;
      f.products = loop.mix.instructions;
    }
}

// ---- kernels

struct Named {
  std::string name;
  Kernel kernel;
  Types types;
};

/// The types with symbols of such sizes.
Types of_sizes(Types types, DimOptions sizes) {
  for (ShapeDtype& type : types)
    for (int d = 0; d < type.shape.rank(); ++d)
      if (!type.shape[d].is_static()) type.shape[d] = dim(to_string(type.shape[d]).c_str(), sizes);
  return types;
}

/// For any size, and where that is another kernel for those that most calls have; and for sizes
/// that others are measured at.
std::vector<Named> kernels() {
  const DimOptions usual_sizes{.multiple_of = 16, .at_most = 1 << 16};
  const auto usual = [&](const char* name) { return dim(name, usual_sizes); };
  std::vector<Named> all;
  for (const ops::Entry& e : ops::registry()) {
    all.push_back({e.name, e.factory(), e.inputs});
    const bool is_symbolic =
        std::ranges::any_of(e.inputs, [](const ShapeDtype& t) { return !t.shape.is_static(); });
    if (is_symbolic)
      all.push_back(
          {std::string(e.name) + "_of_few_wide", e.factory(), of_sizes(e.inputs, usual_sizes)});
  }
  const auto kernel = [](const char* name) { return ops::find(name).factory(); };
  const ShapeDtype rows{{usual("m"), 1024}, f32}, columns{{1024}, f32};
  all.push_back({"softmax_1024", kernel("softmax"), {rows}});
  all.push_back({"layer_norm_1024", kernel("layer_norm"), {rows, columns, columns}});
  const auto square = [&](DType t) -> Types { return {{{usual("m"), 4096}, t}, {{4096, 4096}, t}}; };
  all.push_back({"matmul_f16", kernel("matmul"), square(f16)});
  all.push_back({"matmul_tf32", ops::matmul({.trans_b = true, .precision = tf32}), square(f32)});
  all.push_back({"matmul_f8e4m3", ops::matmul({.trans_b = true}), square(f8e4m3)});
  return all;
}

std::map<std::string, Figures> compiled_now(bool counts) {
  std::map<std::string, Figures> result;
  for (const Named& k : kernels()) {
    const Lowered lowered = k.kernel.lower(std::vector<ArgType>(k.types.begin(), k.types.end()));
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const Report r = lowered.report({.arch = arch});
      INFO(k.name << ' ' << r.not_compiled);
      REQUIRE(r.not_compiled.empty());
      Figures& f = result[k.name + " " + arch];
      f = {.registers = r.resources.registers,
           .spill_bytes = r.resources.spill_store_bytes + r.resources.spill_load_bytes,
           .warps = r.occupancy.warps};
      if (counts) count(lowered.compile({.arch = arch}), lowered.name() + "_kernel", f);
    }
  }
  return result;
}

}  // namespace

TEST_CASE(
    "no shipped kernel takes more registers or instructions, or leaves fewer warps, than when it "
    "was reviewed") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  constexpr double tolerance = 0.1;  // of another NVRTC
  const std::string path = source_dir() + "/tests/ptxas/golden/registers.txt";
  const bool counts = !nvrtc::find_nvdisasm().empty();
  const std::map<std::string, Figures> now = compiled_now(counts);
  if (std::getenv("PALLADIUM_TEST_REFRESH") != nullptr) {
    REQUIRE(counts);
    std::ofstream out(path);
    for (const auto& [name, f] : now)
      out << name << ' ' << f.registers << ' ' << f.spill_bytes << ' ' << f.warps << ' ' << f.usual
          << ' ' << f.products << '\n';
    WARN("wrote " << path);
  }
  std::ifstream reviewed(path);
  std::string kernel, arch;
  Figures then;
  std::size_t compared = 0;
  for (; reviewed >> kernel >> arch >> then.registers >> then.spill_bytes >> then.warps >>
         then.usual >> then.products;
       ++compared) {
    CAPTURE(kernel, arch);
    const Figures& f = now.at(kernel + " " + arch);
    CHECK(f.registers <= then.registers * (1 + tolerance));
    CHECK(f.spill_bytes <= then.spill_bytes);
    CHECK(f.warps >= then.warps * (1 - tolerance));
    CHECK(f.usual <= then.usual * (1 + tolerance));
    CHECK(f.products <= then.products * (1 + tolerance));
  }
  CHECK(compared == now.size());
}
