// The fake driver's functions on memory.
#include <algorithm>
#include <optional>

#include "tests/fake_cuda/driver.hpp"

using namespace fake_cuda;

namespace {

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

}  // namespace

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
  wait_for_kernels();
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

EXPORT int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* base,
                                  const std::uint64_t* extents, const std::uint64_t* strides,
                                  const std::uint32_t* box, const std::uint32_t* element_strides,
                                  int interleave, int swizzle, int l2_promotion, int fill) {
  ENTER_WITH_CONTEXT(cuTensorMapEncodeTiled);
  const auto misaligned = [](const void* p, std::uintptr_t to) {
    return reinterpret_cast<std::uintptr_t>(p) % to != 0;
  };
  if (current().major < 9 || misaligned(map, 64) || misaligned(base, 16)) return invalid_value;
  if (rank < 1 || rank > 5 || type < 0 || type > 12 || interleave != 0) return invalid_value;
  if (swizzle < 0 || swizzle > 3 || l2_promotion < 0 || l2_promotion > 3) return invalid_value;
  for (unsigned d = 0; d < rank; ++d) {
    if (extents[d] == 0 || box[d] == 0 || box[d] > 256) return invalid_value;
    if (element_strides[d] == 0 || element_strides[d] > 8) return invalid_value;
    if (d > 0 && strides[d - 1] % 16 != 0) return invalid_value;
  }
  State& state = driver().state;
  const std::uint64_t number = state.tensor_maps.size();
  state.tensor_maps.push_back({type,
                               rank,
                               base,
                               {extents, extents + rank},
                               {strides, strides + rank - 1},
                               {box, box + rank},
                               {element_strides, element_strides + rank},
                               swizzle,
                               l2_promotion,
                               fill});
  std::memset(map, 0, 128);
  std::memcpy(map, &number, sizeof number);
  return 0;
}

std::span<const fake_cuda::Entry> fake_cuda::memory_entries() {
  static const Entry entries[] = {
      ENTRY(cuMemAllocAsync, 11020),      ENTRY(cuMemFreeAsync, 11020),
      ENTRY_V2(cuMemAlloc, 3020),         ENTRY_V2(cuMemFree, 3020),
      ENTRY(cuMemHostAlloc, 2020),        ENTRY(cuMemFreeHost, 2000),
      ENTRY_V2(cuMemcpyHtoDAsync, 3020),  ENTRY_V2(cuMemcpyDtoHAsync, 3020),
      ENTRY_V2(cuMemcpyDtoDAsync, 3020),  ENTRY_V2(cuMemcpyHtoD, 3020),
      ENTRY_V2(cuMemcpyDtoH, 3020),       ENTRY(cuMemsetD8Async, 3020),
      ENTRY(cuPointerGetAttribute, 4000), ENTRY(cuTensorMapEncodeTiled, 12000),
  };
  return entries;
}
