// The CUDA driver of this process: opened at run time, once, when somebody first asks for it.
#pragma once

#include <atomic>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "runtime/driver/abi.hpp"

namespace palladium::driver {

/// The oldest driver with context-independent libraries (cuLibraryLoadData).
inline constexpr int oldest_version = 12000;

enum class State {
  ready,
  no_driver,  // nothing is wrong with a machine without a GPU: kernels run in the interpreter
  no_device,
  unusable,  // there is one, but it is too old or does not start: an error, never the interpreter
};

struct Status {
  State state = State::no_driver;
  std::string reason;  // a sentence with advice, empty when ready
  std::string path;    // what was opened
  int version = 0;     // 13000 is CUDA 13.0; 0 without a driver
  int devices = 0;

  /// Cubins of this CUDA major and older load.
  int cuda_major() const { return version / 1000; }
};

/// A driver opened from `path`; what status() and api() do with PALLADIUM_LIBCUDA, for tests.
struct Loaded {
  Status status;
  abi::Functions functions;
};
Loaded load(const std::string& path);

/// How this process stands with CUDA. Never throws.
const Status& status();

namespace detail {
extern std::atomic<const abi::Functions*> ready_functions;
const abi::Functions& find_functions();
}  // namespace detail

/// The driver's functions; CudaError with the status' reason when it is not ready.
inline const abi::Functions& api() {
  const abi::Functions* functions = detail::ready_functions.load(std::memory_order_acquire);
  return functions != nullptr ? *functions : detail::find_functions();
}

/// "invalid argument (CUDA_ERROR_INVALID_VALUE)".
std::string describe(abi::Result result);

struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  bool operator==(const Dim3&) const = default;
};

/// How arguments appear in the message of a failed call.
std::string text(std::string_view words);
std::string text(const char* words);  // not a pointer
std::string text(const void* pointer);
std::string text(Dim3 dims);  // "4096x1x1"
std::string text(std::integral auto number) { return std::to_string(number); }

[[noreturn]] void fail(abi::Result result, std::string_view call,
                       std::span<const std::string> arguments);

/// CudaError "call(arguments): what the driver says" unless the result is success. Costs a
/// comparison when it is.
template <class... Arguments>
void check(abi::Result result, const char* call, const Arguments&... arguments) {
  if (result == abi::success) [[likely]]
    return;
  const std::string texts[] = {text(arguments)..., std::string()};
  fail(result, call, std::span(texts, sizeof...(arguments)));
}

}  // namespace palladium::driver
