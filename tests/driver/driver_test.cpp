// Finding a driver, and telling a machine without a GPU from a broken one.
#include "runtime/driver/driver.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <thread>
#include <vector>

#include "palladium/error.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/memory.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;
using driver::Place;
using driver::State;

namespace {

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const CudaError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The machine as a test left it would be another test's.
struct Version {
  explicit Version(fake_cuda::State& state, int version) : state_(state) {
    state.driver_version = version;
  }
  ~Version() { state_.driver_version = 13000; }
  fake_cuda::State& state_;
};

}  // namespace

TEST_CASE("a driver that works is ready, and every function of it is found") {
  test::fake_driver();
  const driver::Loaded loaded = driver::load(test::fake_libcuda());
  CHECK(loaded.status.state == State::ready);
  CHECK(loaded.status.reason.empty());
  CHECK(loaded.status.version == 13000);
  CHECK(loaded.status.cuda_major() == 13);
  CHECK(loaded.status.devices == 2);
#define PALLADIUM_FOUND(name, version, parameters) CHECK(loaded.functions.name != nullptr);
  PALLADIUM_DRIVER_FUNCTIONS(PALLADIUM_FOUND)
#undef PALLADIUM_FOUND
}

TEST_CASE("a machine without a driver or a device is no error") {
  fake_cuda::State& state = test::fake_driver();
  const driver::Loaded nothing = driver::load("/nonexistent/libcuda.so.1");
  CHECK(nothing.status.state == State::no_driver);
  CHECK(nothing.status.reason.find("no CUDA driver: /nonexistent/libcuda.so.1: cannot open") == 0);
  state.results["cuInit"] = 100;
  const driver::Loaded no_device = driver::load(test::fake_libcuda());
  CHECK(no_device.status.state == State::no_device);
  CHECK(no_device.status.reason == "the CUDA driver for CUDA 13.0 finds no GPU");
  state.results["cuInit"] = 34;
  const driver::Loaded stub = driver::load(test::fake_libcuda());
  CHECK(stub.status.state == State::no_driver);
  CHECK(stub.status.reason.find("is the stub that programs are linked with") != std::string::npos);
}

TEST_CASE("a driver that is there but cannot be used says what to do") {
  fake_cuda::State& state = test::fake_driver();
  SECTION("too old") {
    const Version old(state, 11080);
    const driver::Loaded loaded = driver::load(test::fake_libcuda());
    CHECK(loaded.status.state == State::unusable);
    CHECK(loaded.status.version == 11080);
    CHECK(loaded.status.reason ==
          "the CUDA driver is too old: it is for CUDA 11.8, and 12.0 is needed; update the NVIDIA "
          "driver to 525 or newer");
  }
  SECTION("the oldest that serves") {
    const Version oldest(state, 12000);
    CHECK(driver::load(test::fake_libcuda()).status.state == State::ready);
  }
  SECTION("it does not start") {
    state.results["cuInit"] = 803;
    const driver::Loaded loaded = driver::load(test::fake_libcuda());
    CHECK(loaded.status.state == State::unusable);
    CHECK(loaded.status.reason ==
          "the CUDA driver for CUDA 13.0 does not start: cuInit: system has unsupported display "
          "driver / cuda driver combination (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH); see whether "
          "nvidia-smi works and restart after a driver update");
  }
  SECTION("no library") {
    const test::Folder folder;
    REQUIRE(files::publish(folder / "libcuda.so.1", "not a library"));
    const driver::Loaded loaded = driver::load(folder / "libcuda.so.1");
    CHECK(loaded.status.state == State::unusable);
    CHECK(loaded.status.reason.find("the CUDA driver library cannot be loaded: ") == 0);
  }
  SECTION("another library") {
    const driver::Loaded loaded = driver::load("libc.so.6");
    CHECK(loaded.status.state == State::unusable);
    CHECK(loaded.status.reason == "libc.so.6 is not a CUDA driver library");
  }
}

TEST_CASE("the process's driver is the one that PALLADIUM_LIBCUDA names") {
  test::fake_driver();
  CHECK(driver::status().state == State::ready);
  CHECK(driver::status().path == test::fake_libcuda());
  CHECK(&driver::api() == &driver::api());
}

