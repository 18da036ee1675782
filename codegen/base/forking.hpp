// What keeps an application's fork() safe while Palladium works in other threads.
//
// A child of fork() has one thread and a copy of all locks, held or not. So a fork waits until no
// other thread is inside a Section: whatever is locked and changed only in Sections is free and
// whole in the child. Long waits stand outside of Sections, and what they wait with (queues,
// sockets) is made anew in the child.
#pragma once

namespace palladium::forking {

/// For a scope of milliseconds that takes locks. May be nested, and may itself fork.
class Section {
 public:
  Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section();
};

/// Run around every fork(), in the thread that forks, while no other thread is inside a Section.
/// Neither `before` nor `in_parent` may enter one.
struct Hooks {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
/// For good; `before` runs for the last added first, the others for the first added first.
void add(const Hooks& hooks);

}  // namespace palladium::forking
