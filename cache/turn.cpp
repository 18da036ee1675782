#include "cache/turn.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "codegen/base/forking.hpp"

namespace palladium::cache {
namespace {

constexpr int poll_ms = 20;
/// Longer than any compile: a holder that is stopped or hangs costs this once, not for ever.
constexpr auto longest_wait = std::chrono::seconds(60);

struct Address {
  sockaddr_un name = {};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Address address_of(std::string_view root, const Key& key, std::string_view toolchain) {
  const std::string uid = std::to_string(::geteuid());
  const std::string hex =
      key_of({{"root", root}, {"key", key.hex()}, {"toolchain", toolchain}, {"uid", uid}}).hex();
  const std::string text = "palladium." + hex;
  Address address;
  address.name.sun_family = AF_UNIX;
  // The byte before the text stays 0: an abstract name.
  std::memcpy(address.name.sun_path + 1, text.data(), text.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

int make_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/// The sockets held by this process. A child of fork() closes its copies, which would make others
/// wait for the child.
constexpr std::size_t most_held = 1024;
constinit std::array<std::atomic<int>, most_held> held = {};  // descriptor + 1, 0 for none

void give_up_in_child() {
  for (std::atomic<int>& each : held)
    if (const int descriptor = each.exchange(0) - 1; descriptor >= 0) ::close(descriptor);
}

int hold(int descriptor) {
  static const forking::Registration hooked({.in_child = give_up_in_child});
  for (std::size_t i = 0; i < most_held; ++i) {
    int none = 0;
    if (held[i].compare_exchange_strong(none, descriptor + 1)) return static_cast<int>(i);
  }
  return -1;
}

enum class Attempt { taken, busy, impossible };

Attempt try_to_take(const Address& address, int& place) {
  // Between socket and table no fork may copy the descriptor.
  const forking::Section section;
  const int descriptor = make_socket();
  if (descriptor < 0) return Attempt::impossible;
  if (::bind(descriptor, address.get(), address.size) != 0) {
    const bool is_busy = errno == EADDRINUSE;
    ::close(descriptor);
    return is_busy ? Attempt::busy : Attempt::impossible;
  }
  if (::listen(descriptor, SOMAXCONN) == 0) place = hold(descriptor);
  if (place >= 0) return Attempt::taken;
  ::close(descriptor);
  return Attempt::impossible;
}

bool is_of_this_user(int descriptor) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

enum class Wait { over, stopped, useless };

/// Until the holder has gone.
Wait wait_for_holder(const Address& address, const Turn::Stopped& stopped,
                     std::chrono::steady_clock::time_point latest) {
  const forking::Outside outside;
  const int descriptor = make_socket();
  if (descriptor < 0) return Wait::useless;
  const auto end = [&](Wait wait) { return ::close(descriptor), wait; };
  if (::connect(descriptor, address.get(), address.size) != 0) {
    if (errno != ECONNREFUSED && errno != EAGAIN) return end(Wait::useless);
    // Gone already, not listening yet, or too many are waiting: look again a little later.
    ::poll(nullptr, 0, errno == EAGAIN ? poll_ms : 1);
    if (stopped && stopped()) return end(Wait::stopped);
    return end(std::chrono::steady_clock::now() < latest ? Wait::over : Wait::useless);
  }
  if (!is_of_this_user(descriptor)) return end(Wait::useless);
  while (std::chrono::steady_clock::now() < latest) {
    pollfd waiting = {.fd = descriptor, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, poll_ms) > 0) return end(Wait::over);
    if (stopped && stopped()) return end(Wait::stopped);
  }
  return end(Wait::useless);
}

}  // namespace

Turn::Turn(std::string_view root, const Key& key, std::string_view toolchain,
           const Stopped& stopped) {
  if (root.empty()) return;
  const Address address = address_of(root, key, toolchain);
  const auto latest = std::chrono::steady_clock::now() + longest_wait;
  while (try_to_take(address, place_) == Attempt::busy) {
    has_waited_ = true;
    if (wait_for_holder(address, stopped, latest) != Wait::over) return;
  }
}

Turn::~Turn() {
  if (place_ < 0) return;
  // In a child of fork() the place is empty.
  const int descriptor = held[static_cast<std::size_t>(place_)].exchange(0) - 1;
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace palladium::cache
