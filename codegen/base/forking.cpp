#include "codegen/base/forking.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "palladium/error.hpp"

namespace palladium::forking {
namespace {

constinit std::atomic<int> inside = 0;  // threads
constinit std::atomic<bool> is_forking = false;
thread_local int depth = 0;

constexpr int most_hooks = 16;
constinit Hooks all_hooks[most_hooks] = {};
constinit std::atomic<int> hook_count = 0;

void enter() {
  while (true) {
    inside.fetch_add(1);
    if (!is_forking.load()) return;
    if (inside.fetch_sub(1) == 1) inside.notify_all();
    is_forking.wait(true);
  }
}

void leave() {
  if (inside.fetch_sub(1) == 1 && is_forking.load()) inside.notify_all();
}

void before_fork() {
  // The thread that forks stands still in its own Section, here and in the child.
  if (depth > 0) leave();
  while (is_forking.exchange(true)) is_forking.wait(true);
  for (int threads = inside.load(); threads != 0; threads = inside.load()) inside.wait(threads);
  for (int i = hook_count.load(); i-- > 0;)
    if (all_hooks[i].before) all_hooks[i].before();
}

void run(void (*Hooks::*hook)()) {
  for (int i = 0; i < hook_count.load(); ++i)
    if (all_hooks[i].*hook) (all_hooks[i].*hook)();
}

void open_again() {
  is_forking.store(false);
  is_forking.notify_all();
}

void after_fork_in_parent() {
  if (depth > 0) inside.fetch_add(1);
  run(&Hooks::in_parent);
  open_again();
}

void after_fork_in_child() {
  // Threads that came to enter() just then have left their mark in the count.
  inside.store(depth > 0 ? 1 : 0);
  open_again();
  run(&Hooks::in_child);
}

[[maybe_unused]] const int registered =
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

}  // namespace

Section::Section() {
  if (depth++ == 0) enter();
}

Section::~Section() {
  if (--depth == 0) leave();
}

Outside::Outside() : depth_(std::exchange(depth, 0)) {
  if (depth_ > 0) leave();
}

Outside::~Outside() {
  if (depth_ > 0) enter();
  depth = depth_;
}

Lock::Lock(Mutex& mutex) : mutex_(mutex) {
  while (mutex_.is_held_.exchange(true, std::memory_order_acquire)) {
    const Outside outside;
    mutex_.is_held_.wait(true, std::memory_order_relaxed);
  }
}

Lock::~Lock() {
  mutex_.is_held_.store(false, std::memory_order_release);
  mutex_.is_held_.notify_one();
}

Registration::Registration(const Hooks& hooks) {
  static constinit std::mutex mutex;
  const Section section;
  const std::lock_guard lock(mutex);
  const int place = hook_count.load();
  if (place == most_hooks) throw InternalError("forking: too many hooks");
  all_hooks[place] = hooks;
  hook_count.store(place + 1);
}

}  // namespace palladium::forking
