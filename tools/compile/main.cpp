// `palladium-compile`: runs NVRTC for a program that uses Palladium, so that what NVRTC does to its
// process (signal handlers, limits, locks) it does to this one.
#include <sys/socket.h>

#include <cstdio>
#include <string_view>

#include "cache/text_digest.hpp"
#include "codegen/nvrtc/spawn.hpp"
#include "tools/compile/keeper.hpp"

int main(int count, char** arguments) {
  const std::string_view asked = count == 2 ? arguments[1] : "";
  if (asked == "--digest") {
    std::puts(palladium::cache::text_digest);
    return 0;
  }
  int type = 0;
  socklen_t size = sizeof type;
  const int socket = palladium::nvrtc::spawned_socket;
  if (asked != "--serve" || getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs(
        "palladium-compile compiles kernels for programs that use Palladium, which start it "
        "themselves.\n  --digest  prints which build it belongs to\n",
        stderr);
    return 2;
  }
  return palladium::tools::Keeper(socket).run();
}
