// The fake driver's functions. Results are CUresult values, as in cuda.h.
#include "tests/fake_cuda/fake_cuda.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "runtime/driver/abi.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace abi = palladium::driver::abi;
using fake_cuda::Device;
using fake_cuda::Launch;
using fake_cuda::State;

constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int not_initialized = 3;
constexpr int no_device = 100;
constexpr int invalid_device = 101;
constexpr int invalid_image = 200;
constexpr int invalid_context = 201;
constexpr int invalid_handle = 400;
constexpr int not_found = 500;
constexpr int cooperative_launch_too_large = 720;
constexpr int invalid_cluster_size = 912;

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
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

}  // namespace

namespace palladium::driver::abi {

// Handles point to these, so that a handle of another kind or a stale one is found.
struct CudaContext {
  int device;
};
struct CudaStream {
  int device;
};
struct CudaEvent {
  bool recorded = false;
};
struct CudaLibrary {
  std::vector<std::byte> image;  // empty when it is no ELF file
};
struct CudaKernel {
  CudaLibrary* library;
  std::string name;
  std::vector<std::size_t> sizes_in_cubin;
  std::map<int, int> shared_bytes_allowed;  // by device
  std::set<int> large_clusters_allowed;
};

}  // namespace palladium::driver::abi

namespace {

using abi::CudaContext;
using abi::CudaEvent;
using abi::CudaKernel;
using abi::CudaLibrary;
using abi::CudaStream;

struct Allocation {
  std::size_t bytes;
  int device;  // -1: pinned host memory
};

/// What the driver knows and tests do not see.
struct Driver {
  State state;
  bool initialized = false;
  std::vector<std::unique_ptr<CudaContext>> primary;
  std::set<abi::Stream> streams;
  std::set<abi::Event> events;
  std::set<abi::Library> libraries;
  std::map<std::pair<abi::Library, std::string>, std::unique_ptr<CudaKernel>> kernels;
  std::set<const void*> kernel_handles;
  std::map<std::uintptr_t, Allocation> allocations;

