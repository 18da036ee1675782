#include "runtime/driver/device.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"
#include "palladium/error.hpp"

namespace palladium::driver {
namespace {

int attribute(int which, abi::Device handle) {
  int value = 0;
  check(api().cuDeviceGetAttribute(&value, which, handle), "cuDeviceGetAttribute", which, handle);
  return value;
}

Device query(int ordinal) {
  Device found;
  found.ordinal = ordinal;
  check(api().cuDeviceGet(&found.handle, ordinal), "cuDeviceGet", ordinal);
  char name[256] = "";
  check(api().cuDeviceGetName(name, sizeof name, found.handle), "cuDeviceGetName", ordinal);
  found.name = name;
  check(api().cuDeviceTotalMem(&found.memory_bytes, found.handle), "cuDeviceTotalMem", ordinal);
  found.major = attribute(abi::compute_capability_major, found.handle);
  found.minor = attribute(abi::compute_capability_minor, found.handle);
  found.multiprocessors = attribute(abi::multiprocessor_count, found.handle);
  found.l2_bytes = attribute(abi::l2_cache_size, found.handle);
  found.threads_per_block = attribute(abi::max_threads_per_block, found.handle);
  found.shared_bytes = attribute(abi::max_shared_memory_per_block, found.handle);
  found.shared_bytes_opt_in = attribute(abi::max_shared_memory_per_block_optin, found.handle);
  found.has_cooperative_launch = attribute(abi::cooperative_launch, found.handle) != 0;
  found.has_clusters = attribute(abi::cluster_launch, found.handle) != 0;
  found.has_memory_pools = attribute(abi::memory_pools_supported, found.handle) != 0;
  return found;
}

/// The devices, and the primary contexts that are known.
struct Devices {
  Devices() {
    api();
    for (int ordinal = 0; ordinal < status().devices; ++ordinal) all.push_back(query(ordinal));
    contexts.resize(all.size());
  }
  std::vector<Device> all;
  std::deque<std::atomic<abi::Context>> contexts;
  std::mutex mutex;  // inside of forking::Sections
};

Devices& known() {
  static constinit std::atomic<Devices*> made = nullptr;
  if (Devices* found = made.load(std::memory_order_acquire)) return *found;
  const forking::Section section;
  static Devices& only = *new Devices;
  made.store(&only, std::memory_order_release);
  return only;
}

const std::vector<Device>& devices() { return known().all; }

/// The device's primary context, kept until the process ends: other holders come and go, and it
/// must not be destroyed under our kernels and arrays.
abi::Context primary_context(const Device& of) {
  std::atomic<abi::Context>& slot = known().contexts[static_cast<std::size_t>(of.ordinal)];
  if (const abi::Context found = slot.load(std::memory_order_acquire); found != nullptr)
    return found;
  const forking::Section section;
  const std::lock_guard lock(known().mutex);
  if (const abi::Context found = slot.load(std::memory_order_acquire); found != nullptr)
    return found;
  abi::Context retained = nullptr;
  check(api().cuDevicePrimaryCtxRetain(&retained, of.handle), "cuDevicePrimaryCtxRetain",
        "device " + std::to_string(of.ordinal));
  slot.store(retained, std::memory_order_release);
  return retained;
}

abi::Context current_context() {
  abi::Context current = nullptr;
  check(api().cuCtxGetCurrent(&current), "cuCtxGetCurrent");
  return current;
}

/// Of the current context, which there must be; -1 for a device that is none of ours.
int device_of_current() {
  abi::Device handle = 0;
  check(api().cuCtxGetDevice(&handle), "cuCtxGetDevice");
  for (const Device& each : devices())
    if (each.handle == handle) return each.ordinal;
  return -1;
}

}  // namespace

std::string Device::arch() const {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

const Device& device(int ordinal) {
  const std::vector<Device>& all = devices();
  if (ordinal < 0 || ordinal >= static_cast<int>(all.size()))
    throw CudaError(fmt::format(
        "device {} does not exist: this machine has {}", ordinal,
        all.size() == 1 ? "device 0 only" : fmt::format("devices 0 to {}", all.size() - 1)));
  return all[static_cast<std::size_t>(ordinal)];
}

int current_device() {
  const abi::Context current = current_context();
  return current == nullptr ? -1 : device_of_current();
}

ContextScope::ContextScope(int ordinal) {
  const abi::Context current = current_context(), primary = primary_context(device(ordinal));
  is_primary_ = current == primary;
  if (is_primary_) return;
  if (current != nullptr && device_of_current() == ordinal) return;
  check(api().cuCtxPushCurrent(primary), "cuCtxPushCurrent", "device " + std::to_string(ordinal));
  is_primary_ = is_pushed_ = true;
}

ContextScope::~ContextScope() {
  if (!is_pushed_) return;
  abi::Context popped = nullptr;
  const abi::Result result = api().cuCtxPopCurrent(&popped);
  if (result != abi::success && result != abi::deinitialized)
    log::error("cuCtxPopCurrent: " + describe(result));
}

void synchronize_context() { check(api().cuCtxSynchronize(), "cuCtxSynchronize"); }

Place place_of(const void* pointer) {
  const auto address = reinterpret_cast<abi::DevicePointer>(pointer);
  int type = 0;
  const abi::Result result = api().cuPointerGetAttribute(&type, abi::pointer_memory_type, address);
  if (result == abi::invalid_value) return {};  // the driver knows nothing of it
  check(result, "cuPointerGetAttribute", "memory type", pointer);
  Place place;
  place.kind = type == abi::memory_type_host ? Place::Kind::pinned : Place::Kind::device;
  int managed = 0;
  check(api().cuPointerGetAttribute(&managed, abi::pointer_is_managed, address),
        "cuPointerGetAttribute", "is managed", pointer);
  if (managed != 0) place.kind = Place::Kind::managed;
  check(api().cuPointerGetAttribute(&place.device, abi::pointer_device_ordinal, address),
        "cuPointerGetAttribute", "device ordinal", pointer);
  return place;
}

}  // namespace palladium::driver
