// The emulator on a GEMM of Hopper's form: 512 x 512 x 512, bf16, on one core.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "benchmarks/timing.hpp"
#include "tests/support/hopper_kernels.hpp"

namespace {

using namespace palladium;
using benchmark::best_of;

// `sketch`: what a program of 640 lines, made to try the idea, took on an idle Xeon with AVX-512.
void report(const char* name, double ours, double sketch, double loops) {
  std::printf("emulator %-44s %8.2f ms   ", name, 1e3 * ours);
  if (sketch > 0) std::printf("sketch %6.1f ms   ", sketch);
  std::printf("plain loops %7.1f ms\n", 1e3 * loops);
}

void gemm() {
  const test::Gemm g{.m = 512, .n = 512, .k = 512};
  emulator::prepare("gemm", g.text());
  test::GemmArrays arrays(g);
  const double loops = best_of(3, [&] { test::reference_gemm(g); });
  emulator::Options plain{.detect_writers = false, .detect_races = false, .workers = 1};
  report("gemm 512^3", best_of(15, [&] { test::run_gemm(g, arrays, plain); }), 12.5, loops);
  emulator::Options all{.workers = 1};
  report("gemm 512^3, races, writers", best_of(15, [&] { test::run_gemm(g, arrays, all); }), 28.3,
         loops);
  all.schedule = emulator::Schedule::random;
  all.asynchrony = emulator::Asynchrony::random;
  report("gemm 512^3, races, random order", best_of(15, [&] { test::run_gemm(g, arrays, all); }), 0,
         loops);
}

// From text to a loaded shared object; the host compiler is another process, so this is wall time.
void host_compiler() {
  double best = 1e9;
  for (int i = 0; i < 8; ++i) {
    const std::string text = test::Gemm{}.text() + "// " + std::to_string(i) + "\n";
    best = std::min(best, emulator::prepare("gemm", text));
  }
  std::printf("emulator %-44s %8.2f ms   sketch %6.1f ms\n", "gemm, text to shared object",
              1e3 * best, 65.0);
}

}  // namespace

int main() {
  gemm();
  host_compiler();
}
