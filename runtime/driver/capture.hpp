// Streams that record into a graph instead of running.
#pragma once

#include <memory>

#include "runtime/driver/memory.hpp"

namespace palladium::driver {

/// Whether the stream records now.
bool is_capturing(StreamHandle stream);

/// If the stream records now, its graph and all that is made of it keep `kept` for as long as they
/// live. Dropping it may happen in a thread of the driver's, where nothing may be asked of it.
void keep_while_captured(StreamHandle stream, std::shared_ptr<const void> kept);

/// While it lives, this thread may do what would spoil a capture in another one: load, unload,
/// wait.
class RelaxedCapture {
 public:
  RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture();

 private:
  int mode_ = abi::capture_mode_relaxed;  // of the thread, when it is not ours
};

}  // namespace palladium::driver