  Driver() {
    if (const char* version = std::getenv("FAKE_CUDA_VERSION"))
      state.driver_version = std::atoi(version);
    if (const char* count = std::getenv("FAKE_CUDA_DEVICES"))
      state.devices.resize(static_cast<std::size_t>(std::atoi(count)));
    if (const char* arch = std::getenv("FAKE_CUDA_ARCH"))
      for (Device& device : state.devices) {
        device.major = std::atoi(arch) / 10;
        device.minor = std::atoi(arch) % 10;
      }
    if (const char* fail = std::getenv("FAKE_CUDA_FAIL"))
      if (const char* equals = std::strchr(fail, '='))
        state.results[std::string(fail, equals)] = std::atoi(equals + 1);
  }
};

Driver& driver() {
  static Driver& instance = *new Driver;
  return instance;
}

thread_local std::vector<abi::Context> contexts;

/// Held for the length of a call; result() is what the call returns before doing anything.
class Call {
 public:
  explicit Call(const char* name, bool needs_init = true) : lock_(driver().state.mutex) {
    State& state = driver().state;
    if (state.recording) state.calls.emplace_back(name);
    const auto told = state.results.find(name);
    if (told != state.results.end()) {
      result_ = told->second;
    } else if (needs_init && !driver().initialized) {
      result_ = not_initialized;
    }
  }
  int result() const { return result_; }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  int result_ = 0;
};

#define ENTER(name)       \
  const Call call(#name); \
  if (call.result() != 0) return call.result()
#define ENTER_WITH_CONTEXT(name) \
  ENTER(name);                   \
  if (contexts.empty()) return invalid_context

bool is_device(abi::Device device) {
  return device >= 0 && device < static_cast<int>(driver().state.devices.size());
}

const Device& current() {
  return driver().state.devices.at(static_cast<std::size_t>(contexts.back()->device));
}

/// The null stream is one of the current context.
int check_stream(abi::Stream stream) {
  if (stream == nullptr) return contexts.empty() ? invalid_context : 0;
  return driver().streams.count(stream) != 0 ? 0 : invalid_handle;
}

int device_of(abi::Stream stream) {
  return stream == nullptr ? contexts.back()->device : stream->device;
}

/// The allocation that holds all of [address, address + bytes).
std::optional<Allocation> allocation_of(std::uintptr_t address, std::size_t bytes) {
  auto after = driver().allocations.upper_bound(address);
  if (after == driver().allocations.begin()) return std::nullopt;
  const auto& [begin, allocation] = *--after;
  if (address - begin >= allocation.bytes || bytes > allocation.bytes - (address - begin))
    return std::nullopt;
  return allocation;
}

bool is_device_memory(std::uintptr_t address, std::size_t bytes) {
  const std::optional<Allocation> found = allocation_of(address, bytes);
  return found && found->device >= 0;
}

int allocate(std::size_t bytes, int device, std::uintptr_t& address) {
  if (bytes == 0) return invalid_value;
  void* memory = nullptr;
  if (posix_memalign(&memory, 512, bytes) != 0) return out_of_memory;
  std::memset(memory, 0xcd, bytes);  // as good as what a GPU has there
  address = reinterpret_cast<std::uintptr_t>(memory);
  driver().allocations[address] = {bytes, device};
  ++(device < 0 ? driver().state.pinned_allocations : driver().state.allocations);
  return 0;
}

int release(std::uintptr_t address, bool pinned) {
  const auto found = driver().allocations.find(address);
  if (found == driver().allocations.end() || (found->second.device < 0) != pinned)
    return invalid_value;
  driver().allocations.erase(found);
  std::free(reinterpret_cast<void*>(address));
  --(pinned ? driver().state.pinned_allocations : driver().state.allocations);
  return 0;
}

template <class T>
T at(const std::vector<std::byte>& image, std::size_t offset) {
  T value = {};
  if (offset + sizeof value <= image.size())
    std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

/// Copies an ELF image, whose header tells its size; empty for anything else.
std::vector<std::byte> copy_image(const void* data) {
  if (std::memcmp(data, ELFMAG, SELFMAG) != 0) return {};
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof header);
  const std::size_t sections = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
  const std::size_t segments = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  const auto* bytes = static_cast<const std::byte*>(data);
  return {bytes, bytes + std::max(sections, segments)};
}

/// The section of a cubin by its name; empty without.
std::vector<std::byte> section_of(const std::vector<std::byte>& image, const std::string& name) {
  const auto header = at<Elf64_Ehdr>(image, 0);
  const auto section = [&](std::size_t index) {
    return at<Elf64_Shdr>(image, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr each = section(i);
    const std::size_t text = names.sh_offset + each.sh_name;
    if (text + name.size() + 1 > image.size() || each.sh_offset + each.sh_size > image.size())
      continue;
    if (std::memcmp(image.data() + text, name.c_str(), name.size() + 1) == 0)
      return {image.begin() + static_cast<std::ptrdiff_t>(each.sh_offset),
              image.begin() + static_cast<std::ptrdiff_t>(each.sh_offset + each.sh_size)};
  }
  return {};
}

/// A kernel's argument sizes as its cubin states them: records of the kind EIATTR_KPARAM_INFO in
/// its section .nv.info.<name>, last argument first.
std::vector<std::size_t> sizes_in_cubin(const std::vector<std::byte>& image,
                                        const std::string& kernel) {
  constexpr unsigned char format_sized = 4;
  constexpr unsigned char kparam_info = 0x17;
  const std::vector<std::byte> info = section_of(image, ".nv.info." + kernel);
  std::map<unsigned, std::size_t> sizes;
  for (std::size_t i = 0; i + 4 <= info.size();) {
    const auto format = at<unsigned char>(info, i);
    const auto kind = at<unsigned char>(info, i + 1);
    const std::size_t size = format == format_sized ? at<std::uint16_t>(info, i + 2) : 0;
    if (format == format_sized && kind == kparam_info && size >= 12)
      sizes[at<std::uint16_t>(info, i + 8)] = at<std::uint32_t>(info, i + 12) >> 18;
    i += 4 + size;
  }
  std::vector<std::size_t> ordered;
  for (const auto& [ordinal, size] : sizes) ordered.push_back(size);
  return ordered;
}

/// A CUfunction is the CUkernel it came from.
CudaKernel* kernel_of(const void* handle) {
  if (driver().kernel_handles.count(handle) == 0) return nullptr;
  return static_cast<CudaKernel*>(const_cast<void*>(handle));
}

void log_launch(const Launch& launch) {
  static const char* path = std::getenv("FAKE_CUDA_LOG");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s grid %ux%ux%u block %ux%ux%u cluster %ux%ux%u shared %u arguments %zu\n",
                 launch.kernel.c_str(), launch.grid[0], launch.grid[1], launch.grid[2],
                 launch.block[0], launch.block[1], launch.block[2], launch.cluster[0],
                 launch.cluster[1], launch.cluster[2], launch.shared_bytes,
                 launch.arguments.size());
    std::fclose(file);
  }
}

/// What a driver refuses about a launch on this device.
int check_launch(const CudaKernel& kernel, const abi::LaunchConfig& config, int device_ordinal,
                 unsigned (&cluster)[3], bool& cooperative, bool& overlaps) {
  const Device& device = driver().state.devices.at(static_cast<std::size_t>(device_ordinal));
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const abi::LaunchAttribute& attribute = config.attributes[i];
    if (attribute.id == abi::attribute_cluster_dimension) {
      cluster[0] = attribute.value.cluster.x;
      cluster[1] = attribute.value.cluster.y;
      cluster[2] = attribute.value.cluster.z;
    } else if (attribute.id == abi::attribute_cooperative) {
      cooperative = attribute.value.flag != 0;
    } else if (attribute.id == abi::attribute_programmatic_stream_serialization) {
      overlaps = attribute.value.flag != 0;
    } else {
      return invalid_value;
    }
  }
  const std::uint64_t blocks = std::uint64_t{config.grid_x} * config.grid_y * config.grid_z;
  const std::uint64_t threads = std::uint64_t{config.block_x} * config.block_y * config.block_z;
  if (blocks == 0 || threads == 0 || threads > 1024) return invalid_value;
  if (config.grid_x > 0x7fffffffu || config.grid_y > 65535 || config.grid_z > 65535)
    return invalid_value;
  const auto allowed = kernel.shared_bytes_allowed.find(device_ordinal);
  const unsigned most_shared = static_cast<unsigned>(
      allowed == kernel.shared_bytes_allowed.end() ? device.shared_bytes : allowed->second);
  if (config.shared_bytes > most_shared) return invalid_value;
  const unsigned cluster_blocks = cluster[0] * cluster[1] * cluster[2];
  if (cluster_blocks == 0) return invalid_cluster_size;
  if (cluster_blocks > 1) {
    if (device.major < 9) return invalid_value;
    if (config.grid_x % cluster[0] != 0 || config.grid_y % cluster[1] != 0 ||
        config.grid_z % cluster[2] != 0)
      return invalid_cluster_size;
    const bool large = kernel.large_clusters_allowed.count(device_ordinal) != 0;
    if (cluster_blocks > (large ? 16u : 8u)) return invalid_cluster_size;
  }
  if (cooperative && blocks > static_cast<std::uint64_t>(device.multiprocessors) *
                                  static_cast<std::uint64_t>(device.blocks_per_multiprocessor))
    return cooperative_launch_too_large;
  return 0;
}

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
  ENTER(cuCtxGetCurrent);
  *context = contexts.empty() ? nullptr : contexts.back();
  return 0;
}

