// The fake driver's functions on the process, devices and contexts, and how others are found.
// Results are CUresult values, as in cuda.h.
#include <algorithm>
#include <cstdio>

#include "tests/fake_cuda/driver.hpp"

using namespace fake_cuda;

namespace {

struct Error {
  int result;
  const char* name;
  const char* sentence;
};
constexpr Error errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

}  // namespace

EXPORT State* fake_cuda_state() { return &driver().state; }

EXPORT int cuInit(unsigned flags) {
  const Call call("cuInit", false);
  if (call.result() != 0) return call.result();
  if (flags != 0) return invalid_value;
  if (driver().state.devices.empty()) return no_device;
  if (!driver().initialized)
    for (std::size_t i = 0; i < driver().state.devices.size(); ++i)
      driver().primary.push_back(std::make_unique<CudaContext>(CudaContext{static_cast<int>(i)}));
  driver().initialized = true;
  return 0;
}

EXPORT int cuDriverGetVersion(int* version) {
  *version = driver().state.driver_version;
  return 0;
}

EXPORT int cuGetErrorName(int result, const char** name) {
  for (const Error& error : errors)
    if (error.result == result) return *name = error.name, 0;
  return *name = nullptr, invalid_value;
}

EXPORT int cuGetErrorString(int result, const char** sentence) {
  for (const Error& error : errors)
    if (error.result == result) return *sentence = error.sentence, 0;
  return *sentence = nullptr, invalid_value;
}

EXPORT int cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  *count = static_cast<int>(driver().state.devices.size());
  return 0;
}

EXPORT int cuDeviceGet(int* device, int ordinal) {
  ENTER(cuDeviceGet);
  if (!is_device(ordinal)) return invalid_device;
  *device = ordinal;
  return 0;
}

EXPORT int cuDeviceGetName(char* name, int size, int device) {
  ENTER(cuDeviceGetName);
  if (!is_device(device)) return invalid_device;
  std::snprintf(name, static_cast<std::size_t>(size), "%s",
                driver().state.devices[static_cast<std::size_t>(device)].name.c_str());
  return 0;
}

EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  ENTER(cuDeviceTotalMem);
  if (!is_device(device)) return invalid_device;
  *bytes = driver().state.devices[static_cast<std::size_t>(device)].memory_bytes;
  return 0;
}

EXPORT int cuDeviceGetAttribute(int* value, int attribute, int ordinal) {
  ENTER(cuDeviceGetAttribute);
  if (!is_device(ordinal)) return invalid_device;
  const Device& device = driver().state.devices[static_cast<std::size_t>(ordinal)];
  switch (attribute) {
  case abi::max_threads_per_block: *value = 1024; return 0;
  case abi::max_shared_memory_per_block: *value = device.shared_bytes; return 0;
  case abi::multiprocessor_count: *value = device.multiprocessors; return 0;
  case abi::l2_cache_size: *value = 50 << 20; return 0;
  case abi::compute_capability_major: *value = device.major; return 0;
  case abi::compute_capability_minor: *value = device.minor; return 0;
  case abi::cooperative_launch: *value = 1; return 0;
  case abi::max_shared_memory_per_block_optin: *value = device.shared_bytes_opt_in; return 0;
  case abi::memory_pools_supported: *value = 1; return 0;
  case abi::cluster_launch: *value = device.major >= 9 ? 1 : 0; return 0;
  default: return invalid_value;
  }
}

EXPORT int cuDevicePrimaryCtxRetain(abi::Context* context, int device) {
  ENTER(cuDevicePrimaryCtxRetain);
  if (!is_device(device)) return invalid_device;
  *context = driver().primary[static_cast<std::size_t>(device)].get();
  return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(cuDevicePrimaryCtxRelease);
  return is_device(device) ? 0 : invalid_device;
}

EXPORT int cuCtxGetCurrent(abi::Context* context) {
  if (driver().state.recording || !driver().state.results.empty()) {
    ENTER(cuCtxGetCurrent);
  }
  *context = contexts.empty() ? nullptr : contexts.back();
  return 0;
}

