// The semaphores of the blocks that run at once: who waits on which, and what signals tell.
#pragma once

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
};

class Semaphores {
 public:
  explicit Semaphores(fiber::Scheduler& scheduler);

  std::int32_t read(std::int32_t* count, const SemaphoreUser& user);
  void signal(std::int32_t* count, std::int32_t inc, const SemaphoreUser& user);
  /// Sleeps until the count is at least `value`. CompileError where all threads that are left wait.
  void wait(std::int32_t* count, std::int32_t value, bool takes, const SemaphoreUser& user);

 private:
  struct Waiting {
    fiber::Fiber* fiber;
    const SemaphoreUser* user;
    const std::int32_t* count;
    std::int32_t value;
  };
  [[noreturn]] void refuse_deadlock() const;
  void hear(const std::int32_t* count, const SemaphoreUser& user);

  fiber::Scheduler& scheduler_;
  std::vector<Waiting> waiting_;  // in the order in which they came
  std::map<const std::int32_t*, race::Snapshot> told_;
};

}  // namespace palladium::interpreter