EXPORT int cuCtxSetCurrent(abi::Context context) {
  ENTER(cuCtxSetCurrent);
  if (!contexts.empty()) contexts.pop_back();
  if (context != nullptr) contexts.push_back(context);
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
  return 0;
}

EXPORT int cuLibraryLoadData(abi::Library* library, const void* image, int*, void**, unsigned, int*,
                             void**, unsigned) {
  ENTER(cuLibraryLoadData);
  if (image == nullptr) return invalid_value;
  std::vector<std::byte> copy = copy_image(image);
  if (copy.empty()) return invalid_image;
  *library = new CudaLibrary{std::move(copy)};
  driver().libraries.insert(*library);
  ++driver().state.libraries;
  return 0;
}

EXPORT int cuLibraryUnload(abi::Library library) {
  ENTER(cuLibraryUnload);
  if (driver().libraries.erase(library) == 0) return invalid_handle;
  std::erase_if(driver().kernels, [&](const auto& each) {
    if (each.first.first != library) return false;
    driver().kernel_handles.erase(each.second.get());
    return true;
  });
  delete library;
  --driver().state.libraries;
  return 0;
}

EXPORT int cuLibraryGetKernel(abi::Kernel* kernel, abi::Library library, const char* name) {
  ENTER(cuLibraryGetKernel);
  if (driver().libraries.count(library) == 0) return invalid_handle;
  // A kernel's code is a section of the cubin.
  if (section_of(library->image, std::string(".text.") + name).empty()) return not_found;
  std::unique_ptr<CudaKernel>& slot = driver().kernels[{library, name}];
  if (!slot) {
    slot = std::make_unique<CudaKernel>();
    slot->library = library;
    slot->name = name;
    slot->sizes_in_cubin = sizes_in_cubin(library->image, name);
    driver().kernel_handles.insert(slot.get());
  }
  *kernel = slot.get();
  return 0;
}