TEST_CASE("a failed call names itself, its arguments and the driver's words") {
  test::fake_driver();
  CHECK_NOTHROW(driver::check(0, "cuMemAllocAsync", 5));
  CHECK(message_of([] {
          driver::check(2, "cuMemAllocAsync", "5 bytes", std::string("device 1"));
        }) == "cuMemAllocAsync(5 bytes, device 1): out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
  CHECK(message_of([] {
          driver::check(1, "cuX", driver::Dim3{4096, 2, 1}, -3, 7u);
        }) == "cuX(4096x2x1, -3, 7): invalid argument (CUDA_ERROR_INVALID_VALUE)");
  CHECK(message_of([] { driver::check(700, "cuStreamSynchronize"); }) ==
        "cuStreamSynchronize: an illegal memory access was encountered "
        "(CUDA_ERROR_ILLEGAL_ADDRESS)");
  CHECK(message_of([] { driver::check(12345, "cuX"); }) == "cuX: error 12345");
}

TEST_CASE("devices are described once, and only those that exist") {
  fake_cuda::State& state = test::fake_driver();
  const driver::Device& second = driver::device(1);
  CHECK(second.ordinal == 1);
  CHECK(second.name == "Fake H100");
  CHECK(second.arch() == "sm_90a");
  CHECK(second.multiprocessors == 132);
  CHECK(second.memory_bytes == std::size_t{80} << 30);
  CHECK(second.shared_bytes == 49152);
  CHECK(second.shared_bytes_opt_in == 232448);
  CHECK(second.threads_per_block == 1024);
  CHECK(second.has_cooperative_launch);
  CHECK(second.has_clusters);
  CHECK(second.has_memory_pools);
  state.calls.clear();
  CHECK(&driver::device(1) == &second);
  CHECK(state.calls.empty());
  CHECK(message_of([] { driver::device(2); }) ==
        "device 2 does not exist: this machine has devices 0 to 1");
  CHECK(message_of([] { driver::device(-1); }) ==
        "device -1 does not exist: this machine has devices 0 to 1");
}

TEST_CASE("an architecture has its accelerated form from Hopper on") {
  driver::Device device;
  device.major = 8;
  device.minor = 6;
  CHECK(device.arch() == "sm_86");
  device.major = 10;
  device.minor = 0;
  CHECK(device.arch() == "sm_100a");
}

TEST_CASE("a context scope takes the primary context and leaves the thread as it was") {
  fake_cuda::State& state = test::fake_driver();
  CHECK(driver::current_device() == -1);
  {
    const driver::ContextScope outer(1);
    CHECK(driver::current_device() == 1);
    {
      const driver::ContextScope inner(0);
      CHECK(driver::current_device() == 0);
    }
    CHECK(driver::current_device() == 1);
  }
  CHECK(driver::current_device() == -1);
  { const driver::ContextScope again(1); }
  CHECK(state.count("cuDevicePrimaryCtxRetain") <= 2);
}

TEST_CASE("a caller's context of the device is used as it is") {
  fake_cuda::State& state = test::fake_driver();
  const driver::ContextScope callers(0);
  state.calls.clear();
  {
    const driver::ContextScope ours(0);
    CHECK(driver::current_device() == 0);
  }
  CHECK(state.count("cuCtxPushCurrent") == 0);
  CHECK(state.count("cuCtxPopCurrent") == 0);
}

TEST_CASE("threads that need a device at once retain its context once") {
  fake_cuda::State& state = test::fake_driver();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (int j = 0; j < 100; ++j) const driver::ContextScope scope(j % 2);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(state.count("cuDevicePrimaryCtxRetain") <= 2);
  CHECK(state.count("cuCtxPushCurrent") == 800);
  CHECK(state.count("cuCtxPopCurrent") == 800);
}

TEST_CASE("a pointer tells where its memory is") {
  test::fake_driver();
  const int on_stack = 0;
  CHECK(driver::place_of(&on_stack) == Place{Place::Kind::host, -1});
  const driver::ContextScope context(1);
  const driver::DeviceMemory memory(1, 1000, nullptr);
  CHECK(driver::place_of(memory.pointer()) == Place{Place::Kind::device, 1});
  CHECK(driver::place_of(static_cast<char*>(memory.pointer()) + 999) ==
        Place{Place::Kind::device, 1});
  CHECK(driver::place_of(static_cast<char*>(memory.pointer()) + 1000).kind == Place::Kind::host);
  const driver::PinnedMemory pinned(64);
  CHECK(driver::place_of(pinned.pointer()).kind == Place::Kind::pinned);
}
