// What a call costs on the host, against the fake driver: `into` with held arrays beside the bare
// launch of the same kernel.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "benchmarks/timing.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/driver.hpp"
#include "runtime/driver/memory.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"

using namespace palladium;
using pl::_;

namespace {

long allocations = 0, environment_reads = 0;

/// The best of many runs, in nanoseconds per call.
double best_ns(const auto& call) {
  constexpr int runs = 200, calls = 1000;
  return 1e9 / calls * benchmark::best_of(runs, benchmark::wall_seconds, [&] {
           for (int i = 0; i < calls; ++i) call();
         });
}

/// A launch of the kernel that was launched last, by hand: everything is known beforehand.
class Bare {
 public:
  Bare(const fake_cuda::Launch& made, const Compiled& compiled) : values_(made.arguments) {
    const driver::abi::Functions& api = driver::api();
    driver::abi::Library library = nullptr;
    driver::abi::Kernel kernel = nullptr;
    api.cuLibraryLoadData(&library, compiled.cubin().data(), nullptr, nullptr, 0, nullptr, nullptr,
                          0);
    api.cuLibraryGetKernel(&kernel, library, made.kernel.c_str());
    function_ = reinterpret_cast<driver::abi::Function>(kernel);
    for (auto& v : values_) pointers_.push_back(v.data());
    config_.grid_x = made.grid[0];
    config_.grid_y = config_.grid_z = config_.block_y = config_.block_z = 1;
    config_.block_x = made.block[0];
    config_.shared_bytes = made.shared_bytes;
  }
  void launch() { driver::api().cuLaunchKernelEx(&config_, function_, pointers_.data(), nullptr); }

 private:
  std::vector<std::vector<std::byte>> values_;
  std::vector<void*> pointers_;
  driver::abi::LaunchConfig config_ = {};
  driver::abi::Function function_ = nullptr;
};

/// Whether the goal is met.
bool report(const char* what, double ours, double bare, double goal, long allocated, long read,
            const char* peer) {
  std::printf(
      "%-44s %6.1f ns more  target <= %.0f ns  (%.1f ns, bare fake launch %.1f ns; %ld "
      "allocations, %ld getenv)  %s\n",
      what, ours - bare, goal, ours, bare, allocated, read, peer);
  return ours - bare <= goal && allocated == 0 && read == 0;
}

bool measure(const char* what, fake_cuda::State& fake, const Compiled& compiled, double goal,
             const char* peer, const auto& call) {
  call();
  Bare bare(fake.launches.back(), compiled);
  fake.recording = false;
  const double by_hand = best_ns([&] { bare.launch(); });
  const long allocated = allocations, read = environment_reads;
  const double ours = best_ns(call);
  const bool good =
      report(what, ours, by_hand, goal, allocations - allocated, environment_reads - read, peer);
  fake.recording = true;
  return good;
}

/// What the first call of a size takes more than the second, of sizes whose class has been called:
/// the median of many, in nanoseconds.
double first_of_a_size_ns(const Kernel& kernel, const Array& from, const Array& to) {
  constexpr int sizes = 1000;
  const Device gpu = from.device();
  std::vector<Array> inputs, outputs;
  for (std::int64_t i = 0; i < sizes; ++i) {
    const Shape shape{i + 1, 516 + 4 * (i % 100)};
    inputs.push_back(Array::view(from.data(), shape, f32, {.device = &gpu}));
    outputs.push_back(Array::view(to.data(), shape, f32, {.device = &gpu}));
  }
  kernel.into({outputs[0]}, {inputs[0]});
  std::vector<double> more;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto seconds = [&] {
      const double begin = benchmark::wall_seconds();
      kernel.into({outputs[i]}, {inputs[i]});
      return benchmark::wall_seconds() - begin;
    };
    const double first = seconds();
    more.push_back(1e9 * (first - seconds()));
  }
  std::ranges::nth_element(more, more.begin() + sizes / 2);
  return more[sizes / 2];
}

