// What a Pallas thread asks of the machine and of other launches on its stream.
#pragma once

#include <string>

#include "palladium/value.hpp"

namespace palladium::gpu {

struct SetMaxRegistersOptions {
  std::string action = "increase";  ///< or "decrease"
};
/// Each CUDA thread of the calling Pallas thread has so many registers from here on: a multiple of
/// 8, from 24 to 256. What some give up others can take. sm_90a.
PALLADIUM_API void set_max_registers(int n, SetMaxRegistersOptions options = {},
                                     Location at = here());

/// A kernel that calls this may begin before the one in front of it on the stream has ended
/// (programmatic dependent launch), and waits for that here: what the other writes it reads, and
/// what the other reads it writes, behind this alone. From sm_90 on.
PALLADIUM_API void griddepcontrol_wait(Location at = here());
/// As far as the calling thread goes, the next kernel on the stream may begin, if it calls
/// griddepcontrol_wait.
PALLADIUM_API void griddepcontrol_launch_dependents(Location at = here());

}  // namespace palladium::gpu