EXPORT int cuCtxSetCurrent(abi::Context context) {
  ENTER(cuCtxSetCurrent);
  if (!contexts.empty()) contexts.pop_back();
  if (context != nullptr) contexts.push_back(context);
  return 0;
}

EXPORT int cuCtxCreate_v2(abi::Context* context, unsigned, int device) {
  ENTER(cuCtxCreate);
  if (!is_device(device)) return invalid_device;
  *context = new CudaContext{device};
  contexts.push_back(*context);
  return 0;
}

EXPORT int cuCtxDestroy_v2(abi::Context context) {
  ENTER(cuCtxDestroy);
  if (!contexts.empty() && contexts.back() == context) contexts.pop_back();
  delete context;
  return 0;
}

EXPORT int cuCtxGetDevice(int* device) {
  ENTER_WITH_CONTEXT(cuCtxGetDevice);
  *device = contexts.back()->device;
  return 0;
}

EXPORT int cuCtxPushCurrent_v2(abi::Context context) {
  ENTER(cuCtxPushCurrent);
  if (context == nullptr) return invalid_context;
  contexts.push_back(context);
  return 0;
}

EXPORT int cuCtxPopCurrent_v2(abi::Context* context) {
  ENTER_WITH_CONTEXT(cuCtxPopCurrent);
  if (context != nullptr) *context = contexts.back();
  contexts.pop_back();
  return 0;
}

EXPORT int cuCtxSynchronize() {
  ENTER_WITH_CONTEXT(cuCtxSynchronize);
  wait_for_kernels();
  if (would_spoil_a_capture()) return ++driver().state.spoiled_captures, capture_unsupported;
  for (auto& [name, kernel] : driver().kernels) kernel->may_run = false;
  return 0;
}

std::span<const fake_cuda::Entry> fake_cuda::process_entries() {
  static const Entry entries[] = {
      ENTRY(cuInit, 2000),
      ENTRY(cuDriverGetVersion, 2020),
      ENTRY(cuGetErrorName, 6000),
      ENTRY(cuGetErrorString, 6000),
      ENTRY(cuDeviceGetCount, 2000),
      ENTRY(cuDeviceGet, 2000),
      ENTRY(cuDeviceGetName, 2000),
      ENTRY(cuDeviceGetAttribute, 2000),
      ENTRY_V2(cuDeviceTotalMem, 3020),
      ENTRY(cuDevicePrimaryCtxRetain, 7000),
      ENTRY_V2(cuDevicePrimaryCtxRelease, 11000),
      ENTRY(cuCtxGetCurrent, 4000),
      ENTRY(cuCtxSetCurrent, 4000),
      ENTRY(cuCtxGetDevice, 2000),
      ENTRY_V2(cuCtxPushCurrent, 4000),
      ENTRY_V2(cuCtxPopCurrent, 4000),
      ENTRY(cuCtxSynchronize, 2000),
  };
  return entries;
}

namespace {

constexpr int found_symbol = 0;
constexpr int no_symbol = 1;
constexpr int symbol_too_new = 2;

}  // namespace

EXPORT int cuGetProcAddress_v2(const char* name, void** address, int version, std::uint64_t,
                               int* status) {
  *address = nullptr;
  int ignored = 0;
  int& answer = status == nullptr ? ignored : *status;
  answer = no_symbol;
  for (const auto entries :
       {process_entries(), launch_entries(), stream_entries(), graph_entries(), memory_entries()})
    for (const Entry& entry : entries) {
      if (std::strcmp(entry.name, name) != 0) continue;
      if (entry.since > driver().state.driver_version) continue;
      answer = symbol_too_new;
      if (entry.since > version) continue;
      *address = entry.address;
      answer = found_symbol;
      return 0;
    }
  return not_found;
}

EXPORT int cuGetProcAddress(const char* name, void** address, int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(name, address, version, flags, nullptr);
}
