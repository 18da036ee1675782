// Streams, events, memory and copies: the driver's handles as values that release themselves.
//
// Everything takes a raw stream handle, because the caller's streams are as good as ours; null is
// the default stream of the current context. Making a handle needs a current context
// (ContextScope), using and releasing it does not, but for the default stream.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/driver/driver.hpp"

namespace palladium::driver {

using StreamHandle = abi::Stream;

/// A stream of our own, in the current context; it does not wait for the default stream.
class Stream {
 public:
  Stream();
  Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  /// Work already in it still runs.
  ~Stream();
  StreamHandle handle() const { return handle_; }

 private:
  abi::Stream handle_ = nullptr;
};

class Event;

/// Blocks the calling thread until all work in the stream is done.
void synchronize(StreamHandle stream);
/// Work that enters the stream from now on waits for the event.
void wait(StreamHandle stream, const Event& event);

/// A point in a stream, in the current context.
class Event {
 public:
  enum class Timing { off, on };
  explicit Event(Timing timing = Timing::off);
  Event(Event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Event();

  void record(StreamHandle stream);
  bool is_done() const;
  void synchronize() const;
  /// From `start` to this event, both with timing and done.
  float milliseconds_since(const Event& start) const;
  abi::Event handle() const { return handle_; }

 private:
  abi::Event handle_ = nullptr;
};

/// Memory of a device's stream-ordered pool. It comes into being in its stream and is given back
/// there, so work of that stream may still use it after the C++ object is gone; the stream must be
/// alive then, or another one set by release_in().
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(int device, std::size_t bytes, StreamHandle stream);
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceMemory();

  /// Null for no bytes.
  void* pointer() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }
  int device() const { return device_; }
  void release_in(StreamHandle stream) { stream_ = stream; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(pointer_, other.pointer_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
  }
  void* pointer_ = nullptr;
  std::size_t bytes_ = 0;
  int device_ = -1;
  StreamHandle stream_ = nullptr;
};

/// Host memory that copies to and from without the driver's staging, in the current context.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept
      : pointer_(std::exchange(other.pointer_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(pointer_, other.pointer_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedMemory();
  void* pointer() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* pointer_ = nullptr;
  std::size_t bytes_ = 0;
};

// All of these are ordered by the stream; those that touch pageable host memory may wait for it.
// None does anything for 0 bytes.
void copy_to_device(void* to, const void* from, std::size_t bytes, StreamHandle stream);
void copy_to_host(void* to, const void* from, std::size_t bytes, StreamHandle stream);
/// Between devices too.
void copy_on_device(void* to, const void* from, std::size_t bytes, StreamHandle stream);
void fill(void* to, unsigned char byte, std::size_t bytes, StreamHandle stream);

}  // namespace palladium::driver
