#include "runtime/interpreter/semaphores.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::interpreter {

Semaphores::Semaphores(fiber::Scheduler& scheduler) : scheduler_(scheduler) {
  scheduler_.on_deadlock([this](fiber::Scheduler&) { refuse_deadlock(); });
}

void Semaphores::hear(const std::int32_t* count, const SemaphoreUser& user) {
  if (user.races != nullptr) user.races->engine().acquire(user.agent, told_[count]);
}

std::int32_t Semaphores::read(std::int32_t* count, const SemaphoreUser& user) {
  scheduler_.yield();  // who asks again and again must let others go on
  hear(count, user);
  return *count;
}

void Semaphores::signal(std::int32_t* count, std::int32_t inc, const SemaphoreUser& user) {
  if (user.races != nullptr) {
    race::Snapshot& told = told_[count];
    told = user.races->engine().join(told, user.races->engine().release(user.agent));
  }
  *count += inc;
  for (const Waiting& w : waiting_)
    if (w.count == count && w.value <= *count && w.fiber->parked()) scheduler_.unpark(*w.fiber);
}

void Semaphores::wait(std::int32_t* count, std::int32_t value, bool takes,
                      const SemaphoreUser& user) {
  while (*count < value) {
    fiber::Fiber* const self = scheduler_.current();
    waiting_.push_back({self, &user, count, value});
    scheduler_.park(count);
    std::erase_if(waiting_, [&](const Waiting& w) { return w.fiber == self; });
  }
  hear(count, user);
  if (takes) *count -= value;
}

void Semaphores::refuse_deadlock() const {
  std::string message = "deadlock: all threads that are left wait for semaphores";
  constexpr std::size_t most_told = 20;
  for (std::size_t i = 0; i < std::min(waiting_.size(), most_told); ++i) {
    const Waiting& w = waiting_[i];
    message += fmt::format("\n  {} waits at {} until {} is {}; it is {}", w.user->thread,
                           to_string(w.user->at), w.user->semaphore, w.value, *w.count);
  }
  if (waiting_.size() > most_told)
    message += fmt::format("\nand {} more", waiting_.size() - most_told);
  throw CompileError(waiting_.empty() ? Location{} : waiting_[0].user->at, message);
}

}  // namespace palladium::interpreter
