// One process at a time compiles a kernel, and those who wait for it wait for nothing else.
//
// What is taken is a name in the abstract namespace of sockets, not a file: no network file system
// is in its way, the kernel gives it back when its holder ends however it ends, and who waits is
// connected to the holder and learns of that at once. It saves work and guards nothing: where no
// name can be had (another user holds it, too many wait, no sockets) everybody compiles, and the
// store takes the last of equal entries.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cache/key.hpp"

namespace palladium::cache {

class Turn {
 public:
  using Stopped = std::function<bool()>;

  /// Waits while another process of this user on this host has the turn for this entry of the store
  /// at `root`; `stopped` is asked every 20 ms and ends the wait.
  Turn(std::string_view root, const Key& key, std::string_view toolchain,
       const Stopped& stopped = {});
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  /// The next one's.
  ~Turn();

  /// Whether somebody else had it before. Waited or not, only who has the turn and finds nothing in
  /// the store then knows that the kernel is its to make.
  bool has_waited() const { return has_waited_; }

 private:
  int place_ = -1;  // in the table of those that a child of fork() must give up
  bool has_waited_ = false;
};

}  // namespace palladium::cache
