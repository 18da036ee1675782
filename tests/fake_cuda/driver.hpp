// What the files of the fake driver share: its state, and what every call begins with.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/driver/abi.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace palladium::driver::abi {

// Handles point to these, so that a handle of another kind or a stale one is found.
struct CudaContext {
  int device;
};
struct CudaGraph {
  std::vector<const void*> kernels = {};
  std::vector<std::shared_ptr<void>> kept = {};  // user objects
};
struct CudaStream {
  int device;
  CudaGraph* recording = nullptr;  // into this graph
};
struct CudaUserObject {
  std::shared_ptr<void> object;
};
struct CudaEvent {
  bool recorded = false;
  int order = 0;  // of its last record among all
};
struct CudaLibrary {
  std::vector<std::byte> image;  // empty when it is no ELF file
};
struct CudaKernel {
  CudaLibrary* library;
  std::string name;
  bool may_run = false;  // launched, and not waited for since
  std::vector<std::size_t> sizes_in_cubin;
  std::map<int, int> shared_bytes_allowed;  // by device
  std::set<int> large_clusters_allowed;
};

}  // namespace palladium::driver::abi

namespace fake_cuda {

namespace abi = palladium::driver::abi;

constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int not_initialized = 3;
constexpr int no_device = 100;
constexpr int invalid_device = 101;
constexpr int invalid_image = 200;
constexpr int invalid_context = 201;
constexpr int invalid_handle = 400;
constexpr int not_found = 500;
constexpr int not_ready = 600;
constexpr int cooperative_launch_too_large = 720;
constexpr int capture_unsupported = 900;
constexpr int invalid_cluster_size = 912;

using abi::CudaContext;
using abi::CudaEvent;
using abi::CudaGraph;
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
  std::set<abi::Graph> graphs;
  std::set<abi::Library> libraries;
  std::map<std::pair<abi::Library, std::string>, std::unique_ptr<CudaKernel>> kernels;
  std::set<const void*> kernel_handles;
  std::map<std::uintptr_t, Allocation> allocations;
  int broken = 0;      // what every call answers, once a kernel has failed
  bool hangs = false;  // a kernel runs that never ends

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

inline Driver& driver() {
  static Driver& instance = *new Driver;
  return instance;
}

inline thread_local std::vector<abi::Context> contexts;

/// Of this thread. Only in the relaxed mode may it do while a stream is captured what could wait
/// for that stream.
inline thread_local int capture_mode = 0;
inline bool would_spoil_a_capture() {
  bool is_recording = false;
  for (const abi::Stream stream : driver().streams) is_recording |= stream->recording != nullptr;
  return is_recording && capture_mode != abi::capture_mode_relaxed;
}

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
    } else {
      result_ = driver().broken;
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

inline bool is_device(abi::Device device) {
  return device >= 0 && device < static_cast<int>(driver().state.devices.size());
}

inline const Device& current() {
  return driver().state.devices.at(static_cast<std::size_t>(contexts.back()->device));
}

/// The null stream is one of the current context.
inline int check_stream(abi::Stream stream) {
  if (stream == nullptr) return contexts.empty() ? invalid_context : 0;
  return driver().streams.count(stream) != 0 ? 0 : invalid_handle;
}

inline int device_of(abi::Stream stream) {
  return stream == nullptr ? contexts.back()->device : stream->device;
}

/// What waits for a kernel that never ends. Holds the driver, as a real one may.
inline void wait_for_kernels() {
  while (driver().hangs) ::pause();
}

/// After the launch is recorded: see FAKE_CUDA_PLAYER and FAKE_CUDA_FAULT.
void play(const CudaKernel& kernel, const Launch& launch);

// ---- What cuGetProcAddress finds

struct Entry {
  const char* name;
  int since;
  void* address;
};

#define ENTRY(name, since) \
  { #name, since, reinterpret_cast < void*>(name) }
#define ENTRY_V2(name, since) \
  { #name, since, reinterpret_cast < void*>(name##_v2) }

std::span<const Entry> process_entries();
std::span<const Entry> launch_entries();
std::span<const Entry> stream_entries();
std::span<const Entry> graph_entries();
std::span<const Entry> memory_entries();

}  // namespace fake_cuda
