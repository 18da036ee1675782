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

/// What a call takes more than another one, in nanoseconds: they take turns, and of each the best
/// of many runs counts.
double difference_ns(const auto& call, const auto& other) {
  constexpr int runs = 1000, calls = 300;
  const auto seconds = [](const auto& one) {
    return benchmark::seconds_of(benchmark::wall_seconds, [&] {
      for (int i = 0; i < calls; ++i) one();
    });
  };
  double least = 1e30, least_of_other = 1e30;
  for (int run = 0; run < runs; ++run) {
    least = std::min(least, seconds(call));
    least_of_other = std::min(least_of_other, seconds(other));
  }
  return 1e9 / calls * (least - least_of_other);
}

bool measure_more(const char* what, const char* than, double goal, fake_cuda::State& fake,
                  const auto& call, const auto& other) {
  call(), other();
  fake.recording = false;
  const double more = difference_ns(call, other);
  fake.recording = true;
  std::printf("%-44s %6.1f ns more than %s  target <= %.0f ns\n", what, more, than, goal);
  return more <= goal;
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

/// A shape as it is, or one that is read, and so is of this size alone.
Shape shape_of(const ShapeDtype& x, bool is_read) {
  Shape shape = x.shape;
  for (int d = 0; is_read && d < shape.rank(); ++d) shape[d] = shape[d].value();
  return shape;
}

/// Copies a matrix: of any size, whose classes a call has to find, or of one.
Kernel copy_matrix(bool of_one_size) {
  return pallas_call(
             [](Ref x, Ref o) { o[_] = x[_]; },
             [=](ShapeDtype x) {
               const auto [m, n] = shape_of(x, of_one_size).unpack<2>();
               const BlockSpec tile{{64, 64}, [](Index i, Index j) { return Indices{i, j}; }};
               return PallasCallOptions{.name = "copy",
                                        .out_type = x,
                                        .grid = {cdiv(m, 64), cdiv(n, 64)},
                                        .in_specs = {tile},
                                        .out_specs = {tile}};
             })
      .on(Target::cuda);
}

/// Likewise a product, of operands that TMA fetches.
Kernel product(bool of_one_size) {
  return pallas_call(
             [](Ref a, Ref b, Ref o, Ref sum) {
               when(program_id(2) == 0, [&] { sum[_] = zeros({128, 128}, f32); });
               sum[_] += dot(a[_], b[_]);
               when(program_id(2) == num_programs(2) - 1, [&] { o[_] = sum[_].astype(f16); });
             },
             [=](ShapeDtype a, ShapeDtype b) {
               const auto [m, k] = shape_of(a, of_one_size).unpack<2>();
               require_equal(k, b.shape[0]);
               const Dim n = shape_of(b, of_one_size)[1];
               return PallasCallOptions{.name = "product",
                                        .out_type = {{m, n}, f16},
                                        .grid = {cdiv(m, 128), cdiv(n, 128), cdiv(k, 64)},
                                        .in_specs = {{{128, 64},
                                                      [](Index i, Index, Index l) {
                                                        return Indices{i, l};
                                                      },
                                                      {.fill = 0}},
                                                     {{64, 128},
                                                      [](Index, Index j, Index l) {
                                                        return Indices{l, j};
                                                      },
                                                      {.fill = 0}}},
                                        .out_specs = {{{128, 128},
                                                       [](Index i, Index j, Index) {
                                                         return Indices{i, j};
                                                       }}},
                                        .scratch_types = {gpu::REGS({128, 128}, f32)}};
             })
      .on(Target::cuda);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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

  const Kernel copy = copy_matrix(false), copy_of_one = copy_matrix(true);
  good &= measure("into with two symbols and their classes", fake, copy.lower(x).compile(), 160, "",
                  [&] { copy.into({y}, {x}); });
  good &= measure_more(
      "a copy of any size", "of one size", 10, fake, [&] { copy.into({y}, {x}); },
      [&] { copy_of_one.into({y}, {x}); });

  const Array odd_x = Array::empty({4096, 13}, f32, Device::cuda(0));
  const Array odd_y = Array::empty({4096, 13}, f32, Device::cuda(0));
  const Kernel odd_copy = copy_matrix(false);
  for (const Kernel* k : {&copy, &odd_copy}) k->into({odd_y}, {odd_x});
  bool is_odd = false, is_odd_of_two = false;
  good &= measure_more(
      "copies of two classes in turn", "by two kernels", 40, fake,
      [&] {
        if ((is_odd = !is_odd))
          copy.into({odd_y}, {odd_x});
        else
          copy.into({y}, {x});
      },
      [&] {
        if ((is_odd_of_two = !is_odd_of_two))
          odd_copy.into({odd_y}, {odd_x});
        else
          copy_of_one.into({y}, {x});
      });

  const Kernel any_product = product(false), product_of_one = product(true);
  const Array a = Array::empty({4096, 1024}, f16, Device::cuda(0));
  const Array b = Array::empty({1024, 2048}, f16, Device::cuda(0));
  const Array ab = Array::empty({4096, 2048}, f16, Device::cuda(0));
  good &= measure_more(
      "a product of any size", "of one size", 10, fake,
      [&] {
        any_product.into({ab}, {a, b});
      },
      [&] {
        product_of_one.into({ab}, {a, b});
      });

  good &= measure_new_sizes("the first call of rows of another length", fake, softmax, x, y);

  // Only such a stream can be captured, which is asked at each launch.
  const driver::Stream own;
  const Kernel on_own = softmax.on(Stream(reinterpret_cast<CUstream_st*>(own.handle())));
  good &= measure("into, on a stream of the program's", fake, softmax.lower(x).compile(), 160, "",
                  [&] { on_own.into({y}, {x}); });

  const Kernel sum = of_twenty_arguments();
  std::vector<Array> v;
  for (int i = 0; i < 19; ++i) v.push_back(Array::empty({128}, f32, Device::cuda(0)));
  const Scalar half = scalar(0.5f);
  const auto call = [&] {
    sum.into({v[18]}, {half, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10],
                       v[11], v[12], v[13], v[14], v[15], v[16], v[17]});
  };
  std::vector<ArgType> types(1, half);
  for (int i = 0; i < 18; ++i) types.push_back(v[static_cast<std::size_t>(i)]);
  good &= measure("into with 20 arguments", fake, sum.lower(types).compile(), 250,
                  "(CuTe DSL by tvm-ffi 710 ns at 19)", call);
  return good ? 0 : 1;
}
