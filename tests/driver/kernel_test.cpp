// Loading and launching: what the driver gets is what was asked for, and nothing more.
#include "runtime/driver/kernel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "codegen/nvrtc/nvrtc.hpp"
#include "palladium/error.hpp"
#include "runtime/driver/device.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/allocations.hpp"

using namespace palladium;
using driver::ContextScope;
using driver::Dim3;
using driver::Kernel;
using driver::Launch;

namespace {

Kernel load(const std::string& name, const std::vector<std::size_t>& sizes = {}, int device = 0) {
  std::string rejection;
  std::optional<Kernel> kernel =
      Kernel::load(test::fake_cubin(name, sizes), name, device, rejection);
  REQUIRE(kernel);
  return std::move(*kernel);
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const CudaError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a cubin is loaded as a library, its kernel found, and unloaded once") {
  fake_cuda::State& state = test::fake_driver();
  const std::size_t before = state.libraries;
  {
    Kernel first = load("softmax");
    CHECK(first.name() == "softmax");
    CHECK(state.libraries == before + 1);
    Kernel second = std::move(first);
    Kernel third = load("add");
    third = std::move(second);
    CHECK(third.name() == "softmax");
  }
  CHECK(state.libraries == before);
}

TEST_CASE("the context of a load is the device's, and is gone afterwards") {
  test::fake_driver();
  const Kernel kernel = load("softmax", {}, 1);
  CHECK(driver::current_device() == -1);
}

TEST_CASE("a cubin that the driver rejects is no error but a reason to compile again") {
  fake_cuda::State& state = test::fake_driver();
  const std::size_t before = state.libraries;
  std::string rejection;
  const std::string junk = "not a cubin";
  CHECK_FALSE(Kernel::load(std::as_bytes(std::span(junk)), "softmax", 0, rejection));
  CHECK(rejection ==
        "cuLibraryLoadData: device kernel image is invalid (CUDA_ERROR_INVALID_IMAGE)");
  // Drivers that load lazily look at the image only when the function is asked for.
  state.results["cuKernelGetFunction"] = 209;
  CHECK_FALSE(Kernel::load(test::fake_cubin("softmax"), "softmax", 0, rejection));
  CHECK(rejection ==
        "cuKernelGetFunction: no kernel image is available for execution on the device "
        "(CUDA_ERROR_NO_BINARY_FOR_GPU)");
  CHECK(state.libraries == before);
}

TEST_CASE("a load that fails for another reason is an error, and leaks nothing") {
  fake_cuda::State& state = test::fake_driver();
  const std::size_t before = state.libraries;
  std::string rejection;
  const auto try_load = [&](const std::string& name) {
    return message_of([&] { Kernel::load(test::fake_cubin("softmax"), name, 0, rejection); });
  };
  CHECK(try_load("matmul") ==
        "cuLibraryGetKernel(matmul): named symbol not found (CUDA_ERROR_NOT_FOUND)");
  state.results["cuLibraryLoadData"] = 2;
  const std::size_t bytes = test::fake_cubin("softmax").size();
  CHECK(try_load("softmax") == "cuLibraryLoadData(softmax, " + std::to_string(bytes) +
                                   " bytes): out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
  CHECK(state.libraries == before);
}

TEST_CASE("grid, block, cluster, shared memory, stream and attributes reach the driver") {
  fake_cuda::State& state = test::fake_driver();
  const Kernel kernel = load("matmul");
  const ContextScope context(0);
  const driver::Stream stream;
  kernel.allow_shared_bytes(100'000, 0);
  driver::launch(kernel,
                 {.grid = {8, 6, 4},
                  .block = {128, 2, 1},
                  .cluster = {2, 3, 1},
                  .shared_bytes = 100'000,
                  .cooperative = true,
                  .overlaps_previous = true,
                  .stream = stream.handle()},
                 nullptr);
  REQUIRE(state.launches.size() == 1);
  const fake_cuda::Launch& seen = state.launches[0];
  CHECK(seen.kernel == "matmul");
  CHECK((seen.grid[0] == 8 && seen.grid[1] == 6 && seen.grid[2] == 4));
  CHECK((seen.block[0] == 128 && seen.block[1] == 2 && seen.block[2] == 1));
  CHECK((seen.cluster[0] == 2 && seen.cluster[1] == 3 && seen.cluster[2] == 1));
  CHECK(seen.shared_bytes == 100'000);
  CHECK(seen.cooperative);
  CHECK(seen.overlaps_previous);
  CHECK(seen.stream == stream.handle());
  CHECK(seen.device == 0);
}

TEST_CASE("a plain launch carries no attributes") {
  fake_cuda::State& state = test::fake_driver();
  const Kernel kernel = load("add");
  const ContextScope context(1);
  driver::launch(kernel, {.grid = {7}, .block = {128}}, nullptr);
  REQUIRE(state.launches.size() == 1);
  const fake_cuda::Launch& seen = state.launches[0];
  CHECK((seen.cluster[0] == 1 && seen.cluster[1] == 1 && seen.cluster[2] == 1));
  CHECK_FALSE(seen.cooperative);
  CHECK_FALSE(seen.overlaps_previous);
  CHECK(seen.stream == nullptr);
  CHECK(seen.device == 1);
}

TEST_CASE("arguments are copied by the sizes that the kernel states") {
  fake_cuda::State& state = test::fake_driver();
  struct Array {
    void* pointer;
    std::int64_t shape[2];
    bool operator==(const Array&) const = default;
  };
  const Kernel kernel = load("softmax", {sizeof(Array), sizeof(float), 1});
  const ContextScope context(0);
  Array array = {&state, {4096, 1000}};
  float scale = 0.125f;
  bool flag = true;
  void* arguments[] = {&array, &scale, &flag};
  driver::launch(kernel, {.grid = {4096}, .block = {128}}, arguments);
  const Array sent = array;
  array = {};
  scale = 0;
  REQUIRE(state.launches.size() == 1);
  REQUIRE(state.launches[0].arguments.size() == 3);
  CHECK(state.launches[0].argument<Array>(0) == sent);
  CHECK(state.launches[0].argument<float>(1) == 0.125f);
  CHECK(state.launches[0].argument<bool>(2));
}

TEST_CASE("a real cubin loads and its arguments arrive as the compiler laid them out") {
  const nvrtc::Search& search = nvrtc::toolchain();
  if (!search.found) SKIP(nvrtc::missing_toolchain_message(search));
  fake_cuda::State& state = test::fake_driver();
  const nvrtc::Result compiled = nvrtc::compile(
      {.source = "struct View { float* pointer; long long shape[2]; };\n"
                 "extern \"C\" __global__ void scale(View a, float by, short n, double more) {\n"
                 "  if (threadIdx.x < n) a.pointer[threadIdx.x] *= by * more;\n"
                 "}\n",
       .arch = "sm_90a"},
      *search.found);
  REQUIRE(compiled.ok);
  std::string rejection;
  const std::optional<Kernel> kernel = Kernel::load(compiled.cubin, "scale", 0, rejection);
  REQUIRE(kernel);
  const ContextScope context(0);
  struct View {
    float* pointer;
    long long shape[2];
  } view = {nullptr, {3, 5}};
  float by = 2;
  short n = 77;
  double more = 0.5;
  void* arguments[] = {&view, &by, &n, &more};
  driver::launch(*kernel, {.grid = {1}, .block = {128}}, arguments);
  REQUIRE(state.launches.size() == 1);
  REQUIRE(state.launches[0].arguments.size() == 4);
  CHECK(state.launches[0].argument<View>(0).shape[1] == 5);
  CHECK(state.launches[0].argument<float>(1) == 2);
  CHECK(state.launches[0].argument<short>(2) == 77);
  CHECK(state.launches[0].argument<double>(3) == 0.5);
}

TEST_CASE("a refused launch says everything that was asked for") {
  test::fake_driver();
  const Kernel kernel = load("softmax");
  const ContextScope context(0);
  CHECK(message_of([&] { driver::launch(kernel, {.grid = {4096}, .block = {2048}}, nullptr); }) ==
        "cuLaunchKernelEx(softmax, grid 4096x1x1, block 2048x1x1): invalid argument "
        "(CUDA_ERROR_INVALID_VALUE)");
  CHECK(message_of([&] {
          driver::launch(kernel, {.grid = {3}, .block = {128}, .cluster = {2}}, nullptr);
        }) ==
        "cuLaunchKernelEx(softmax, grid 3x1x1, block 128x1x1, cluster 2x1x1): cluster "
        "misconfiguration (CUDA_ERROR_INVALID_CLUSTER_SIZE)");
  CHECK(message_of([&] {
          driver::launch(kernel, {.grid = {1}, .block = {128}, .shared_bytes = 50'000}, nullptr);
        }) ==
        "cuLaunchKernelEx(softmax, grid 1x1x1, block 128x1x1, 50000 bytes of dynamic shared "
        "memory): invalid argument (CUDA_ERROR_INVALID_VALUE)");
  CHECK(message_of([&] {
          driver::launch(kernel, {.grid = {265}, .block = {128}, .cooperative = true}, nullptr);
        }) ==
        "cuLaunchKernelEx(softmax, grid 265x1x1, block 128x1x1, cooperative, of whose blocks 264 "
        "fit at once on device 0): too many blocks in cooperative launch "
        "(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)");
}

TEST_CASE("a launch with no context current is the driver's error") {
  test::fake_driver();
  const Kernel kernel = load("softmax");
  CHECK(message_of([&] { driver::launch(kernel, {.grid = {1}, .block = {128}}, nullptr); }) ==
        "cuLaunchKernelEx(softmax, grid 1x1x1, block 128x1x1): invalid device context "
        "(CUDA_ERROR_INVALID_CONTEXT)");
}

TEST_CASE("shared memory beyond the default and large clusters must be allowed first") {
  test::fake_driver();
  const Kernel kernel = load("matmul");
  const ContextScope context(0);
  const Launch big = {.grid = {16}, .block = {128}, .cluster = {16}, .shared_bytes = 200'000};
  CHECK_THROWS_AS(driver::launch(kernel, big, nullptr), CudaError);
  kernel.allow_shared_bytes(200'000, 0);
  CHECK_THROWS_AS(driver::launch(kernel, big, nullptr), CudaError);
  kernel.allow_large_clusters(0);
  CHECK_NOTHROW(driver::launch(kernel, big, nullptr));
  CHECK(message_of([&] { kernel.allow_shared_bytes(300'000, 1); }) ==
        "cuKernelSetAttribute(matmul, dynamic shared memory, 300000, of at most 232448 on device "
        "1): invalid argument (CUDA_ERROR_INVALID_VALUE)");
}

TEST_CASE("residency counts the blocks of the whole device") {
  test::fake_driver();
  const Kernel kernel = load("softmax");
  const ContextScope context(0);
  CHECK(driver::resident_blocks(kernel, {.grid = {1}, .block = {128}}) == 264);
  CHECK(driver::resident_blocks(kernel, {.grid = {8}, .block = {128}, .cluster = {4}}) == 264);
}

TEST_CASE("a launch allocates nothing and asks the driver for nothing else") {
  fake_cuda::State& state = test::fake_driver();
  const Kernel kernel = load("softmax", {8});
  const ContextScope context(0);
  void* pointer = nullptr;
  void* arguments[] = {&pointer};
  const Launch launch = {.grid = {16}, .block = {128}, .cluster = {2}};
  driver::launch(kernel, launch, arguments);
  state.calls.clear();
  driver::launch(kernel, launch, arguments);
  CHECK(state.calls == std::vector<std::string>{"cuLaunchKernelEx"});
  state.recording = false;
  const std::size_t before = state.launch_count;
  {
    const test::CountedAllocations counted;
    for (int i = 0; i < 1000; ++i) driver::launch(kernel, launch, arguments);
    CHECK(counted.count() == 0);
  }
  CHECK(state.launch_count == before + 1000);
}

TEST_CASE("a test can play the kernel") {
  fake_cuda::State& state = test::fake_driver();
  const Kernel kernel = load("fill", {8, 1});
  const ContextScope context(0);
  const driver::DeviceMemory memory(0, 4, nullptr);
  state.on_launch = [](const fake_cuda::Launch& launch) {
    auto* to = launch.argument<char*>(0);
    for (unsigned i = 0; i < launch.grid[0]; ++i) to[i] = launch.argument<char>(1);
  };
  void* pointer = memory.pointer();
  char value = 'p';
  void* arguments[] = {&pointer, &value};
  driver::launch(kernel, {.grid = {4}, .block = {1}}, arguments);
  char back[4];
  driver::copy_to_host(back, memory.pointer(), 4, nullptr);
  CHECK(std::string(back, 4) == "pppp");
}
