// Compiled kernels on a device: load, prepare, launch.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "runtime/driver/driver.hpp"
#include "runtime/driver/memory.hpp"

namespace palladium::driver {

/// A loaded cubin and the one function in it that is launched. Independent of contexts: one serves
/// all devices of its architecture. Unloads with the last owner, after whose launches nothing of it
/// may still run.
class Kernel {
 public:
  /// Loads the cubin for the device. Nothing, and in `rejection` what the driver said, for a cubin
  /// that it cannot use: made for another GPU, by a newer CUDA, or no cubin at all. Any other
  /// failure is a CudaError.
  static std::optional<Kernel> load(std::span<const std::byte> cubin, const std::string& function,
                                    int device, std::string& rejection);

  Kernel(Kernel&& other) noexcept
      : library_(std::exchange(other.library_, nullptr)),
        kernel_(other.kernel_),
        name_(std::move(other.name_)) {}
  Kernel& operator=(Kernel&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(kernel_, other.kernel_);
    std::swap(name_, other.name_);
    return *this;
  }
  ~Kernel();

  const std::string& name() const { return name_; }
  abi::Kernel handle() const { return kernel_; }
  /// As every function of the driver takes it.
  abi::Function function() const { return reinterpret_cast<abi::Function>(kernel_); }

  /// To be called once per device, before a launch there with more than 48 KiB (the device's
  /// shared_bytes) of dynamic shared memory.
  void allow_shared_bytes(std::size_t bytes, int device) const;
  /// Likewise before a launch with clusters of more than 8 blocks.
  void allow_large_clusters(int device) const;

 private:
  Kernel(abi::Library library, abi::Kernel kernel, std::string name)
      : library_(library), kernel_(kernel), name_(std::move(name)) {}
  abi::Library library_ = nullptr;
  abi::Kernel kernel_ = nullptr;
  std::string name_;
};

struct Launch {
  Dim3 grid = {};
  Dim3 block = {};
  Dim3 cluster = {};  // in blocks
  unsigned shared_bytes = 0;       // dynamic
  bool cooperative = false;        // all blocks resident at once, or an error
  bool overlaps_previous = false;  // programmatic dependent launch: may start before the stream's
                                   // previous kernel ends, and reads what that writes by plain
                                   // loads only
  StreamHandle stream = nullptr;
};

/// Enqueues the kernel. `arguments[i]` points to the i-th one, which is copied. Takes no lock and
/// allocates nothing. The current context must be of a device that the kernel was loaded for.
void launch(const Kernel& kernel, const Launch& launch, void** arguments);

/// A launch whose every part is known beforehand but the extent of its grid along x and its stream.
/// The kernel must outlive it.
class PreparedLaunch {
 public:
  PreparedLaunch(const Kernel& kernel, const Launch& launch);
  PreparedLaunch(const PreparedLaunch&) = delete;
  PreparedLaunch& operator=(const PreparedLaunch&) = delete;

  /// As launch().
  void operator()(unsigned grid_x, StreamHandle stream, void** arguments) const {
    abi::LaunchConfig config = config_;
    config.grid_x = grid_x;
    config.stream = stream;
    const abi::Result result =
        api().cuLaunchKernelEx(&config, kernel_.function(), arguments, nullptr);
    if (result != abi::success) [[unlikely]]
      failed(result, grid_x);
  }

 private:
  [[noreturn]] void failed(abi::Result result, unsigned grid_x) const;

  const Kernel& kernel_;
  const Launch launch_;
  abi::LaunchAttribute attributes_[3] = {};
  abi::LaunchConfig config_;
};

/// How many blocks of such a launch the current context's device holds at once.
int resident_blocks(const Kernel& kernel, const Launch& launch);

}  // namespace palladium::driver
