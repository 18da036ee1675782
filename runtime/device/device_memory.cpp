#include "runtime/device/device_memory.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include "runtime/device/reached.hpp"
#include "runtime/driver/device.hpp"
#include "runtime/driver/memory.hpp"

namespace palladium::runtime {
namespace {

driver::StreamHandle handle(Stream stream) {
  return reinterpret_cast<driver::StreamHandle>(stream.handle());
}

/// Waits for the stream, and tells what kernels had to say. That comes first where they failed.
void wait_for(driver::StreamHandle stream) {
  std::exception_ptr failure;
  try {
    driver::synchronize(stream);
  } catch (const CudaError&) {
    failure = std::current_exception();
  }
  call_reached();
  if (failure) std::rethrow_exception(failure);
}

class PoolStorage final : public palladium::detail::Storage {
 public:
  PoolStorage(int device, std::size_t bytes, Stream stream)
      : stream_(stream), memory_(device, bytes, handle(stream)) {}
  CUstream_st* stream() const override { return stream_.handle(); }
  void* data() const { return memory_.pointer(); }

 private:
  Stream stream_;
  driver::DeviceMemory memory_;
};

}  // namespace

Device device_of_pointer(const void* pointer) {
  if (driver::status().state != driver::State::ready) return Device::cpu();
  const driver::Place place = driver::place_of(pointer);
  const bool on_gpu =
      place.kind == driver::Place::Kind::device || place.kind == driver::Place::Kind::managed;
  return on_gpu ? Device::cuda(place.device) : Device::cpu();
}

palladium::detail::Storage* allocate(Device device, std::size_t bytes, Stream stream, void*& data) {
  auto* storage = new PoolStorage(device.index, bytes, stream);
  data = storage->data();
  return storage;
}

void synchronize(Device device, Stream stream) {
  const driver::ContextScope context(device.index);
  wait_for(handle(stream));
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                Stream stream) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const driver::ContextScope context((from_device.is_cpu() ? to_device : from_device).index);
  if (to_device.is_cpu())
    driver::copy_to_host(to, from, bytes, handle(stream));
  else if (from_device.is_cpu())
    driver::copy_to_device(to, from, bytes, handle(stream));
  else
    driver::copy_on_device(to, from, bytes, handle(stream));
  wait_for(handle(stream));
}

void clear_bytes(void* data, Device device, std::size_t bytes) {
  clear_bytes(data, device, bytes, {});
  if (device.is_cpu()) return;
  const driver::ContextScope context(device.index);
  wait_for(nullptr);
}

void clear_bytes(void* data, Device device, std::size_t bytes, Stream stream) {
  if (device.is_cpu()) {
    std::memset(data, 0, bytes);
    return;
  }
  const driver::ContextScope context(device.index);
  driver::fill(data, 0, bytes, handle(stream));
}

}  // namespace palladium::runtime
