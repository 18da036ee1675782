// Fibers: cooperative threads with their own stacks, for CUDA threads and Pallas threads on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/fiber/context.hpp"

namespace palladium::fiber {

class Scheduler;

/// The C++ runtime's per-thread record of caught and uncaught exceptions, swapped with the stack.
struct ExceptionState {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

/// One cooperative thread. Owned by its scheduler; addresses are stable until `run` has returned.
class Fiber {
 public:
  /// 0, 1, ... in order of spawning.
  std::uint32_t id() const { return id_; }
  bool done() const { return state_ == State::done; }
  bool parked() const { return state_ == State::parked; }
  /// What `spawn` was given.
  void* owner() const { return owner_; }
  /// What `park` was given while parked, for deadlock reports.
  const void* waits_on() const { return waits_on_; }

 private:
  friend class Scheduler;
  enum class State : std::uint8_t { ready, running, parked, done };
  Context context_;
  Stack stack_;
  Scheduler* scheduler_ = nullptr;
  void* owner_ = nullptr;
  const void* waits_on_ = nullptr;
  std::function<void()> body_;
  ExceptionState exceptions_;
  std::uint32_t id_ = 0;
  State state_ = State::ready;
  bool started_ = false;
};

/// Which of the ready fibers runs next.
enum class Order : std::uint8_t {
  fifo,    // who has waited longest
  lifo,    // who became ready last
  random,  // by a generator that starts from Options::seed: equal seeds, equal runs
};

/// Runs fibers on the calling thread until all are done.
///
/// Stacks come from an arena of the thread that outlives the scheduler, with a guard page below
/// each, so that launches after the first touch no new memory.
class Scheduler {
 public:
  struct Options {
    std::size_t stack_bytes = 256 * 1024;
    Order order = Order::fifo;
    std::uint64_t seed = 0;
  };
  Scheduler();
  explicit Scheduler(Options options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  /// Adds a fiber; before `run` or from a running fiber. `owner` is what the fiber stands for, so
  /// that who asks `current` finds it.
  Fiber& spawn(std::function<void()> body, void* owner = nullptr);

  /// Runs until every fiber is done. An exception that leaves a fiber (the first one) stops the
  /// rest: each is unwound by an internal exception thrown from its `yield` or `park`, and then
  /// `run` rethrows the first. Afterwards the scheduler is empty and can be used again.
  void run();

  /// Called when fibers live and none can run. It either unparks one or throws; what it throws is
  /// treated like a fiber's exception. Without one, `run` throws InternalError.
  void on_deadlock(std::function<void(Scheduler&)> callback);

  /// From a running fiber: lets the others run.
  void yield();
  /// From a running fiber: sleeps until somebody unparks it. `waits_on` is for reports.
  void park(const void* waits_on = nullptr);
  /// Makes a parked fiber ready.
  void unpark(Fiber& fiber);
  bool any_ready() const { return first_ < ready_.size(); }
  std::size_t ready() const { return ready_.size() - first_; }

  /// The running fiber; null outside `run`.
  Fiber* current() const { return current_; }
  const std::vector<std::unique_ptr<Fiber>>& fibers() const { return fibers_; }
  /// Fibers that are not done.
  std::size_t live() const { return live_; }

 private:
  static void main(void* fiber);
  void push(Fiber& fiber);
  Fiber* pop();
  void leave();
  void resume(Fiber& fiber);
  void unwind_all();

  Options options_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::unique_ptr<Fiber>> spare_;  // kept, with their stacks, for the next run
  std::function<void(Scheduler&)> on_deadlock_;
  Fiber* current_ = nullptr;
  std::vector<Fiber*> ready_;  // from first_ on, in the order in which they became so
  std::size_t first_ = 0;
  std::uint64_t random_ = 0;
  Context outside_;
  ExceptionState outside_exceptions_;
  void* thread_exceptions_ = nullptr;
  std::exception_ptr failure_;
  std::size_t live_ = 0;
  bool unwinding_ = false;
};

}  // namespace palladium::fiber
