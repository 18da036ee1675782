// The way from a C++ lambda to a cubin: recording and printing, NVRTC, and what the headers cost a
// user's compile. All times are the least of several runs: of a compile by NVRTC, which happens in
// another process, what its caller waits; else CPU time, which does not depend on what else the
// machine does.
#include <stdlib.h>
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "benchmarks/timing.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"

namespace {

namespace fs = std::filesystem;
using pl::_;
using pl::benchmark::best_of;

constexpr const char* arch = "sm_90a";

double childrens_seconds() {
  rusage used;
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void report(const char* name, double ms, const char* target, const std::string& peer) {
  std::printf("%-50s %9.2f ms   target %-10s %s\n", name, ms, target, peer.c_str());
  std::fflush(stdout);
}

/// CPU time of a command; less than 0 if it fails.
double command_ms(int times, const std::string& command) {
  bool ok = true;
  const double seconds = best_of(times, childrens_seconds, [&] {
    ok = std::system((command + " >/dev/null 2>&1").c_str()) == 0 && ok;
  });
  return ok ? 1e3 * seconds : -1;
}

std::string beside(const char* what, double ms) {
  char text[128];
  std::snprintf(text, sizeof text, "(%s: %.0f ms)", what, ms);
  return ms < 0 ? "" : text;
}

/// Needs a cache that keeps nothing.
double compile_ms(int times, const pl::Lowered& kernel) {
  return 1e3 *
         best_of(times, pl::benchmark::wall_seconds, [&] { (void)kernel.compile({.arch = arch}); });
}

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }

constexpr std::int64_t large = 1 << 20;

pl::Lowered add_of_one_block() {
  const pl::ShapeDtype type = {{large}, pl::f32};
  return pl::pallas_call([](pl::Ref x, pl::Ref y, pl::Ref o) { o[_] = x[_] + y[_]; },
                         {.name = "add_large", .out_type = type})
      .lower(type, type);
}

/// As little as a kernel can do.
pl::Lowered copy() {
  const pl::ShapeDtype type = {{128}, pl::f32};
  return pl::pallas_call([](pl::Ref x, pl::Ref o) { o[_] = x[_]; },
                         {.name = "copy", .out_type = type})
      .lower(type);
}

pl::Lowered softmax_of_one_block() {
  return pl::ops::softmax().lower(pl::ShapeDtype{{1, large}, pl::f32});
}

}  // namespace

int main() try {
  std::string made = fs::temp_directory_path() / "palladium-benchmark-XXXXXX";
  if (::mkdtemp(made.data()) == nullptr) return 1;
  const fs::path folder = made;
  ::setenv("PALLADIUM_CACHE_DIR", "/dev/null", 1);
  ::setenv("PALLADIUM_LOG", "off", 1);

  const pl::ShapeDtype rows = {{pl::dim("m"), 1000}, pl::f32};
  report(
      "trace, lower and print softmax",
      1e3 * best_of(51, [&] { (void)pl::ops::softmax().lower(rows).cuda_source({.arch = arch}); }),
      "<= 2 ms", "");

  const pl::Lowered softmax = pl::ops::softmax().lower(rows);
  ::setenv("PALLADIUM_DUMP", "cuda", 1);
  ::setenv("PALLADIUM_DUMP_DIR", made.c_str(), 1);
  (void)softmax.compile({.arch = arch});
  ::unsetenv("PALLADIUM_DUMP");
  fs::path text;
  for (const auto& file : fs::directory_iterator(folder))
    if (file.path().string().ends_with(".full.cu")) text = file.path();
  const std::string nvcc =
      std::system("nvcc --version >/dev/null 2>&1") == 0 ? "nvcc" : "/usr/local/cuda/bin/nvcc";
  const double peer = command_ms(3, nvcc + " -cubin --fmad=false -arch=" + arch + " -o " +
                                        quoted(folder / "peer.cubin") + " " + quoted(text));
  report("NVRTC on a copy of 128 elements", compile_ms(25, copy()), "", "(what any kernel takes)");
  report("NVRTC on softmax", compile_ms(25, softmax), "<= 60 ms",
         beside("nvcc -cubin on the same text", peer));

  report("NVRTC on x + y, one block of 2^20 elements", compile_ms(5, add_of_one_block()), "<= 2 s",
         "(unrolled, 1,024 values per thread: 4.8 s)");
  report("NVRTC on softmax, one block of 2^20 elements", compile_ms(5, softmax_of_one_block()),
         "<= 2 s", "");

  const fs::path source = folder / "umbrella.cpp";
  const char* chosen = std::getenv("CXX");
  const std::string compiler = std::string(chosen != nullptr && *chosen != 0 ? chosen : "c++") +
                               " -std=c++20 -O2 -I" + quoted(PALLADIUM_INCLUDE) + " -c -o " +
                               quoted(folder / "object.o") + " " + quoted(source);
  std::ofstream(source) << "#include <algorithm>\n#include <string>\n#include <vector>\n";
  const double standard = command_ms(5, compiler);
  std::ofstream(source) << "#include <palladium/palladium.hpp>\n";
  report("a user's compile of palladium.hpp", command_ms(5, compiler), "<= 1 s",
         beside("<algorithm>, <string> and <vector>", standard));

  fs::remove_all(folder);
  return 0;
} catch (const pl::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
