// What kernels take from the lambda to the cubin, case by case: the examples as a user runs them
// for the first time, and the hardware checks in NVRTC.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/timing.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/conformance/case.hpp"
#include "tests/conformance/run.hpp"

namespace {

using namespace palladium;

struct Times {
  double trace = 1e30, lower = 1e30, nvrtc = 1e30;
};

/// Adds what the log of an example tells of its kernels, run without a GPU and without a cache.
void run_example(const std::string& path, std::map<std::string, Times>& kernels) {
  const std::string command =
      "LD_LIBRARY_PATH='" FAKE_LIBCUDA_FOLDER "' PALLADIUM_TARGET=cuda PALLADIUM_LOG=info "
      "PALLADIUM_CACHE_DIR=/dev/null '" + path + "' 2>&1";
  FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) return;
  char line[512], name[64];
  Times t;
  while (std::fgets(line, sizeof line, out) != nullptr)
    if (std::sscanf(line, "palladium info %63s miss trace %lf ms lower %lf ms nvrtc %lf", name,
                    &t.trace, &t.lower, &t.nvrtc) == 4) {
      Times& least = kernels[std::filesystem::path(path).filename().string() + ": " + name];
      least = {std::min(least.trace, t.trace), std::min(least.lower, t.lower),
               std::min(least.nvrtc, t.nvrtc)};
    }
  ::pclose(out);
}

/// As a user waits in a process that has lowered nothing before.
void examples() {
  constexpr int runs = 3;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES))
    if (entry.is_regular_file() && ::access(entry.path().c_str(), X_OK) == 0)
      paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    std::map<std::string, Times> kernels;
    for (int run = 0; run < runs; ++run) run_example(path, kernels);
    for (const auto& [name, t] : kernels)
      std::printf("%-44s trace and lower %6.2f ms   target <= 5 ms   NVRTC %4.0f ms   target <= "
                  "500 ms\n",
                  name.c_str(), t.trace + t.lower, t.nvrtc);
    std::fflush(stdout);
  }
}

bool is_large(const conformance::Case& c) {
  return c.family() == "gemm" || c.family() == "attention";
}

/// CPU time of NVRTC alone, each text by itself.
void conformance_cases() {
  std::vector<std::pair<double, std::string>> all;
  for (const conformance::Case& c : conformance::all_cases()) {
    if (c.slow || is_large(c)) continue;
    const double ms = 1e3 * benchmark::best_of(1, [&] {
                        (void)conformance::compile({&c}, "sm_90a");
                      });
    all.emplace_back(ms, c.name);
  }
  std::ranges::sort(all);
  std::printf("NVRTC on %zu hardware checks: median %.0f ms   target <= 120 ms\n", all.size(),
              all[all.size() / 2].first);
  for (std::size_t i = all.size() - std::min<std::size_t>(5, all.size()); i < all.size(); ++i)
    std::printf("  %-42s %4.0f ms   target <= 500 ms\n", all[i].second.c_str(), all[i].first);
}

}  // namespace

int main() {
  if (!nvrtc::toolchain().found) {
    std::puts("no NVRTC: nothing to measure");
    return 0;
  }
  examples();
  conformance_cases();
}