bool measure_new_sizes(const char* what, fake_cuda::State& fake, const Kernel& kernel,
                       const Array& from, const Array& to) {
  fake.recording = false;
  const double more = first_of_a_size_ns(kernel, from, to);
  fake.recording = true;
  std::printf("%-44s %6.1f ns more than the second  target <= 1000 ns\n", what, more);
  return more <= 1000;
}

/// y = the sum of eighteen vectors times a number.
Kernel of_twenty_arguments() {
  return pallas_call(
             [](Value a, Ref x0, Ref x1, Ref x2, Ref x3, Ref x4, Ref x5, Ref x6, Ref x7, Ref x8,
                Ref x9, Ref x10, Ref x11, Ref x12, Ref x13, Ref x14, Ref x15, Ref x16, Ref x17,
                Ref y) {
               y[_] = a * (x0[_] + x1[_] + x2[_] + x3[_] + x4[_] + x5[_] + x6[_] + x7[_] + x8[_] +
                           x9[_] + x10[_] + x11[_] + x12[_] + x13[_] + x14[_] + x15[_] + x16[_] +
                           x17[_]);
             },
             {.name = "sum", .out_type = {{128}, f32}})
      .on(Target::cuda);
}

/// Copies a matrix of any size: whose classes a call has to find.
Kernel copy_of_any_size() {
  return pallas_call(
             [](Ref x, Ref o) { o[_] = x[_]; },
             [](ShapeDtype x) {
               const auto [m, n] = x.shape.unpack<2>();
               const BlockSpec tile{{64, 64}, [](Index i, Index j) { return Indices{i, j}; }};
               return PallasCallOptions{.name = "copy",
                                        .out_type = x,
                                        .grid = {cdiv(m, 64), cdiv(n, 64)},
                                        .in_specs = {tile},
                                        .out_specs = {tile}};
             })
      .on(Target::cuda);
}

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" char* getenv(const char* name) {
  ++environment_reads;
  static auto* const next = reinterpret_cast<char* (*)(const char*)>(dlsym(RTLD_NEXT, "getenv"));
  return next(name);
}

int main(int count, char** arguments) {
  const std::string library = count > 1 ? arguments[1] : FAKE_LIBCUDA;
  ::setenv("PALLADIUM_LIBCUDA", library.c_str(), 1);
  fake_cuda::State& fake = fake_cuda::state(library);
  fake.devices.resize(1);

  const driver::ContextScope context(0);
  const Kernel softmax = ops::softmax().on(Target::cuda);
  const Array x = Array::empty({4096, 1000}, f32, Device::cuda(0));
  const Array y = Array::empty({4096, 1000}, f32, Device::cuda(0));
  bool good = measure("into with held arrays", fake, softmax.lower(x).compile(), 160,
                      "(tvm-ffi 500 to 700 ns)", [&] { softmax.into({y}, {x}); });

  const Kernel copy = copy_of_any_size();
  good &= measure("into with two symbols and their classes", fake, copy.lower(x).compile(), 160, "",
                  [&] { copy.into({y}, {x}); });

  good &= measure_new_sizes("the first call of rows of another length", fake, softmax, x, y);

  // Only such a stream can be captured, which is asked at each launch.
  const driver::Stream own;
  const Kernel on_own = softmax.on(Stream(reinterpret_cast<CUstream_st*>(own.handle())));
  good &= measure("into, on a stream of the program's", fake, softmax.lower(x).compile(), 160, "",
                  [&] { on_own.into({y}, {x}); });

  const Kernel sum = of_twenty_arguments();
  std::vector<Array> a;
  for (int i = 0; i < 19; ++i) a.push_back(Array::empty({128}, f32, Device::cuda(0)));
  const Scalar half = scalar(0.5f);
  const auto call = [&] {
    sum.into({a[18]}, {half, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                       a[11], a[12], a[13], a[14], a[15], a[16], a[17]});
  };
  std::vector<ArgType> types(1, half);
  for (int i = 0; i < 18; ++i) types.push_back(a[static_cast<std::size_t>(i)]);
  good &= measure("into with 20 arguments", fake, sum.lower(types).compile(), 250,
                  "(CuTe DSL by tvm-ffi 710 ns at 19)", call);
  return good ? 0 : 1;
}
