// Starts a program that the process which starts it does not notice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/base/process.hpp"

namespace palladium::nvrtc {

/// Where a spawned program finds its socket.
inline constexpr int spawned_socket = 3;

struct Spawned {
  std::optional<process::Id> process = {};  // or
  int error = 0;                            // an errno
  const char* call = "";                    // that failed with it
};

/// Starts `program` with `socket` as its descriptor 3, nothing on 0 to 2 and no other descriptor,
/// default signal handling, and a session of its own, which no terminal interrupts.
///
/// It is no child of this process: no SIGCHLD tells of its end, no wait() of the application meets
/// it, and it leaves no zombie. (Where this process adopts orphans, as process 1 of a container or
/// a subreaper, it adopts this one too.)
Spawned spawn(const std::string& program, const std::vector<std::string>& arguments, int socket);

}  // namespace palladium::nvrtc
