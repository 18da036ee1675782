// Streams, events and memory: used right, released once, and refused with their name.
#include "runtime/driver/memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "palladium/error.hpp"
#include "runtime/driver/capture.hpp"
#include "runtime/driver/device.hpp"
#include "tests/fake_cuda/in_test.hpp"
#include "tests/support/captured_stderr.hpp"

using namespace palladium;
using driver::ContextScope;
using driver::DeviceMemory;
using driver::Stream;

TEST_CASE("bytes go to a device, across it and back") {
  test::fake_driver();
  const ContextScope context(0);
  const Stream stream;
  const std::string text = "palladium";
  const DeviceMemory first(0, text.size(), stream.handle());
  const DeviceMemory second(0, text.size(), stream.handle());
  driver::copy_to_device(first.pointer(), text.data(), text.size(), stream.handle());
  driver::copy_on_device(second.pointer(), first.pointer(), text.size(), stream.handle());
  driver::fill(second.pointer(), 'X', 3, stream.handle());
  std::string back(text.size(), ' ');
  driver::copy_to_host(back.data(), second.pointer(), back.size(), stream.handle());
  driver::synchronize(stream.handle());
  CHECK(back == "XXXladium");
}

TEST_CASE("memory, streams and events are released exactly once, moved or not") {
  fake_cuda::State& state = test::fake_driver();
  const std::size_t allocations = state.allocations;
  const std::size_t streams = state.streams;
  const std::size_t events = state.events;
  const std::size_t pinned = state.pinned_allocations;
  {
    const ContextScope context(0);
    Stream first;
    Stream stream = std::move(first);
    DeviceMemory a(0, 100, stream.handle());
    DeviceMemory b = std::move(a);
    DeviceMemory c;
    c = std::move(b);
    DeviceMemory d(0, 10, stream.handle());
    d = std::move(c);
    driver::Event event;
    driver::Event other = std::move(event);
    driver::PinnedMemory host(50);
    driver::PinnedMemory host_too = std::move(host);
    CHECK(state.allocations == allocations + 2);
    CHECK(state.streams == streams + 1);
    CHECK(state.events == events + 1);
    CHECK(state.pinned_allocations == pinned + 1);
  }
  CHECK(state.allocations == allocations);
  CHECK(state.streams == streams);
  CHECK(state.events == events);
  CHECK(state.pinned_allocations == pinned);
}

TEST_CASE("memory of a device can be had and released with no context current") {
  fake_cuda::State& state = test::fake_driver();
  const std::size_t before = state.allocations;
  {
    const DeviceMemory memory(1, 16, nullptr);
    CHECK(memory.device() == 1);
    CHECK(driver::place_of(memory.pointer()).device == 1);
  }
  CHECK(state.allocations == before);
}

TEST_CASE("no bytes need no driver call") {
  fake_cuda::State& state = test::fake_driver();
  {
    const DeviceMemory none(0, 0, nullptr);
    const driver::PinnedMemory nothing(0);
    CHECK(none.pointer() == nullptr);
    driver::copy_to_device(none.pointer(), nullptr, 0, nullptr);
    driver::copy_to_host(nullptr, none.pointer(), 0, nullptr);
    driver::copy_on_device(none.pointer(), none.pointer(), 0, nullptr);
    driver::fill(none.pointer(), 0, 0, nullptr);
  }
  CHECK(state.calls.empty());
}

TEST_CASE("an allocation that fails says how much and where") {
  fake_cuda::State& state = test::fake_driver();
  state.results["cuMemAllocAsync"] = 2;
  try {
    const DeviceMemory memory(1, 1 << 20, nullptr);
    FAIL("allocated");
  } catch (const CudaError& error) {
    CHECK(std::string(error.what()) ==
          "cuMemAllocAsync(1048576 bytes, device 1): out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
  }
  CHECK(driver::current_device() == -1);
}

TEST_CASE("a release that fails is logged, for a destructor cannot throw") {
  fake_cuda::State& state = test::fake_driver();
  const test::CapturedStderr log;
  const ContextScope context(0);
  {
    const DeviceMemory memory(0, 16, nullptr);
    state.results["cuMemFreeAsync"] = 700;
  }
  CHECK(log.text().find("cuMemFreeAsync: an illegal memory access was encountered") !=
        std::string::npos);
}

TEST_CASE("events order streams and measure them") {
  fake_cuda::State& state = test::fake_driver();
  const ContextScope context(0);
  const Stream first;
  const Stream second;
  driver::Event start(driver::Event::Timing::on);
  driver::Event end(driver::Event::Timing::on);
  start.record(first.handle());
  driver::wait(second.handle(), start);
  end.record(second.handle());
  end.synchronize();
  CHECK(end.is_done());
  CHECK(end.milliseconds_since(start) == 0.5f);  // of the fake, from record to record
  CHECK(start.milliseconds_since(end) == -0.5f);
  CHECK(state.count("cuStreamWaitEvent") == 1);
  state.results["cuEventQuery"] = 600;
  CHECK_FALSE(end.is_done());
  CHECK_FALSE(driver::is_capturing(first.handle()));
  state.capturing = true;
  CHECK(driver::is_capturing(first.handle()));
}
