// Kernels in the language of warpgroups (examples/mosaic) beside the same by pallas_call: what
// stands in their machine code, what they take from the lambda to the cubin, what layouts of many
// operations take, and the emulator. No GPU.
//
//   benchmark_mosaic [--out FOLDER]
//
// Instructions are counted like those of benchmark_user_kernels ($PYTHON, $PALLADIUM_NVDISASM).
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/timing.hpp"
#include "benchmarks/user_kernels/kernels.hpp"
#include "codegen/base/format.hpp"
#include "codegen/nvrtc/disassemble.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "codegen/nvrtc/pool.hpp"
#include "examples/mosaic/attention.hpp"
#include "examples/mosaic/matmul.hpp"
#include "palladium/ops/attention.hpp"
#include "runtime/build/program.hpp"

using namespace palladium;
using pl::_;

namespace {

constexpr const char* arch = "sm_90a";

/// A kernel, and what is expected of it.
struct Case {
  const char* name;
  Lowered lowered;
  int at_most;  // instructions for 128x256x64 multiply-adds; 0: as many as the next one's
};

Lowered matmul_by_hand(std::int64_t size) {
  const ShapeDtype x{{size, size}, bf16};
  return mosaic::matmul().lower(x, x);
}

/// Persistent blocks of the same tile.
Lowered matmul_by_call(std::int64_t size) {
  const user_kernels::UserKernel k =
      user_kernels::matmul({.m = size,
                            .n = size,
                            .k = size,
                            .tile = {128, 256, 64},
                            .params = {.num_warps = 8, .persistent = true}});
  return k.kernel.lower(k.inputs[0], k.inputs[1]);
}

const ShapeDtype heads{{16, 4096, 128}, f16};
Lowered attention_by_hand() { return mosaic::attention().lower(heads, heads, heads); }
Lowered attention_by_call() {
  const ShapeDtype x{{1, 16, 4096, 128}, f16};
  return ops::attention().lower(x, x, x);
}

// ---- machine code

int count_instructions(const std::string& out) {
  const std::string nvdisasm = nvrtc::find_nvdisasm();
  if (!nvrtc::toolchain().found || nvdisasm.empty()) {
    std::puts("no NVRTC, or no nvdisasm (scripts/setup --nvdisasm): no instructions to count");
    return 0;
  }
  const Case cases[] = {{"matmul_by_hand", matmul_by_hand(4096), 190},
                        {"matmul_by_call", matmul_by_call(4096), 0},
                        {"attention_by_hand", attention_by_hand(), 0},
                        {"attention_by_call", attention_by_call(), 0}};
  ::setenv("PALLADIUM_NVDISASM", nvdisasm.c_str(), 1);
  std::filesystem::create_directories(out);
  std::ofstream list(out + "/cases");
  for (const Case& c : cases) {
    const Compiled compiled = c.lowered.compile({.arch = arch});
    const Resources r = compiled.resources();
    std::ofstream(out + "/" + c.name + ".cubin", std::ios::binary)
        .write(reinterpret_cast<const char*>(compiled.cubin().data()),
               static_cast<std::streamsize>(compiled.cubin().size()));
    list << fmt::format("case\t{}\t\t{}\t0\t{}\n", c.name, c.at_most, r.shared_bytes);
    std::printf("%-46s %9d registers, %d bytes of spills, %zu warnings of ptxas   target 0, 0\n",
                c.name, r.registers, r.spill_store_bytes + r.spill_load_bytes, r.warnings.size());
  }
  list.close();
  std::fflush(stdout);
  const char* chosen = std::getenv("PYTHON");
  const std::string command =
      fmt::format("'{}' '{}/user_kernels_report.py' '{}'", chosen != nullptr ? chosen : "python3",
                  PALLADIUM_BENCHMARKS, out);
  return std::system(command.c_str()) == 0 ? 0 : 1;
}

// ---- times

/// From the lambda to the text, the thread's own time; and on to the cubin, by NVRTC in here.
template <class F>
void report_compile(const char* name, F make, double limit_ms) {
  const double to_text =
      1e3 * benchmark::best_of(7, [&] { (void)make().cuda_source({.arch = arch}); });
  std::printf("%-46s %9.2f ms   target <= %-6g ms\n",
              fmt::format("{}: trace, lower and print", name).c_str(), to_text, 20.0);
  if (!nvrtc::toolchain().found) return;
  const double to_cubin =
      1e3 * benchmark::best_of(3, benchmark::wall_seconds, [&] {
        const nvrtc::Request request{
            .source = runtime::full_text(make().cuda_source({.arch = arch})), .arch = arch};
        if (!nvrtc::compile(request, *nvrtc::toolchain().found).ok) std::exit(1);
      });
  std::printf("%-46s %9.1f ms   target <= %-6g ms\n",
              fmt::format("{}: lambda to cubin", name).c_str(), to_cubin, limit_ms);
}

/// A value that is said to lie as sums of wgmma do, and much that is computed of it and its rows.
Lowered many_operations(int count) {
  const auto body = [=](Ref x, Ref o) {
    Value v = plgpu::load(x, {.layout = plgpu::Layout::WGMMA});
    for (int i = 0; i < count; i += 8) {
      const Value top = pl::max(v, {.axis = 1, .keepdims = true});
      v = pl::exp2(v - top) * 0.5f + 0.25f;
      v = pl::where(v > 0.5f, v, -v);
    }
    o[_] = v;
  };
  return plgpu::kernel(body, {.name = "many", .out_type = {{64, 64}, f32}})
      .lower(ShapeDtype{{64, 64}, f32});
}

void report_layouts() {
  const Lowered k = many_operations(2'000);
  double best = 1e30;
  for (int run = 0; run < 5; ++run) {
    double ms = 0;
    for (const PassDump& pass : k.passes({.arch = arch}))
      if (std::string_view(pass.pass).find("layout") != std::string_view::npos) ms += pass.ms;
    best = std::min(best, ms);
  }
  std::printf("%-46s %9.2f ms   target <= 50     ms\n", "layouts of 2,000 operations", best);
}

// ---- the emulator

Array numbers(std::int64_t rows, std::int64_t columns) {
  Array x = Array::zeros({rows, columns}, f32);
  for (std::int64_t i = 0; i < rows * columns; ++i)
    x.data<float>()[i] = static_cast<float>(i * 7 % 11 - 5);
  return x.astype(bf16);
}

double emulated(const Kernel& k, const Array& x, const Array& y) {
  const Kernel on_cpu = k.on(Target::emulator);
  (void)on_cpu(x, y);  // compiled by the host's compiler once
  return 1e3 * benchmark::best_of(5, benchmark::wall_seconds, [&] { (void)on_cpu(x, y); });
}

void report_emulator() {
  constexpr std::int64_t size = 512;
  const Array x = numbers(size, size), y = numbers(size, size);
  const double by_hand = emulated(mosaic::matmul(), x, y);
  const user_kernels::UserKernel call =
      user_kernels::matmul({.m = size,
                            .n = size,
                            .k = size,
                            .tile = {128, 256, 64},
                            .params = {.num_warps = 8, .persistent = true}});
  const double by_call = emulated(call.kernel, x, y);
  std::printf("%-46s %9.1f ms   target <= 1.2 x by pallas_call   (%.1f ms, %.2f x)\n",
              "emulator, product 512^3 by hand", by_hand, by_call, by_hand / by_call);
}

}  // namespace

int main(int argc, char** argv) try {
  ::setenv("PALLADIUM_LOG", "off", 1);
  const bool given = argc == 3 && std::string_view(argv[1]) == "--out";
  const std::string out =
      given ? argv[2] : (std::filesystem::temp_directory_path() / "palladium-mosaic").string();
  report_compile(
      "matmul by hand", [] { return matmul_by_hand(4096); }, 250);
  report_compile("attention by hand", attention_by_hand, 350);
  report_layouts();
  report_emulator();
  std::fflush(stdout);
  return count_instructions(out);
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
