// What kernels as users write them (benchmarks/user_kernels) take on the first GPU, beside the same
// in Triton (peers/triton_user_kernels.py --run) and what the roofline of a GPU allows: one line
// for each case, all in one run. Without a GPU it says so; peers that are missing are left out.
// Kernels of symbolic sizes are those of numbers with other addresses, and not run.
//
//   benchmark_gpu_user_kernels [CASE...]                beginnings of names
//   benchmark_gpu_user_kernels --predict [CASE...]      what the timeline says: needs no GPU
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/gpu_arrays.hpp"
#include "benchmarks/gpu_peers.hpp"
#include "benchmarks/gpu_timing.hpp"
#include "benchmarks/user_kernels/cases.hpp"
#include "codegen/base/format.hpp"
#include "runtime/driver/device.hpp"

using namespace palladium;
using pl::_;
using user_kernels::Case;
using user_kernels::UserKernel;

namespace {

Array numbered(const ShapeDtype& type, const user_kernels::Numbers& which) {
  Array a = Array::empty(type.shape, type.dtype);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<std::int32_t>()[i] =
        static_cast<std::int32_t>(which.first + i / which.together * which.step % which.below);
  return a.to(device_of(Target::cuda));
}

std::vector<Array> inputs_of(const UserKernel& k) {
  std::vector<Array> arrays;
  std::size_t number = 0;
  for (const ShapeDtype& type : k.inputs)
    arrays.push_back(type.dtype == i32 && number < k.numbers.size()
                         ? numbered(type, k.numbers[number++])
                         : benchmark::drawn(type));
  return arrays;
}

template <std::size_t... Out, std::size_t... In>
void launch(const Kernel& k, const std::vector<Array>& outputs, const std::vector<Array>& inputs,
            std::index_sequence<Out...>, std::index_sequence<In...>) {
  k.into({outputs[Out]...}, {inputs[In]...});
}

template <std::size_t Outputs, std::size_t Inputs = 1>
void launch(const Kernel& k, const std::vector<Array>& outputs, const std::vector<Array>& inputs) {
  if (outputs.size() == Outputs && inputs.size() == Inputs)
    launch(k, outputs, inputs, std::make_index_sequence<Outputs>(),
           std::make_index_sequence<Inputs>());
  else if constexpr (Inputs < 8)
    launch<Outputs, Inputs + 1>(k, outputs, inputs);
  else if constexpr (Outputs < 4)
    launch<Outputs + 1, 1>(k, outputs, inputs);
}

bool has_symbols(const UserKernel& k) {
  return std::ranges::any_of(k.inputs, [](const ShapeDtype& t) {
    return std::ranges::any_of(t.shape, [](const Dim& d) { return !d.is_static(); });
  });
}

// A case whose kernel is being compiled, or what was wrong with it.
struct Prepared {
  const Case* which;
  std::optional<UserKernel> kernel = {};
  std::optional<Lowered> lowered = {};
  std::optional<CompileFuture> compiled = {};
  std::string refusal = {};
};

Prepared prepared(const Case& c) {
  Prepared p{&c};
  try {
    const UserKernel& k = p.kernel.emplace(c.make());
    const std::vector<ArgType> types(k.inputs.begin(), k.inputs.end());
    p.lowered = k.kernel.on(Target::cuda).lower(types);
    p.compiled = p.lowered->compile_async();
  } catch (const Error& error) {
    p.refusal = error.what();
  }
  return p;
}

void measure(Prepared& p, const benchmark::Peers& peers) {
  (void)p.compiled->get();
  const UserKernel& k = *p.kernel;
  const std::vector<Array> inputs = inputs_of(k);
  std::vector<Array> outputs;
  for (const ShapeDtype& type : p.lowered->out_types())
    outputs.push_back(Array::empty(type.shape, type.dtype, device_of(Target::cuda)));
  if (k.added_to >= 0) outputs[0] = inputs[static_cast<std::size_t>(k.added_to)];
  const Kernel kernel = k.kernel.on(Target::cuda);
  const double us = benchmark::gpu_microseconds([&] { launch<1>(kernel, outputs, inputs); }, 5);
  const CostEstimate cost = p.lowered->estimate_cost();
  const Report report = p.lowered->report({.arch = default_arch()});
  std::string line = fmt::format(
      "gpu {:<28} {:>9.1f} us  {:>7.1f} GFLOP {:>7.1f} GB/s  predicted {:>8.1f} us", p.which->name,
      us, static_cast<double>(cost.flops) * 1e-9,
      static_cast<double>(cost.bytes_accessed) / us * 1e-3, report.prediction.microseconds);
  if (report.timeline.microseconds > 0)
    line += fmt::format("  timeline {:>8.1f} us", report.timeline.microseconds);
  line += benchmark::words_of(peers, p.which->peer, us);
  std::puts(line.c_str());
  std::fflush(stdout);
}

void predict(const Case& c) {
  const UserKernel k = c.make();
  const std::vector<ArgType> types(k.inputs.begin(), k.inputs.end());
  const Timeline t = k.kernel.lower(types).report({.arch = c.arch}).timeline;
  std::printf("%-28s %9.1f us", c.name.c_str(), t.microseconds);
  for (const Timeline::Loop& loop : t.loops)
    std::printf("  %7.0f cycles%s, %6.0f around, %d blocks, %3.0f %%", loop.cycles,
                loop.is_kernel ? " of a block" : "", loop.around, loop.blocks, loop.fraction * 100);
  std::printf("%s%s\n", t.unknown.empty() ? "" : "  ", t.unknown.c_str());
  std::fflush(stdout);
}

bool is_wanted(const Case& c, int argc, char** argv) {
  return argc == 1 || std::any_of(argv + 1, argv + argc,
                                  [&](const char* name) { return c.name.starts_with(name); });
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "--predict") {
    for (const Case& c : user_kernels::cases())
      if (is_wanted(c, argc - 1, argv + 1)) predict(c);
    return 0;
  }
  const std::vector<DeviceInfo> gpus = devices();
  if (gpus.empty()) {
    std::puts("no GPU: nothing to measure");
    return 0;
  }
  std::printf("gpu %s, %s\n", gpus[0].name.c_str(), gpus[0].arch.c_str());
  const driver::ContextScope current(0);
  // All compile beside one another, and beside the peers.
  std::vector<Prepared> all;
  for (const Case& c : user_kernels::cases())
    if (std::string(c.arch) == "sm_90a" && is_wanted(c, argc, argv) && !has_symbols(c.make()))
      all.push_back(prepared(c));
  const benchmark::Peers peers = benchmark::peers_by("triton_user_kernels.py", argv[0]);
  int failed = 0;
  for (Prepared& p : all) {
    if (p.refusal.empty()) try {
        measure(p, peers);
      } catch (const Error& error) {
        p.refusal = error.what();
      }
    if (p.refusal.empty()) continue;
    std::printf("gpu %-28s failed: %s\n", p.which->name.c_str(), p.refusal.c_str());
    ++failed;
  }
  return failed == 0 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
