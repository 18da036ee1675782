#include "runtime/driver/memory.hpp"

#include "codegen/base/log.hpp"
#include "runtime/driver/device.hpp"

namespace palladium::driver {
namespace {

abi::DevicePointer address(const void* pointer) {
  return reinterpret_cast<abi::DevicePointer>(pointer);
}

/// For destructors: what cannot be released is logged. At the end of a process the driver may be
/// gone before our statics, which is nobody's fault.
void released(abi::Result result, const char* call) noexcept {
  if (result == abi::success || result == abi::deinitialized) return;
  try {
    log::error(std::string(call) + ": " + describe(result));
  } catch (...) {
    // No memory for a log line.
  }
}

}  // namespace

Stream::Stream() {
  check(api().cuStreamCreate(&handle_, abi::stream_non_blocking), "cuStreamCreate");
}

Stream::~Stream() {
  if (handle_ != nullptr) released(api().cuStreamDestroy(handle_), "cuStreamDestroy");
}

void synchronize(StreamHandle stream) {
  check(api().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void wait(StreamHandle stream, const Event& event) {
  check(api().cuStreamWaitEvent(stream, event.handle(), 0), "cuStreamWaitEvent");
}

Event::Event(Timing timing) {
  const unsigned flags = timing == Timing::on ? 0 : abi::event_disable_timing;
  check(api().cuEventCreate(&handle_, flags), "cuEventCreate");
}

Event::~Event() {
  if (handle_ != nullptr) released(api().cuEventDestroy(handle_), "cuEventDestroy");
}

void Event::record(StreamHandle stream) {
  check(api().cuEventRecord(handle_, stream), "cuEventRecord");
}

bool Event::is_done() const {
  const abi::Result result = api().cuEventQuery(handle_);
  if (result == abi::not_ready) return false;
  check(result, "cuEventQuery");
  return true;
}

void Event::synchronize() const { check(api().cuEventSynchronize(handle_), "cuEventSynchronize"); }

float Event::milliseconds_since(const Event& start) const {
  float milliseconds = 0;
  check(api().cuEventElapsedTime(&milliseconds, start.handle_, handle_), "cuEventElapsedTime");
  return milliseconds;
}

DeviceMemory::DeviceMemory(int device, std::size_t bytes, StreamHandle stream)
    : bytes_(bytes), device_(device), stream_(stream) {
  if (bytes == 0) return;
  const ContextScope context(device);
  abi::DevicePointer allocated = 0;
  check(api().cuMemAllocAsync(&allocated, bytes, stream), "cuMemAllocAsync",
        std::to_string(bytes) + " bytes", "device " + std::to_string(device));
  pointer_ = reinterpret_cast<void*>(allocated);
}

DeviceMemory::~DeviceMemory() {
  if (pointer_ == nullptr) return;
  try {
    const ContextScope context(device_);  // the default stream is one of a context
    released(api().cuMemFreeAsync(address(pointer_), stream_), "cuMemFreeAsync");
  } catch (const std::exception& error) {
    log::error(error.what());
  }
}

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  check(api().cuMemHostAlloc(&pointer_, bytes, 0), "cuMemHostAlloc",
        std::to_string(bytes) + " bytes");
}

PinnedMemory::~PinnedMemory() {
  if (pointer_ != nullptr) released(api().cuMemFreeHost(pointer_), "cuMemFreeHost");
}

void copy_to_device(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  check(api().cuMemcpyHtoDAsync(address(to), from, bytes, stream), "cuMemcpyHtoDAsync", to, from,
        bytes);
}

void copy_to_host(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  check(api().cuMemcpyDtoHAsync(to, address(from), bytes, stream), "cuMemcpyDtoHAsync", to, from,
        bytes);
}

void copy_on_device(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  check(api().cuMemcpyDtoDAsync(address(to), address(from), bytes, stream), "cuMemcpyDtoDAsync", to,
        from, bytes);
}

void fill(void* to, unsigned char byte, std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  check(api().cuMemsetD8Async(address(to), byte, bytes, stream), "cuMemsetD8Async", to, byte,
        bytes);
}

}  // namespace palladium::driver