EXPORT int cuKernelGetFunction(abi::Function* function, abi::Kernel kernel) {
  ENTER_WITH_CONTEXT(cuKernelGetFunction);
  if (kernel_of(kernel) == nullptr) return invalid_handle;
  *function = reinterpret_cast<abi::Function>(kernel);
  return 0;
}

EXPORT int cuKernelGetParamInfo(abi::Kernel handle, std::size_t index, std::size_t* offset,
                                std::size_t* size) {
  ENTER(cuKernelGetParamInfo);
  const CudaKernel* kernel = kernel_of(handle);
  if (kernel == nullptr) return invalid_handle;
  const auto told = driver().state.argument_sizes.find(kernel->name);
  const std::vector<std::size_t>& sizes =
      told == driver().state.argument_sizes.end() ? kernel->sizes_in_cubin : told->second;
  if (index >= sizes.size()) return invalid_value;
  std::size_t at_offset = 0;
  for (std::size_t i = 0; i <= index; ++i) {
    const std::size_t alignment = std::min<std::size_t>(sizes[i] == 0 ? 1 : sizes[i], 8);
    at_offset = (at_offset + alignment - 1) / alignment * alignment;
    if (i < index) at_offset += sizes[i];
  }
  *offset = at_offset;
  *size = sizes[index];
  return 0;
}

EXPORT int cuKernelSetAttribute(int attribute, int value, abi::Kernel handle, int device) {
  ENTER(cuKernelSetAttribute);
  CudaKernel* kernel = kernel_of(handle);
  if (kernel == nullptr) return invalid_handle;
  if (!is_device(device)) return invalid_device;
  if (attribute == abi::max_dynamic_shared_size_bytes) {
    if (value > driver().state.devices[static_cast<std::size_t>(device)].shared_bytes_opt_in)
      return invalid_value;
    kernel->shared_bytes_allowed[device] = value;
    return 0;
  }
  if (attribute == abi::non_portable_cluster_size_allowed) {
    kernel->large_clusters_allowed.insert(device);
    return 0;
  }
  return invalid_value;
}

