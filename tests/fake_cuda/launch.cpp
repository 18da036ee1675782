// The fake driver's functions on libraries, kernels and launches.
#include <elf.h>
#include <algorithm>
#include <cstdio>

#include "tests/fake_cuda/driver.hpp"
#include "tests/fake_cuda/texts.hpp"

using namespace fake_cuda;

namespace {

template <class T>
T at(const std::vector<std::byte>& image, std::size_t offset) {
  T value = {};
  if (offset + sizeof value <= image.size())
    std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

/// Copies an ELF image, whose header tells its size; empty for anything else.
std::vector<std::byte> copy_image(const void* data) {
  const auto* bytes = static_cast<const std::byte*>(data);
  return {bytes, bytes + image_size(data)};
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

EXPORT int cuLibraryLoadData(abi::Library* library, const void* image, int*, void**, unsigned, int*,
                             void**, unsigned) {
  ENTER(cuLibraryLoadData);
  if (would_spoil_a_capture()) return ++driver().state.spoiled_captures, capture_unsupported;
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
  if (would_spoil_a_capture()) return ++driver().state.spoiled_captures, capture_unsupported;
  if (driver().libraries.erase(library) == 0) return invalid_handle;
  std::erase_if(driver().kernels, [&](const auto& each) {
    if (each.first.first != library) return false;
    driver().state.unloaded_while_running += each.second->may_run;
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
  CudaKernel* kernel = kernel_of(function);
  if (kernel == nullptr) return invalid_handle;
  if (config->stream != nullptr && config->stream->recording != nullptr) {
    config->stream->recording->kernels.push_back(kernel);
    return 0;
  }
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
  kernel->may_run = true;
  state.launch_count.fetch_add(1, std::memory_order_relaxed);
  log_launch(launch);
  if (state.recording) state.launches.push_back(launch);
  if (state.on_launch) state.on_launch(launch);
  play(*kernel, launch);
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

std::span<const fake_cuda::Entry> fake_cuda::launch_entries() {
  static const Entry entries[] = {
      ENTRY(cuLibraryLoadData, 12000),
      ENTRY(cuLibraryUnload, 12000),
      ENTRY(cuLibraryGetKernel, 12000),
      ENTRY(cuKernelGetFunction, 12000),
      ENTRY(cuKernelGetParamInfo, 12040),
      ENTRY(cuKernelSetAttribute, 12000),
      ENTRY(cuLaunchKernelEx, 11060),
      ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050),
      ENTRY(cuOccupancyMaxActiveClusters, 11070),
  };
  return entries;
}
