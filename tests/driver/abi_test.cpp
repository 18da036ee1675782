// Our own declarations of the driver's interface against NVIDIA's.
#include "runtime/driver/abi.hpp"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "codegen/base/tensor_map.hpp"

// cuda.h renames functions to their newest version, where we say which one we mean.
#undef cuCtxPopCurrent
#undef cuCtxPushCurrent
#undef cuCtxSynchronize
#undef cuDeviceTotalMem
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuMemcpyDtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyHtoDAsync
#undef cuStreamDestroy
#undef cuStreamGetCaptureInfo

namespace abi = palladium::driver::abi;

namespace {

/// Whether a parameter is passed alike: pointers for pointers, numbers of one size for each other.
template <class Ours, class Theirs>
constexpr bool are_alike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

template <class Ours, class Theirs>
struct Alike : std::false_type {};
template <class... Ours, class... Theirs>
struct Alike<int (*)(Ours...), CUresult (*)(Theirs...)> {
  static constexpr bool same_count() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
      return false;
    } else {
      return (are_alike<Ours, Theirs> && ...);
    }
  }
  static constexpr bool value = same_count();
};

#define PALLADIUM_COMPARE(name, version, parameters)                                           \
  static_assert(Alike<decltype(abi::Functions::name), PFN_##name##_v##version>::value, #name); \
  static_assert(version <= 12000, #name " must be in the oldest driver that we take");
PALLADIUM_DRIVER_FUNCTIONS(PALLADIUM_COMPARE)
#undef PALLADIUM_COMPARE

static_assert(sizeof(abi::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(abi::LaunchConfig, block_x) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(abi::LaunchConfig, shared_bytes) ==
              offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(abi::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(abi::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(abi::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(abi::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(abi::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));

static_assert(abi::invalid_value == CUDA_ERROR_INVALID_VALUE);
static_assert(abi::deinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(abi::stub_library == CUDA_ERROR_STUB_LIBRARY);
static_assert(abi::no_device == CUDA_ERROR_NO_DEVICE);
static_assert(abi::invalid_image == CUDA_ERROR_INVALID_IMAGE);
static_assert(abi::no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(abi::invalid_ptx == CUDA_ERROR_INVALID_PTX);
static_assert(abi::unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(abi::not_ready == CUDA_ERROR_NOT_READY);
static_assert(abi::cooperative_launch_too_large == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);

static_assert(abi::max_threads_per_block == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(abi::max_shared_memory_per_block == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
static_assert(abi::multiprocessor_count == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(abi::l2_cache_size == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(abi::compute_capability_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(abi::compute_capability_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(abi::cooperative_launch == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
static_assert(abi::max_shared_memory_per_block_optin ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(abi::memory_pools_supported == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert(abi::cluster_launch == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
static_assert(abi::max_dynamic_shared_size_bytes ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(abi::non_portable_cluster_size_allowed ==
              CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(abi::pointer_memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(abi::pointer_is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(abi::pointer_device_ordinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(abi::memory_type_host == CU_MEMORYTYPE_HOST);
static_assert(abi::memory_type_device == CU_MEMORYTYPE_DEVICE);
static_assert(abi::stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(abi::event_disable_timing == CU_EVENT_DISABLE_TIMING);
static_assert(abi::user_object_no_destructor_sync == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
static_assert(abi::graph_user_object_move == CU_GRAPH_USER_OBJECT_MOVE);
static_assert(abi::capture_active == CU_STREAM_CAPTURE_STATUS_ACTIVE);
static_assert(abi::capture_mode_relaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(abi::attribute_cooperative == CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
static_assert(abi::attribute_cluster_dimension == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
static_assert(abi::attribute_programmatic_stream_serialization ==
              CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

using palladium::TensorMap;
using palladium::TensorMapType;
static_assert(sizeof(TensorMap) == sizeof(CUtensorMap));
static_assert(alignof(TensorMap) >= alignof(CUtensorMap));  // 64 in CUDA 12, 128 in 13
static_assert(int(TensorMapType::u8) == CU_TENSOR_MAP_DATA_TYPE_UINT8);
static_assert(int(TensorMapType::u16) == CU_TENSOR_MAP_DATA_TYPE_UINT16);
static_assert(int(TensorMapType::u32) == CU_TENSOR_MAP_DATA_TYPE_UINT32);
static_assert(int(TensorMapType::i32) == CU_TENSOR_MAP_DATA_TYPE_INT32);
static_assert(int(TensorMapType::u64) == CU_TENSOR_MAP_DATA_TYPE_UINT64);
static_assert(int(TensorMapType::i64) == CU_TENSOR_MAP_DATA_TYPE_INT64);
static_assert(int(TensorMapType::f16) == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(int(TensorMapType::f32) == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
static_assert(int(TensorMapType::f64) == CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
static_assert(int(TensorMapType::bf16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(int(TensorMapType::f32_ftz) == CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ);
static_assert(int(TensorMapType::tf32) == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
static_assert(int(TensorMapType::tf32_ftz) == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);

}  // namespace

TEST_CASE("launch attributes lie in memory as cuda.h lays them") {
  CUlaunchAttribute theirs = {};
  abi::LaunchAttribute ours = {};
  theirs.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  theirs.value.clusterDim.x = 4;
  theirs.value.clusterDim.y = 2;
  theirs.value.clusterDim.z = 1;
  ours.id = abi::attribute_cluster_dimension;
  ours.value.cluster = {4, 2, 1};
  CHECK(std::memcmp(&theirs, &ours, sizeof ours) == 0);
  theirs = {};
  ours = {};
  theirs.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  theirs.value.cooperative = 1;
  ours.id = abi::attribute_cooperative;
  ours.value.flag = 1;
  CHECK(std::memcmp(&theirs, &ours, sizeof ours) == 0);
}