EXPORT int cuLaunchKernelEx(const abi::LaunchConfig* config, abi::Function function,
                            void** arguments, void**) {
  State& state = driver().state;
  if (!state.recording && state.results.empty()) {
    state.launch_count.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  ENTER_WITH_CONTEXT(cuLaunchKernelEx);
  if (const int bad = check_stream(config->stream); bad != 0) return bad;
  const CudaKernel* kernel = kernel_of(function);
  if (kernel == nullptr) return invalid_handle;
  Launch launch;
  launch.device = device_of(config->stream);
  if (launch.device != contexts.back()->device) return invalid_handle;
  const int bad = check_launch(*kernel, *config, launch.device, launch.cluster, launch.cooperative,
                               launch.overlaps_previous);
  if (bad != 0) return bad;
  launch.kernel = kernel->name;
  const unsigned grid[3] = {config->grid_x, config->grid_y, config->grid_z};
  const unsigned block[3] = {config->block_x, config->block_y, config->block_z};
  std::copy_n(grid, 3, launch.grid);
  std::copy_n(block, 3, launch.block);
  launch.shared_bytes = config->shared_bytes;
  launch.stream = config->stream;
  const auto told = state.argument_sizes.find(kernel->name);
  const std::vector<std::size_t>& sizes =
      told == state.argument_sizes.end() ? kernel->sizes_in_cubin : told->second;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(arguments[i]);
    launch.arguments.emplace_back(bytes, bytes + sizes[i]);
  }
  state.launch_count.fetch_add(1, std::memory_order_relaxed);
  log_launch(launch);
  if (state.recording) state.launches.push_back(launch);
  if (state.on_launch) state.on_launch(launch);
  return 0;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, abi::Function function,
                                                       int threads, std::size_t) {
  ENTER_WITH_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  if (kernel_of(function) == nullptr) return invalid_handle;
  if (threads <= 0) return invalid_value;
  *blocks = threads > 1024 ? 0 : current().blocks_per_multiprocessor;
  return 0;
}

EXPORT int cuOccupancyMaxActiveClusters(int* clusters, abi::Function function,
                                        const abi::LaunchConfig* config) {
  ENTER_WITH_CONTEXT(cuOccupancyMaxActiveClusters);
  const CudaKernel* kernel = kernel_of(function);
  if (kernel == nullptr) return invalid_handle;
  unsigned cluster[3] = {1, 1, 1};
  bool cooperative = false;
  bool overlaps = false;
  const int bad =
      check_launch(*kernel, *config, contexts.back()->device, cluster, cooperative, overlaps);
  if (bad != 0 && bad != cooperative_launch_too_large) return bad;
  *clusters = current().multiprocessors * current().blocks_per_multiprocessor /
              static_cast<int>(cluster[0] * cluster[1] * cluster[2]);
  return 0;
}

EXPORT int cuStreamCreate(abi::Stream* stream, unsigned) {
  ENTER_WITH_CONTEXT(cuStreamCreate);
  *stream = new CudaStream{contexts.back()->device};
  driver().streams.insert(*stream);
  ++driver().state.streams;
  return 0;
}

EXPORT int cuStreamDestroy_v2(abi::Stream stream) {
  ENTER(cuStreamDestroy);
  if (driver().streams.erase(stream) == 0) return invalid_handle;
  delete stream;
  --driver().state.streams;
  return 0;
}

EXPORT int cuStreamSynchronize(abi::Stream stream) {
  ENTER(cuStreamSynchronize);
  return check_stream(stream);
}

EXPORT int cuStreamQuery(abi::Stream stream) {
  ENTER(cuStreamQuery);
  return check_stream(stream);
}

EXPORT int cuStreamWaitEvent(abi::Stream stream, abi::Event event, unsigned) {
  ENTER(cuStreamWaitEvent);
  if (driver().events.count(event) == 0) return invalid_handle;
  return check_stream(stream);
}

