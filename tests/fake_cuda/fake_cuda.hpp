// A CUDA driver without a GPU, for tests: a libcuda.so.1 that records what it is asked for, keeps
// "device" memory on the host, checks what a driver would check, and fails on request. It runs no
// kernel unless the test gives it a function that does, or it has a player (below).
//
// A test program finds it by PALLADIUM_LIBCUDA or the loader's path and reaches in by state(). A
// program that knows nothing of it (the CLI, an example) is steered by variables:
//   FAKE_CUDA_DEVICES=n   FAKE_CUDA_VERSION=12080   FAKE_CUDA_ARCH=90
//   FAKE_CUDA_FAIL=cuInit=803   FAKE_CUDA_LOG=file (one line per launch)
//
// With a player it computes: FAKE_CUDA_PLAYER=<build>/tests/fake/libfake_cuda_player.so runs the
// text of a launched kernel on the emulator. The text comes from the folder FAKE_CUDA_TEXTS, where
// libnvrtc_keeping.so beside the player puts it, which stands for NVRTC (FAKE_NVRTC_REAL) then.
// FAKE_CUDA_FAULT=kernel=fault,… with the faults "off" (one bit of the result), "hang", "crash" (of
// the process) and a CUresult, which every later call answers.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace fake_cuda {

struct Device {
  std::string name = "Fake H100";
  int major = 9;
  int minor = 0;
  int multiprocessors = 132;
  std::size_t memory_bytes = std::size_t{80} << 30;
  int shared_bytes = 49152;
  int shared_bytes_opt_in = 232448;
  int blocks_per_multiprocessor = 2;  // what every occupancy query answers
};

/// The arguments of a cuTensorMapEncodeTiled. The map begins with the number of its record, so that
/// a launch's argument leads here.
struct TensorMap {
  int type = 0;
  unsigned rank = 0;
  const void* base = nullptr;
  std::vector<std::uint64_t> extents, strides;
  std::vector<std::uint32_t> box, element_strides;
  int swizzle = 0;
  int l2_promotion = 0;
  int fill = 0;
};

struct Launch {
  std::string kernel;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned cluster[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  bool cooperative = false;
  bool overlaps_previous = false;
  const void* stream = nullptr;
  int device = -1;
  std::vector<std::vector<std::byte>> arguments;  // copied out of kernelParams

  template <class T>
  T argument(std::size_t index) const {
    T value;
    const std::vector<std::byte>& bytes = arguments.at(index);
    if (bytes.size() != sizeof value) throw std::runtime_error("argument of another size");
    __builtin_memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};

/// All of the fake's state that tests may read and set. One per process; lock `mutex` while other
/// threads use the driver.
struct State {
  std::recursive_mutex mutex;

  // What the machine is. Set before the driver is first used; devices() of a loaded one stay.
  int driver_version = 13000;
  std::vector<Device> devices = {Device{}};

  /// Calls fail with these results until they are erased.
  std::map<std::string, int> results;
  /// Sizes of a kernel's arguments by its name. Without an entry they are read from the cubin.
  std::map<std::string, std::vector<std::size_t>> argument_sizes;
  /// Plays the kernel, after it is recorded.
  std::function<void(const Launch&)> on_launch;
  /// Off: launches are checked and counted only, without allocating.
  std::atomic<bool> recording = true;

  std::vector<std::string> calls;  // names, in order
  std::vector<Launch> launches;
  std::vector<TensorMap> tensor_maps;
  std::atomic<std::size_t> launch_count = 0;

  // Alive now; a test that ends with other numbers than it began with leaks.
  std::size_t libraries = 0;
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t allocations = 0;
  std::size_t pinned_allocations = 0;
  std::size_t graphs = 0;

  // Mistakes that a driver may not notice.
  std::size_t unloaded_while_running = 0;
  std::size_t spoiled_captures = 0;

  /// Whether every stream is pretended to be captured.
  bool capturing = false;

  /// Forgets records, failures and settings; handles and memory stay.
  void reset() {
    const std::lock_guard lock(mutex);
    results.clear();
    argument_sizes.clear();
    on_launch = nullptr;
    recording = true;
    calls.clear();
    launches.clear();
    tensor_maps.clear();
    launch_count = 0;
    capturing = false;
    unloaded_while_running = 0;
    spoiled_captures = 0;
  }
  std::size_t count(const std::string& call) const {
    std::size_t n = 0;
    for (const std::string& each : calls) n += each == call;
    return n;
  }
};

/// The state of the fake that `path` leads to, which is opened if it is not.
inline State& state(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* get = library == nullptr ? nullptr : dlsym(library, "fake_cuda_state");
  if (get == nullptr) throw std::runtime_error(path + " is not the fake CUDA driver");
  return *reinterpret_cast<State* (*)()>(get)();
}

}  // namespace fake_cuda
