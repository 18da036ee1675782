// Starts a program that the process which starts it does not notice.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace palladium::nvrtc {

/// Where a spawned program finds its socket.
inline constexpr int spawned_socket = 3;

struct Spawned {
  pid_t process = -1;
  int error = 0;  // an errno; then there is no process
};

/// Starts `program` with `socket` as its descriptor 3, nothing on 0 to 2 and no other descriptor,
/// default signal handling, and a session of its own, which no terminal interrupts.
///
/// It is no child of this process: no SIGCHLD tells of its end, no wait() of the application meets
/// it, and it leaves no zombie. (Where this process adopts orphans, as process 1 of a container or
/// a subreaper, it adopts this one too.)
Spawned spawn(const std::string& program, const std::vector<std::string>& arguments, int socket);

}  // namespace palladium::nvrtc
