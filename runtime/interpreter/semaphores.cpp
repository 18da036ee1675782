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

void Semaphores::tell(Barrier& b, race::Snapshot known, const SemaphoreUser& user) const {
  if (user.races != nullptr) b.told = user.races->engine().join(b.told, known);
}

void Semaphores::arrive(Barrier& b, race::Snapshot known, const SemaphoreUser& user) {
  if (b.arrived == b.arrivals)
    throw CompileError(user.at,
                       fmt::format("{} arrives at {}, at which all {} have arrived, while parts of "
                                   "what other blocks copy are missing for its phase {}",
                                   user.thread, b.name, b.arrivals, b.completed));
  tell(b, known, user);
  ++b.arrived;
  complete(b, user);
}

void Semaphores::bring(Barrier& b, race::Snapshot known, const SemaphoreUser& user) {
  tell(b, known, user);
  --b.coming;
  complete(b, user);
}

void Semaphores::complete(Barrier& b, const SemaphoreUser& user) {
  if (b.arrived < b.arrivals || b.coming != 0) return;
  b.arrived = 0;
  b.known = b.told;
  const bool seen = b.completed == 0 || std::ranges::any_of(b.seen, [&](const auto& s) {
                      return std::ranges::count(s.second.phases, b.completed) > 0;
                    });
  if (!seen)
    throw CompileError(user.at, fmt::format("{} completed phase {}, but no threads observed phase "
                                            "{}: who arrives once more must know that a "
                                            "barrier_wait was through",
                                            b.name, b.completed, b.completed - 1));
  ++b.completed;
  for (const Waiting& w : waiting_)
    if (w.barrier == &b && w.fiber->parked()) scheduler_.unpark(*w.fiber);
}

Barrier::Seen& Semaphores::seen_by(Barrier& b, std::int64_t thread, const SemaphoreUser& user) {
  Barrier::Seen& seen = b.seen[thread];
  if (user.warp < 0 && !seen.are_equal())
    throw CompileError(
        user.at, fmt::format("{} waits for {}, for which its warps have waited {} times: all of "
                             "them wait equally often before their thread does",
                             user.thread, b.name, fmt::join(seen.phases, ", ")));
  seen.thread = user.thread;
  return seen;
}

void Semaphores::wait(Barrier& b, std::int64_t thread, const SemaphoreUser& user) {
  Barrier::Seen& seen = seen_by(b, thread, user);
  std::int64_t& phases = seen.phases[static_cast<std::size_t>(std::max(user.warp, 0))];
  while (b.completed <= phases) {
    fiber::Fiber* const self = scheduler_.current();
    waiting_.push_back({self, &user, nullptr, 0, &b});
    scheduler_.park(&b);
    std::erase_if(waiting_, [&](const Waiting& w) { return w.fiber == self; });
  }
  if (b.completed > phases + 1)
    throw CompileError(user.at,
                       fmt::format("{} waits for phase {} of {}, which has completed phase "
                                   "{}: a thread that waits for a barrier waits for every "
                                   "completion of it",
                                   user.thread, phases, b.name, b.completed - 1));
  if (user.warp >= 0)
    ++phases;
  else
    seen.phases.fill(phases + 1);
  if (user.races != nullptr) user.races->engine().acquire(user.agent, b.known);
}

bool Semaphores::test(Barrier& b, std::int64_t thread, const SemaphoreUser& user) {
  scheduler_.yield();  // who asks again and again must let others go on
  const Barrier::Seen& seen = seen_by(b, thread, user);
  if (b.completed <= seen.phases[static_cast<std::size_t>(std::max(user.warp, 0))]) return false;
  wait(b, thread, user);
  return true;
}

std::int64_t Semaphores::waited(const Barrier& b, std::int64_t thread, const SemaphoreUser& user) {
  const auto found = b.seen.find(thread);
  return found == b.seen.end()
             ? 0
             : found->second.phases[static_cast<std::size_t>(std::max(user.warp, 0))];
}

void Semaphores::check_end(const Barrier& b, Location at) {
  // A warp that has never waited need not, where another of its thread does.
  for (const auto& [number, seen] : b.seen)
    for (const std::int64_t phases : seen.phases)
      if (phases < b.completed && (phases > 0 || seen.are_equal()))
        throw CompileError(at, fmt::format("when {} was deallocated, {} had only observed it up to "
                                           "phase {}, but it completed up to phase {}: there is a "
                                           "barrier_wait for each completion",
                                           b.name, seen.thread, phases - 1, b.completed - 1));
  if (b.completed > 0 && b.seen.empty())
    throw CompileError(at, fmt::format("when {} was deallocated, it had completed phase {}, but no "
                                       "threads observed it: there is a barrier_wait for each "
                                       "completion",
                                       b.name, b.completed - 1));
  if (b.coming < 0)
    throw CompileError(at, fmt::format("when {} was deallocated, {} parts of copies had come that "
                                       "other blocks share with this one, which asked for none: "
                                       "all blocks along collective_axes say the same copy",
                                       b.name, -b.coming));
  if (b.arrived > 0)
    throw CompileError(at, fmt::format("when {} was deallocated, {} of {} arrivals had come that "
                                       "complete it",
                                       b.name, b.arrived, b.arrivals));
}

std::string Semaphores::text_of(const Waiting& w) {
  const std::string who = w.user->thread + " waits at " + to_string(w.user->at);
  if (w.barrier == nullptr)
    return fmt::format("{} until {} is {}; it is {}", who, w.user->semaphore, w.value, *w.count);
  const Barrier& b = *w.barrier;
  std::string text = fmt::format("{} until {} completes phase {}; {} of {} arrivals have come", who,
                                 b.name, b.completed, b.arrived, b.arrivals);
  if (b.coming > 0)
    text += fmt::format(", and {} parts of what other blocks copy are missing", b.coming);
  return text;
}

void Semaphores::refuse_deadlock() const {
  const bool meets =
      std::ranges::any_of(waiting_, [](const Waiting& w) { return w.barrier != nullptr; });
  std::string message = std::string("deadlock: all threads that are left wait for ") +
                        (meets ? "barriers and semaphores" : "semaphores");
  constexpr std::size_t most_told = 20;
  for (std::size_t i = 0; i < std::min(waiting_.size(), most_told); ++i) {
    message += "\n  " + text_of(waiting_[i]);
  }
  if (waiting_.size() > most_told)
    message += fmt::format("\nand {} more", waiting_.size() - most_told);
  throw CompileError(waiting_.empty() ? Location{} : waiting_[0].user->at, message);
}

}  // namespace palladium::interpreter