EXPORT int cuStreamIsCapturing(abi::Stream stream, int* status) {
  ENTER(cuStreamIsCapturing);
  *status = driver().state.capturing ? 1 : 0;
  return check_stream(stream);
}

EXPORT int cuEventCreate(abi::Event* event, unsigned) {
  ENTER_WITH_CONTEXT(cuEventCreate);
  *event = new CudaEvent;
  driver().events.insert(*event);
  ++driver().state.events;
  return 0;
}

EXPORT int cuEventDestroy_v2(abi::Event event) {
  ENTER(cuEventDestroy);
  if (driver().events.erase(event) == 0) return invalid_handle;
  delete event;
  --driver().state.events;
  return 0;
}

EXPORT int cuEventRecord(abi::Event event, abi::Stream stream) {
  ENTER(cuEventRecord);
  if (driver().events.count(event) == 0) return invalid_handle;
  event->recorded = true;
  return check_stream(stream);
}

EXPORT int cuEventQuery(abi::Event event) {
  ENTER(cuEventQuery);
  return driver().events.count(event) != 0 ? 0 : invalid_handle;
}

EXPORT int cuEventSynchronize(abi::Event event) {
  ENTER(cuEventSynchronize);
  return driver().events.count(event) != 0 ? 0 : invalid_handle;
}

EXPORT int cuEventElapsedTime(float* milliseconds, abi::Event start, abi::Event end) {
  ENTER(cuEventElapsedTime);
  if (driver().events.count(start) == 0 || driver().events.count(end) == 0) return invalid_handle;
  if (!start->recorded || !end->recorded) return invalid_handle;
  *milliseconds = 0.5f;
  return 0;
}

EXPORT int cuMemAllocAsync(abi::DevicePointer* pointer, std::size_t bytes, abi::Stream stream) {
  ENTER(cuMemAllocAsync);
  if (const int bad = check_stream(stream); bad != 0) return bad;
  return allocate(bytes, device_of(stream), *pointer);
}

EXPORT int cuMemFreeAsync(abi::DevicePointer pointer, abi::Stream stream) {
  ENTER(cuMemFreeAsync);
  if (const int bad = check_stream(stream); bad != 0) return bad;
  return release(pointer, false);
}

EXPORT int cuMemAlloc_v2(abi::DevicePointer* pointer, std::size_t bytes) {
  ENTER_WITH_CONTEXT(cuMemAlloc);
  return allocate(bytes, contexts.back()->device, *pointer);
}

EXPORT int cuMemFree_v2(abi::DevicePointer pointer) {
  ENTER(cuMemFree);
  return release(pointer, false);
}

EXPORT int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  ENTER_WITH_CONTEXT(cuMemHostAlloc);
  std::uintptr_t address = 0;
  const int result = allocate(bytes, -1, address);
  *pointer = reinterpret_cast<void*>(address);
  return result;
}

EXPORT int cuMemFreeHost(void* pointer) {
  ENTER(cuMemFreeHost);
  return release(reinterpret_cast<std::uintptr_t>(pointer), true);
}

EXPORT int cuMemcpyHtoDAsync_v2(abi::DevicePointer to, const void* from, std::size_t bytes,
                                abi::Stream stream) {
  ENTER(cuMemcpyHtoDAsync);
  if (const int bad = check_stream(stream); bad != 0) return bad;
  if (!is_device_memory(to, bytes)) return invalid_value;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}

EXPORT int cuMemcpyDtoHAsync_v2(void* to, abi::DevicePointer from, std::size_t bytes,
                                abi::Stream stream) {
  ENTER(cuMemcpyDtoHAsync);
  if (const int bad = check_stream(stream); bad != 0) return bad;
  if (!is_device_memory(from, bytes)) return invalid_value;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}

EXPORT int cuMemcpyDtoDAsync_v2(abi::DevicePointer to, abi::DevicePointer from, std::size_t bytes,
                                abi::Stream stream) {
  ENTER(cuMemcpyDtoDAsync);
  if (const int bad = check_stream(stream); bad != 0) return bad;
  if (!is_device_memory(to, bytes) || !is_device_memory(from, bytes)) return invalid_value;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}

