// What shipped kernels take on the first GPU, and the same in the language of warpgroups
// (examples/mosaic), beside PyTorch, Triton and JAX (peers/gpu_peers.py) and what a roofline
// predicts of them: one line for each case, all in one run. Without a GPU it says so; peers that
// are missing are left out.
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu_arrays.hpp"
#include "benchmarks/gpu_peers.hpp"
#include "benchmarks/gpu_timing.hpp"
#include "codegen/base/format.hpp"
#include "examples/mosaic/attention.hpp"
#include "examples/mosaic/matmul.hpp"
#include "palladium/ops/add.hpp"
#include "palladium/ops/attention.hpp"
#include "palladium/ops/layer_norm.hpp"
#include "palladium/ops/matmul.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/ops/transpose.hpp"
#include "palladium/palladium.hpp"
#include "runtime/driver/device.hpp"

using namespace palladium;

namespace {

struct Case {
  std::string name;
  Kernel kernel;
  std::vector<ShapeDtype> inputs;
  ShapeDtype output;
  double flops = 0, bytes = 0;  // of which one says how fast it is
  std::string peer = {};        // the case of peers that it stands beside; "": its name
};

double bytes_of(const ShapeDtype& t) {
  double n = t.dtype.bytes();
  for (const Dim& d : t.shape) n *= static_cast<double>(d.value());
  return n;
}

// What moves its arguments once.
Case moving(const std::string& name, Kernel kernel, std::vector<ShapeDtype> inputs,
            const ShapeDtype& output) {
  double bytes = bytes_of(output);
  for (const ShapeDtype& t : inputs) bytes += bytes_of(t);
  return {name, std::move(kernel), std::move(inputs), output, 0, bytes};
}

Case matmul(std::int64_t n, DType t, const char* name) {
  const ShapeDtype square{{n, n}, t};
  return {std::string(name) + "_" + std::to_string(n),
          ops::matmul({.out_dtype = t}),
          {square, square},
          square,
          2.0 * static_cast<double>(n * n * n)};
}

Case attention(std::int64_t d, bool causal) {
  constexpr std::int64_t batch = 4, heads = 16, length = 4096;
  const ShapeDtype x{{batch, heads, length, d}, f16};
  return {"attention_" + std::to_string(d) + (causal ? "_causal" : "_full"),
          ops::attention({.causal = causal}),
          {x, x, x},
          x,
          4.0 * batch * heads * length * length * static_cast<double>(d) / (causal ? 2 : 1)};
}

// Of m rows, n columns and a depth of k; and not in blocks that are chosen for that, of which some
// share k.
void add_matmuls(std::vector<Case>& all, std::int64_t m, std::int64_t n, std::int64_t k,
                 bool shared = false) {
  Case c = matmul(n, f16, "matmul_f16");
  if (m != n || k != n) {
    c.name = fmt::format("matmul_f16_{}x{}x{}", m, n, k);
    c.inputs = {{{m, k}, f16}, {{k, n}, f16}};
    c.output = {{m, n}, f16};
    c.flops = 2.0 * static_cast<double>(m * n * k);
  }
  all.push_back(c);
  c.peer = std::exchange(c.name, c.name + "_b128");
  c.kernel = ops::matmul({.out_dtype = f16, .block_m = 128, .block_n = 128});
  all.push_back(c);
  if (!shared) return;
  c.name = c.peer + "_unshared";
  c.kernel = ops::matmul({.out_dtype = f16, .split_k = 1});
  all.push_back(c);
}

// Beside the planner's of the same size.
Case matmul_by_hand(std::int64_t n) {
  Case c = matmul(n, bf16, "matmul_bf16");
  c.peer = std::exchange(c.name, "matmul_by_hand_" + std::to_string(n));
  c.kernel = mosaic::matmul();
  return c;
}

Case attention_by_hand() {
  Case c = attention(128, false);
  c.peer = std::exchange(c.name, "attention_by_hand");
  c.kernel = mosaic::attention();
  const ShapeDtype heads{{64, 4096, 128}, f16};
  c.inputs = {heads, heads, heads};
  c.output = heads;
  return c;
}

std::vector<Case> cases() {
  const ShapeDtype rows{{32768, 1024}, f32}, vector{{1024}, f32}, square{{8192, 8192}, f32},
      flat{{1 << 26}, f32};
  std::vector<Case> all;
  for (const std::int64_t n : {4096, 8192, 512, 1024, 2048}) add_matmuls(all, n, n, n);
  // Of few rows, as when text is generated; the second's weights do not fit in the L2 cache.
  add_matmuls(all, 16, 4096, 4096);
  add_matmuls(all, 16, 14336, 4096);
  add_matmuls(all, 64, 4096, 14336, true);
  add_matmuls(all, 16, 1024, 8192, true);
  add_matmuls(all, 128, 128, 16384, true);
  const Case others[] = {matmul(4096, bf16, "matmul_bf16"),
                         matmul_by_hand(4096),
                         attention(128, true),
                         attention(128, false),
                         attention_by_hand(),
                         attention(64, true),
                         attention(64, false),
                         moving("softmax_1024", ops::softmax(), {rows}, rows),
                         moving("layer_norm_1024", ops::layer_norm(), {rows, vector, vector}, rows),
                         moving("add", ops::add(), {flat, flat}, flat),
                         moving("transpose_8192", ops::transpose(), {square}, square)};
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
}

void measure(const Case& c, const benchmark::Peers& peers) {
  const Device gpu = device_of(Target::cuda);
  std::vector<Array> arrays;
  std::vector<ArgType> types(c.inputs.begin(), c.inputs.end());
  for (const ShapeDtype& t : c.inputs) arrays.push_back(benchmark::drawn(t));
  Array result = Array::empty(c.output.shape, c.output.dtype, gpu);
  const Kernel kernel = c.kernel.on(Target::cuda);
  const std::size_t n = arrays.size();
  const double us = benchmark::gpu_microseconds([&] {
    if (n == 1) kernel.into({result}, {arrays[0]});
    if (n == 2) kernel.into({result}, {arrays[0], arrays[1]});
    if (n == 3) kernel.into({result}, {arrays[0], arrays[1], arrays[2]});
  });
  const double predicted =
      c.kernel.lower(types).report({.arch = default_arch()}).prediction.microseconds;
  std::printf("gpu %-20s %10.1f us  %8.1f %s", c.name.c_str(), us,
              c.flops > 0 ? c.flops / us * 1e-6 : c.bytes / us * 1e-3,
              c.flops > 0 ? "TFLOPS" : "GB/s");
  if (predicted > 0) std::printf("  predicted %.1f us", predicted);
  std::puts(benchmark::words_of(peers, c.peer.empty() ? c.name : c.peer, us).c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int, char** argv) try {
  const std::vector<DeviceInfo> gpus = devices();
  if (gpus.empty()) {
    std::puts("no GPU: nothing to measure");
    return 0;
  }
  std::printf("gpu %s, %s\n", gpus[0].name.c_str(), gpus[0].arch.c_str());
  const driver::ContextScope current(0);
  // All compile beside one another, and beside the peers; what is refused says measure().
  const std::vector<Case> all = cases();
  std::vector<CompileFuture> compiles;
  for (const Case& c : all) try {
      const std::vector<ArgType> types(c.inputs.begin(), c.inputs.end());
      compiles.push_back(c.kernel.on(Target::cuda).lower(types).compile_async());
    } catch (const Error&) {
    }
  const benchmark::Peers peers = benchmark::peers_by("gpu_peers.py", argv[0]);
  int failed = 0;
  for (const Case& c : all) try {
      measure(c, peers);
    } catch (const Error& error) {
      std::printf("gpu %-20s failed: %s\n", c.name.c_str(), error.what());
      ++failed;
    }
  return failed == 0 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
