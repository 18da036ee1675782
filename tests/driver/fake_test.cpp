// The fake as programs meet it that cannot reach into it: steered by variables.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "runtime/driver/driver.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;
using driver::State;
using test::Environment;
using test::Folder;

namespace {

/// A fake of its own: the library is loaded anew from a copy, and reads its variables then.
driver::Loaded load_copy(const Folder& folder) {
  const std::string copy = folder / "libcuda.so.1";
  REQUIRE(files::publish(copy, test::text_of(test::fake_libcuda())));
  return driver::load(copy);
}

}  // namespace

TEST_CASE("FAKE_CUDA_DEVICES gives a machine with that many devices, or none") {
  const Folder folder;
  SECTION("none") {
    const Environment variable("FAKE_CUDA_DEVICES", "0");
    CHECK(load_copy(folder).status.state == State::no_device);
  }
  SECTION("three of another architecture") {
    const Environment variable("FAKE_CUDA_DEVICES", "3");
    const Environment arch("FAKE_CUDA_ARCH", "86");
    const driver::Loaded loaded = load_copy(folder);
    CHECK(loaded.status.devices == 3);
    int major = 0;
    int minor = 0;
    loaded.functions.cuDeviceGetAttribute(&major, driver::abi::compute_capability_major, 2);
    loaded.functions.cuDeviceGetAttribute(&minor, driver::abi::compute_capability_minor, 2);
    CHECK((major == 8 && minor == 6));
  }
}

TEST_CASE("FAKE_CUDA_VERSION and FAKE_CUDA_FAIL give drivers that cannot be used") {
  const Folder folder;
  SECTION("version") {
    const Environment variable("FAKE_CUDA_VERSION", "11040");
    const driver::Loaded loaded = load_copy(folder);
    CHECK(loaded.status.state == State::unusable);
    CHECK(loaded.status.version == 11040);
  }
  SECTION("failure") {
    const Environment variable("FAKE_CUDA_FAIL", "cuInit=999");
    CHECK(load_copy(folder).status.reason.find("CUDA_ERROR_UNKNOWN") != std::string::npos);
  }
}

TEST_CASE("FAKE_CUDA_LOG gets a line per launch") {
  const Folder folder;
  const Environment variable("FAKE_CUDA_LOG", folder / "log");
  const driver::Loaded loaded = load_copy(folder);
  const driver::abi::Functions& functions = loaded.functions;
  driver::abi::Context context;
  driver::abi::Library library;
  driver::abi::Kernel kernel;
  const std::vector<std::byte> cubin = test::fake_cubin("softmax", {8});
  REQUIRE(functions.cuDevicePrimaryCtxRetain(&context, 0) == 0);
  REQUIRE(functions.cuCtxPushCurrent(context) == 0);
  REQUIRE(functions.cuLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr,
                                      0) == 0);
  REQUIRE(functions.cuLibraryGetKernel(&kernel, library, "softmax") == 0);
  driver::abi::LaunchConfig config = {};
  config.grid_x = 4096;
  config.grid_y = config.grid_z = config.block_y = config.block_z = 1;
  config.block_x = 128;
  void* pointer = nullptr;
  void* arguments[] = {&pointer};
  for (int i = 0; i < 2; ++i)
    REQUIRE(functions.cuLaunchKernelEx(&config, reinterpret_cast<driver::abi::Function>(kernel),
                                       arguments, nullptr) == 0);
  const std::string line =
      "softmax grid 4096x1x1 block 128x1x1 cluster 1x1x1 shared 0 arguments 1\n";
  CHECK(test::text_of(folder / "log") == line + line);
  REQUIRE(functions.cuCtxPopCurrent(&context) == 0);
}
