// Memory behind Array handles.
#pragma once

#include <atomic>

#include "palladium/array.hpp"

// CUstream of the driver.
struct CUstream_st;

namespace palladium::detail {

/// Owns memory until its last reference is dropped; made with one reference.
class Storage {
 public:
  Storage(const Storage&) = delete;

  /// The stream in which the memory was made, or null.
  virtual CUstream_st* stream() const { return nullptr; }

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  Storage() = default;
  virtual ~Storage() = default;

 private:
  std::atomic<long> references_{1};
};

/// Bytes of the host, aligned to 64; at least one.
class HostStorage final : public Storage {
 public:
  explicit HostStorage(std::size_t bytes);
  ~HostStorage() override;
  void* data() const { return data_; }

 private:
  void* data_;
};

}  // namespace palladium::detail
