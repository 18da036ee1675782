// Where kernels run: targets, devices and streams.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "palladium/array.hpp"

// cudaStream_t and CUstream are pointers to it.
struct CUstream_st;

namespace palladium {

/// What runs a kernel.
enum class Target : std::uint8_t {
  cuda,         ///< the cubin on a GPU
  interpreter,  ///< the kernel graph on the CPU: the meaning of every operation
  emulator,     ///< the emitted CUDA C++ on the CPU
};
PALLADIUM_API const char* to_string(Target target);
/// The target of that name; CompileError that lists the names if there is none.
PALLADIUM_API Target target_named(const std::string& name, Location at = here());

/// Where kernels run that say nothing themselves: what set_default_target said, else
/// PALLADIUM_TARGET, else the first GPU, else (no driver or no device) the interpreter. A GPU that
/// cannot be used is a CudaError, never a silent interpreter.
PALLADIUM_API Target default_target();
PALLADIUM_API void set_default_target(Target target);

/// Where the arrays of kernels of a target live: the CPU, or the first GPU.
PALLADIUM_API Device device_of(Target target);
/// That of the default target.
PALLADIUM_API Device default_device();

/// A stream of the caller's; default-constructed, the device's default stream.
class Stream {
 public:
  constexpr Stream() = default;
  constexpr Stream(CUstream_st* handle) : handle_(handle) {}
  constexpr CUstream_st* handle() const { return handle_; }

 private:
  CUstream_st* handle_ = nullptr;
};

/// What kernels are compiled for where nobody says: the first GPU's architecture, or "sm_90a" where
/// there is no usable one.
PALLADIUM_API std::string default_arch();

/// Waits for the kernels on GPUs that print or check something, prints what they told, and throws
/// what a check that failed has to say. To read an array does the same for kernels that have ended.
PALLADIUM_API void debug_flush();

struct DeviceInfo {
  Device device;
  std::string name;  ///< "NVIDIA H200"
  std::string arch;  ///< "sm_90a": what kernels are compiled for
  std::int64_t memory_bytes = 0;
  int multiprocessors = 0;
};
/// The GPUs that the driver shows, in its order; none without a driver. CudaError if there is one
/// that cannot be used.
PALLADIUM_API std::vector<DeviceInfo> devices();

/// The architectures that kernels are compiled for: "sm_75", ..., "sm_90", "sm_90a", ...
PALLADIUM_API std::vector<std::string> known_archs();
/// The name of one of them; CompileError that lists them where there is none of this name.
PALLADIUM_API const std::string& checked_arch(const std::string& arch);

}  // namespace palladium
