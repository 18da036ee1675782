// A specialised kernel, loaded on one device: the hot path of a call.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <memory>
#include <span>

#include "palladium/call.hpp"
#include "palladium/device.hpp"
#include "runtime/build/program.hpp"
#include "runtime/call/specialization.hpp"
#include "runtime/driver/kernel.hpp"
#include "runtime/launch/known_sizes.hpp"
#include "runtime/launch/packer.hpp"

namespace palladium::runtime {

class Launcher {
 public:
  /// Compiles or finds the kernel, unless it is `compiled`, and loads it. A cubin from the cache
  /// that the driver rejects is compiled anew, once.
  Launcher(const Specialization& s, int device, std::shared_ptr<const Program> compiled = nullptr);

  const Specialization& specialization() const { return specialization_; }
  int device() const { return device_; }

  /// Whether all arrays of the call live on this device.
  bool is_at(std::span<const Arg> arguments, std::span<const Arg> outputs) const;

  /// gridDim.x of a call, 0 where nothing is to run. Precondition: CallGrid::check.
  unsigned blocks(const Signature::Symbols& symbols) const {
    return std::min(packer_.blocks(symbols), most_blocks_);
  }
  /// Of calls that matched the specialisation, where symbols alone decide that.
  KnownSizes& known_sizes() const { return known_sizes_; }
  /// Of calls of stronger classes that it serves for good, marked by serves_arrays().
  KnownSizes& served() const { return served_; }

  /// Enqueues the kernel. No lock, and no allocation but under capture and for what it tells the
  /// host. Precondition: the call matches the specialisation with these symbols, is_at(), and
  /// aliases hold.
  void launch(std::span<const Arg> arguments, std::span<const Arg> outputs,
              const Signature::Symbols& symbols, unsigned blocks, Stream stream) const;

 private:
  struct Ready {
    std::shared_ptr<const driver::Kernel> kernel;
    LaunchPlan plan;
  };
  static Ready load(const Specialization& s, int device, std::shared_ptr<const Program> program);
  Launcher(const Specialization& s, int device, Ready ready);

  struct Told;
  struct Profiled;

  void stay_loaded() const;
  std::shared_ptr<Told> listen(driver::StreamHandle stream) const;
  std::shared_ptr<Profiled> profile(driver::StreamHandle stream, unsigned blocks) const;

  const Specialization& specialization_;
  std::shared_ptr<const driver::Kernel> kernel_;
  mutable std::atomic<bool> stays_loaded_ = false;
  mutable KnownSizes known_sizes_, served_;
  Packer packer_;
  driver::PreparedLaunch prepared_;
  int device_;
  unsigned most_blocks_ = UINT_MAX;               // of a persistent kernel: as many as run at once
  std::shared_ptr<const graph::Graph> told_by_;   // of a kernel that tells the host something
  std::shared_ptr<const graph::Graph> profiled_;  // of one that tells of its scopes
  int threads_ = 0;                               // ... of each of its blocks
};

/// Unloads the kernels that nobody can launch any more, but for the so many that were used last,
/// and returns how many those are. Waits for what their devices are doing.
std::size_t unload_unused(std::size_t most_left);

}  // namespace palladium::runtime
