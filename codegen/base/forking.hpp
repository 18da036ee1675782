// What keeps an application's fork() safe while Palladium works in other threads.
//
// A child of fork() has one thread and a copy of all locks, held or not. So a fork waits until no
// other thread is inside a Section: whatever is locked and changed only in Sections is free and
// whole in the child. Long waits stand outside of Sections, and what they wait with (queues,
// sockets) is made anew in the child.
#pragma once

#include <atomic>

namespace palladium::forking {

/// For a scope of milliseconds that takes locks. May be nested, and may itself fork.
class Section {
 public:
  Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section();
};

/// For a long wait in the middle of Sections: forks do not wait for this one.
class Outside {
 public:
  Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  ~Outside();

 private:
  const int depth_;
};

/// For what is held while a function of the user's runs, which may fork: others wait for it outside
/// of their Sections, so that the fork does not wait for them.
class Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class Lock;
  std::atomic<bool> is_held_ = false;
};

/// Holds the mutex, in a Section.
class Lock {
 public:
  explicit Lock(Mutex& mutex);
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

 private:
  const Section section_;
  Mutex& mutex_;
};

/// Functions to run around every fork(), in the thread that forks, while no other thread is inside
/// a Section; neither `before` nor `in_parent` may enter one. For static objects: it is for good.
struct Hooks {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
struct Registration {
  explicit Registration(const Hooks& hooks);
};

}  // namespace palladium::forking
