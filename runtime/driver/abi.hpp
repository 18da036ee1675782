// The part of the CUDA driver's binary interface that Palladium uses, declared here so that nothing
// of CUDA is needed to build. tests/driver compares it with cuda.h.
//
// What is relied on, all of it frozen by NVIDIA per function version: results and enumerations are
// ints with 0 for success, handles are pointers, a CUdevice is an int, a CUdeviceptr is 64 bits, a
// CUkernel may stand for a CUfunction, and a launch attribute is 8 bytes of id and 64 of value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace palladium::driver::abi {

using Result = int;
using Device = int;
using DevicePointer = std::uint64_t;
using Context = struct CudaContext*;
using Stream = struct CudaStream*;
using Event = struct CudaEvent*;
using Library = struct CudaLibrary*;
using Kernel = struct CudaKernel*;
using Function = struct CudaFunction*;
using Graph = struct CudaGraph*;
using GraphNode = struct CudaGraphNode*;
using UserObject = struct CudaUserObject*;

// Results that are told apart.
inline constexpr Result success = 0;
inline constexpr Result invalid_value = 1;
inline constexpr Result deinitialized = 4;
inline constexpr Result stub_library = 34;
inline constexpr Result no_device = 100;
inline constexpr Result invalid_image = 200;
inline constexpr Result no_binary_for_gpu = 209;
inline constexpr Result invalid_ptx = 218;
inline constexpr Result unsupported_ptx_version = 222;
inline constexpr Result not_ready = 600;
inline constexpr Result cooperative_launch_too_large = 720;

// CUdevice_attribute
inline constexpr int max_threads_per_block = 1;
inline constexpr int max_shared_memory_per_block = 8;
inline constexpr int multiprocessor_count = 16;
inline constexpr int l2_cache_size = 38;
inline constexpr int compute_capability_major = 75;
inline constexpr int compute_capability_minor = 76;
inline constexpr int cooperative_launch = 95;
inline constexpr int max_shared_memory_per_block_optin = 97;
inline constexpr int memory_pools_supported = 115;
inline constexpr int cluster_launch = 120;

// CUfunction_attribute
inline constexpr int max_dynamic_shared_size_bytes = 8;
inline constexpr int non_portable_cluster_size_allowed = 14;

// CUpointer_attribute, CUmemorytype
inline constexpr int pointer_memory_type = 2;
inline constexpr int pointer_is_managed = 8;
inline constexpr int pointer_device_ordinal = 9;
inline constexpr int memory_type_host = 1;
inline constexpr int memory_type_device = 2;

// Flags
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned user_object_no_destructor_sync = 1;
inline constexpr unsigned graph_user_object_move = 1;

// CUstreamCaptureStatus, CUstreamCaptureMode
inline constexpr int capture_active = 1;
inline constexpr int capture_mode_relaxed = 2;

// CUlaunchAttributeID
inline constexpr int attribute_cooperative = 2;
inline constexpr int attribute_cluster_dimension = 4;
inline constexpr int attribute_programmatic_stream_serialization = 6;

struct LaunchAttribute {
  int id;
  char pad[4];
  union alignas(8) Value {
    char bytes[64];
    int flag;
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// Every function with the CUDA version whose signature this is, as cuGetProcAddress wants it.
// clang-format off
#define PALLADIUM_DRIVER_FUNCTIONS(X) \
  X(cuInit,                         2000, (unsigned)) \
  X(cuGetErrorName,                 6000, (Result, const char**)) \
  X(cuGetErrorString,               6000, (Result, const char**)) \
  X(cuDeviceGetCount,               2000, (int*)) \
  X(cuDeviceGet,                    2000, (Device*, int)) \
  X(cuDeviceGetName,                2000, (char*, int, Device)) \
  X(cuDeviceGetAttribute,           2000, (int*, int, Device)) \
  X(cuDeviceTotalMem,               3020, (std::size_t*, Device)) \
  X(cuDevicePrimaryCtxRetain,       7000, (Context*, Device)) \
  X(cuCtxGetCurrent,                4000, (Context*)) \
  X(cuCtxGetDevice,                 2000, (Device*)) \
  X(cuCtxPushCurrent,               4000, (Context)) \
  X(cuCtxPopCurrent,                4000, (Context*)) \
  X(cuCtxSynchronize,               2000, ()) \
  X(cuLibraryLoadData,             12000, (Library*, const void*, int*, void**, unsigned, int*, void**, unsigned)) \
  X(cuLibraryUnload,               12000, (Library)) \
  X(cuLibraryGetKernel,            12000, (Kernel*, Library, const char*)) \
  X(cuKernelGetFunction,           12000, (Function*, Kernel)) \
  X(cuKernelSetAttribute,          12000, (int, int, Kernel, Device)) \
  X(cuLaunchKernelEx,              11060, (const LaunchConfig*, Function, void**, void**)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, (int*, Function, int, std::size_t)) \
  X(cuOccupancyMaxActiveClusters,  11070, (int*, Function, const LaunchConfig*)) \
  X(cuStreamCreate,                 2000, (Stream*, unsigned)) \
  X(cuStreamDestroy,                4000, (Stream)) \
  X(cuStreamSynchronize,            2000, (Stream)) \
  X(cuStreamWaitEvent,              3020, (Stream, Event, unsigned)) \
  X(cuStreamIsCapturing,           10000, (Stream, int*)) \
  X(cuStreamGetCaptureInfo,        11030, (Stream, int*, std::uint64_t*, Graph*, const GraphNode**, std::size_t*)) \
  X(cuThreadExchangeStreamCaptureMode, 10010, (int*)) \
  X(cuUserObjectCreate,            11030, (UserObject*, void*, void (*)(void*), unsigned, unsigned)) \
  X(cuGraphRetainUserObject,       11030, (Graph, UserObject, unsigned, unsigned)) \
  X(cuEventCreate,                  2000, (Event*, unsigned)) \
  X(cuEventDestroy,                 4000, (Event)) \
  X(cuEventRecord,                  2000, (Event, Stream)) \
  X(cuEventQuery,                   2000, (Event)) \
  X(cuEventSynchronize,             2000, (Event)) \
  X(cuEventElapsedTime,             2000, (float*, Event, Event)) \
  X(cuMemAllocAsync,               11020, (DevicePointer*, std::size_t, Stream)) \
  X(cuMemFreeAsync,                11020, (DevicePointer, Stream)) \
  X(cuMemHostAlloc,                 2020, (void**, std::size_t, unsigned)) \
  X(cuMemFreeHost,                  2000, (void*)) \
  X(cuMemcpyHtoDAsync,              3020, (DevicePointer, const void*, std::size_t, Stream)) \
  X(cuMemcpyDtoHAsync,              3020, (void*, DevicePointer, std::size_t, Stream)) \
  X(cuMemcpyDtoDAsync,              3020, (DevicePointer, DevicePointer, std::size_t, Stream)) \
  X(cuMemsetD8Async,                3020, (DevicePointer, unsigned char, std::size_t, Stream)) \
  X(cuPointerGetAttribute,          4000, (void*, int, DevicePointer)) \
  X(cuTensorMapEncodeTiled,        12000, (void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int, int, int))
// clang-format on

/// The functions of one loaded driver.
struct Functions {
#define PALLADIUM_DRIVER_MEMBER(name, version, parameters) Result(*name) parameters = nullptr;
  PALLADIUM_DRIVER_FUNCTIONS(PALLADIUM_DRIVER_MEMBER)
#undef PALLADIUM_DRIVER_MEMBER
};

}  // namespace palladium::driver::abi
