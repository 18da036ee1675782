// The GPUs of the machine, and which of them a thread talks to.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/driver/driver.hpp"

namespace palladium::driver {

struct Device {
  int ordinal = 0;
  abi::Device handle = 0;
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int l2_bytes = 0;
  int threads_per_block = 0;
  int shared_bytes = 0;         // per block, for any kernel
  int shared_bytes_opt_in = 0;  // per block, for one that asked
  bool has_cooperative_launch = false;
  bool has_clusters = false;
  bool has_memory_pools = false;

  /// What to compile for: "sm_86"; from 9.0 on with all that this very GPU has, "sm_90a".
  std::string arch() const;
};

/// Asked of the driver once per process. CudaError naming the number of devices for an ordinal that
/// there is not.
const Device& device(int ordinal);

/// The device of the thread's current context, else -1.
int current_device();

/// While it lives, a context of the device is current in this thread: the one that was, if it is of
/// this device, else the device's primary context, which the CUDA runtime and other libraries use
/// too. Afterwards the thread is as it was.
class ContextScope {
 public:
  explicit ContextScope(int device);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

  /// Whether it is the device's primary context, and not one of the program's own.
  bool is_primary() const { return is_primary_; }

 private:
  bool is_primary_ = false;
  bool is_pushed_ = false;
};

/// Waits until everything that was started in this context is done.
void synchronize_context();

/// Where memory lives that a pointer leads to.
struct Place {
  enum class Kind { host, pinned, device, managed };
  Kind kind = Kind::host;
  int device = -1;  // but for host
  bool operator==(const Place&) const = default;
};
Place place_of(const void* pointer);

}  // namespace palladium::driver
