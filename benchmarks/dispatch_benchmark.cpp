// What a call costs on the host, against the fake driver: `into` with held arrays beside the bare
// launch of the same kernel.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/driver.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"

using namespace palladium;

namespace {

long allocations = 0;

/// The best of many runs, in nanoseconds per call: what it costs when nothing else wants the
/// machine.
double best_ns(const auto& call) {
  constexpr int runs = 200, calls = 1000;
  double best = 1e30;
  for (int r = 0; r < runs; ++r) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / calls);
  }
  return best;
}

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main(int count, char** arguments) {
  const std::string library = count > 1 ? arguments[1] : FAKE_LIBCUDA;
  ::setenv("PALLADIUM_LIBCUDA", library.c_str(), 1);
  fake_cuda::State& fake = fake_cuda::state(library);
  fake.devices.resize(1);

  const driver::ContextScope context(0);
  const Kernel softmax = ops::softmax().on(Target::cuda);
  const Array x = Array::empty({4096, 1000}, f32, Device::cuda(0));
  const Array y = Array::empty({4096, 1000}, f32, Device::cuda(0));
  softmax.into({y}, {x});
  fake.recording = false;

  // The same launch by hand: everything is known beforehand.
  const fake_cuda::Launch& made = fake.launches.back();
  driver::abi::Library loaded = nullptr;
  driver::abi::Kernel kernel = nullptr;
  const Compiled compiled = softmax.lower(x).compile();
  const driver::abi::Functions& api = driver::api();
  api.cuLibraryLoadData(&loaded, compiled.cubin().data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  api.cuLibraryGetKernel(&kernel, loaded, made.kernel.c_str());
  std::vector<std::vector<std::byte>> values = made.arguments;
  std::vector<void*> pointers;
  for (auto& v : values) pointers.push_back(v.data());
  driver::abi::LaunchConfig config = {};
  config.grid_x = made.grid[0];
  config.grid_y = config.grid_z = config.block_y = config.block_z = 1;
  config.block_x = made.block[0];
  config.shared_bytes = made.shared_bytes;
  const auto function = reinterpret_cast<driver::abi::Function>(kernel);

  const double bare =
      best_ns([&] { api.cuLaunchKernelEx(&config, function, pointers.data(), nullptr); });
  const long before = allocations;
  const double into = best_ns([&] { softmax.into({y}, {x}); });
  const long per_call = (allocations - before) / 200'000;
  const bool good = into <= 300 && per_call == 0;
  std::printf(
      "into with held arrays  %7.1f ns, %ld allocations   target 300 ns, 0   bare fake launch %.1f "
      "ns\n",
      into, per_call, bare);
  return good ? 0 : 1;
}
