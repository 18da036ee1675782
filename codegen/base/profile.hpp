// Ranges for profilers, by NVTX: what the host does for a kernel, on the timeline of who looks.
#pragma once

#include <atomic>
#include <string_view>

namespace palladium::profile {

/// A range "<what> <kernel>" of the domain "palladium", in this thread, for a scope. None unless
/// PALLADIUM_NVTX is 1 when the process makes its first one; else it is a load and a branch.
class Range {
 public:
  Range(const char* what, std::string_view kernel) {
    if (!off_.load(std::memory_order_relaxed)) [[unlikely]]
      begin(what, kernel);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {
    if (has_begun_) [[unlikely]]
      end();
  }

 private:
  void begin(const char* what, std::string_view kernel);
  static void end();

  static std::atomic<bool> off_;  // not before the environment was asked
  bool has_begun_ = false;
};

}  // namespace palladium::profile
