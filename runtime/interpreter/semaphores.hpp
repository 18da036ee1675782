// The semaphores and barriers of the blocks that run at once: who waits on which, and what signals
// and arrivals tell.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/fiber/fiber.hpp"
#include "runtime/interpreter/races.hpp"

namespace palladium::interpreter {

/// A Pallas thread that runs an operation on one.
struct SemaphoreUser {
  std::string thread;     // "thread 1 of program (0, 3)"
  std::string semaphore;  // "scratch[0][2]"
  Location at;
  Races* races = nullptr;
  race::Agent agent = 0;
  int warp = -1;  // of the thread, where one works alone
};

/// A barrier of a block. Phase n is over with its completion number n, from 0 on.
struct Barrier {
  std::string name;  // "scratch[0][2]"
  int arrivals = 1, arrived = 0;
  std::int64_t coming = 0;  // parts of copies that blocks share, which are to come in this phase
  std::int64_t completed = 0;
  race::Snapshot told, known;  // by all who arrived; until the last completion
  struct Seen {
    std::string thread;
    std::array<std::int64_t, graph::num_warps> phases = {};  // of each of its warps
    bool are_equal() const { return std::ranges::count(phases, phases[0]) == std::ssize(phases); }
  };
  std::map<std::int64_t, Seen> seen;  // of threads that have waited, or warps of theirs
};

class Semaphores {
 public:
  explicit Semaphores(fiber::Scheduler& scheduler);

  std::int32_t read(std::int32_t* count, const SemaphoreUser& user);
  void signal(std::int32_t* count, std::int32_t inc, const SemaphoreUser& user);
  /// Sleeps until the count is at least `value`. CompileError where all threads that are left wait.
  void wait(std::int32_t* count, std::int32_t value, bool takes, const SemaphoreUser& user);

  /// CompileError where it completes before any thread has seen that it did.
  void arrive(Barrier& b, race::Snapshot known, const SemaphoreUser& user);
  /// A part of a copy, of which others are expected, has come.
  void bring(Barrier& b, race::Snapshot known, const SemaphoreUser& user);
  /// Of the thread of that number. CompileError where it has missed a completion.
  void wait(Barrier& b, std::int64_t thread, const SemaphoreUser& user);
  bool test(Barrier& b, std::int64_t thread, const SemaphoreUser& user);
  /// How many completions the thread has waited for.
  static std::int64_t waited(const Barrier& b, std::int64_t thread, const SemaphoreUser& user);
  /// CompileError where somebody who waits has not done so for each completion.
  static void check_end(const Barrier& b, Location at);

 private:
  struct Waiting {
    fiber::Fiber* fiber;
    const SemaphoreUser* user;
    const std::int32_t* count;  // null: a barrier
    std::int32_t value;
    const Barrier* barrier = nullptr;
  };
  /// What the user has waited for. CompileError where warps of a thread have done so each as often
  /// as they liked, and the thread waits as one.
  static Barrier::Seen& seen_by(Barrier& b, std::int64_t thread, const SemaphoreUser& user);
  static std::string text_of(const Waiting& w);
  [[noreturn]] void refuse_deadlock() const;
  void tell(Barrier& b, race::Snapshot known, const SemaphoreUser& user) const;
  void complete(Barrier& b, const SemaphoreUser& user);
  void hear(const std::int32_t* count, const SemaphoreUser& user);

  fiber::Scheduler& scheduler_;
  std::vector<Waiting> waiting_;  // in the order in which they came
  std::map<const std::int32_t*, race::Snapshot> told_;
};

}  // namespace palladium::interpreter