EXPORT int cuMemcpyHtoD_v2(abi::DevicePointer to, const void* from, std::size_t bytes) {
  ENTER_WITH_CONTEXT(cuMemcpyHtoD);
  return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}

EXPORT int cuMemcpyDtoH_v2(void* to, abi::DevicePointer from, std::size_t bytes) {
  ENTER_WITH_CONTEXT(cuMemcpyDtoH);
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}

EXPORT int cuMemsetD8Async(abi::DevicePointer to, unsigned char byte, std::size_t bytes,
                           abi::Stream stream) {
  ENTER(cuMemsetD8Async);
  if (const int bad = check_stream(stream); bad != 0) return bad;
  if (!is_device_memory(to, bytes)) return invalid_value;
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  return 0;
}

EXPORT int cuPointerGetAttribute(void* value, int attribute, abi::DevicePointer pointer) {
  ENTER(cuPointerGetAttribute);
  const std::optional<Allocation> found = allocation_of(pointer, 1);
  if (!found) return invalid_value;
  int answer = 0;
  switch (attribute) {
  case abi::pointer_memory_type:
    answer = found->device < 0 ? abi::memory_type_host : abi::memory_type_device;
    break;
  case abi::pointer_is_managed: answer = 0; break;
  case abi::pointer_device_ordinal: answer = std::max(found->device, 0); break;
  default: return invalid_value;
  }
  *static_cast<int*>(value) = answer;
  return 0;
}

namespace {

struct Entry {
  const char* name;
  int since;
  void* address;
};

#define ENTRY(name, since) \
  { #name, since, reinterpret_cast < void*>(name) }
#define ENTRY_V2(name, since) \
  { #name, since, reinterpret_cast < void*>(name##_v2) }
const Entry entries[] = {
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
    ENTRY(cuLibraryLoadData, 12000),
    ENTRY(cuLibraryUnload, 12000),
    ENTRY(cuLibraryGetKernel, 12000),
    ENTRY(cuKernelGetFunction, 12000),
    ENTRY(cuKernelGetParamInfo, 12040),
    ENTRY(cuKernelSetAttribute, 12000),
    ENTRY(cuLaunchKernelEx, 11060),
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050),
    ENTRY(cuOccupancyMaxActiveClusters, 11070),
    ENTRY(cuStreamCreate, 2000),
    ENTRY_V2(cuStreamDestroy, 4000),
    ENTRY(cuStreamSynchronize, 2000),
    ENTRY(cuStreamQuery, 2000),
    ENTRY(cuStreamWaitEvent, 3020),
    ENTRY(cuStreamIsCapturing, 10000),
    ENTRY(cuEventCreate, 2000),
    ENTRY_V2(cuEventDestroy, 4000),
    ENTRY(cuEventRecord, 2000),
    ENTRY(cuEventQuery, 2000),
    ENTRY(cuEventSynchronize, 2000),
    ENTRY(cuEventElapsedTime, 2000),
    ENTRY(cuMemAllocAsync, 11020),
    ENTRY(cuMemFreeAsync, 11020),
    ENTRY_V2(cuMemAlloc, 3020),
    ENTRY_V2(cuMemFree, 3020),
    ENTRY(cuMemHostAlloc, 2020),
    ENTRY(cuMemFreeHost, 2000),
    ENTRY_V2(cuMemcpyHtoDAsync, 3020),
    ENTRY_V2(cuMemcpyDtoHAsync, 3020),
    ENTRY_V2(cuMemcpyDtoDAsync, 3020),
    ENTRY_V2(cuMemcpyHtoD, 3020),
    ENTRY_V2(cuMemcpyDtoH, 3020),
    ENTRY(cuMemsetD8Async, 3020),
    ENTRY(cuPointerGetAttribute, 4000),
};

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
