#include "runtime/fiber/fiber.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::fiber {
namespace {

/// Unwinds a fiber whose run was given up; never seen outside this file.
struct Cancelled {};

constexpr std::size_t colours = 16, colour_bytes = 256;

void save(ExceptionState& to, const void* thread) { std::memcpy(&to, thread, sizeof to); }
void restore(const ExceptionState& from, void* thread) { std::memcpy(thread, &from, sizeof from); }

/// So that as many elements fit without another allocation.
void make_room(auto& list, std::size_t count) {
  if (count > list.capacity()) list.reserve(std::max(count, 2 * list.capacity()));
}

}  // namespace

Scheduler::Scheduler() : Scheduler(Options{}) {}
Scheduler::Scheduler(Options options)
    : options_(options), random_(options.seed * 0x9e3779b97f4a7c15u + 1) {}

Scheduler::~Scheduler() {
  for (auto* list : {&fibers_, &spare_}) {
    for (auto& fiber : *list) {
      if (fiber->stack_.low != nullptr) return_stack(fiber->stack_);
    }
  }
}

Fiber& Scheduler::spawn(std::function<void()> body, void* owner) {
  // Whatever memory the fiber's life needs is there before the fiber is.
  make_room(fibers_, fibers_.size() + 1);
  make_room(spare_, spare_.size() + fibers_.size() + 1);
  make_room(ready_, ready_.size() + 1);
  std::unique_ptr<Fiber> fiber;
  if (spare_.empty()) {
    fiber = std::make_unique<Fiber>();
    fiber->scheduler_ = this;
    fiber->stack_ = take_stack(options_.stack_bytes);
  } else {
    fiber = std::move(spare_.back());
    spare_.pop_back();
  }
  fiber->id_ = static_cast<std::uint32_t>(fibers_.size());
  fiber->body_ = std::move(body);
  fiber->owner_ = owner;
  fiber->started_ = false;
  fiber->exceptions_ = {};
  // Stacks lie a power of two apart; without an offset their hot lines would share cache sets.
  std::byte* top = fiber->stack_.low + fiber->stack_.bytes - fiber->id_ % colours * colour_bytes;
  make(fiber->context_, fiber->stack_, top, &Scheduler::main, fiber.get());
  push(*fiber);
  ++live_;
  fibers_.push_back(std::move(fiber));
  return *fibers_.back();
}

void Scheduler::on_deadlock(std::function<void(Scheduler&)> callback) {
  on_deadlock_ = std::move(callback);
}

void Scheduler::run() {
  if (current_ != nullptr) throw InternalError("fibers: run() called from a fiber");
  thread_exceptions_ = abi::__cxa_get_globals();
  while (live_ > 0 && !failure_) {
    if (Fiber* next = pop()) {
      resume(*next);
      continue;
    }
    try {
      if (!on_deadlock_) {
        throw InternalError(
            fmt::format("fibers: {} of {} wait and none can run", live_, fibers_.size()));
      }
      on_deadlock_(*this);
      if (!any_ready()) throw InternalError("fibers: the deadlock callback unparked nothing");
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  if (failure_) unwind_all();
  ready_.clear();
  first_ = 0;
  for (auto& fiber : fibers_) {
    fiber->body_ = nullptr;
    spare_.push_back(std::move(fiber));
  }
  fibers_.clear();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Scheduler::unwind_all() {
  unwinding_ = true;
  for (std::size_t i = 0; i < fibers_.size(); ++i) {  // an unwinding fiber may spawn
    Fiber& fiber = *fibers_[i];
    while (fiber.started_ && !fiber.done()) resume(fiber);
    fiber.state_ = Fiber::State::done;
  }
  live_ = 0;
  unwinding_ = false;
}

void Scheduler::main(void* argument) {
  Fiber& fiber = *static_cast<Fiber*>(argument);
  Scheduler& self = *fiber.scheduler_;
  try {
    fiber.body_();
  } catch (const Cancelled&) {
  } catch (...) {
    if (!self.failure_) self.failure_ = std::current_exception();
  }
  fiber.state_ = Fiber::State::done;
  --self.live_;
  self.leave();
}

void Scheduler::push(Fiber& fiber) {
  fiber.state_ = Fiber::State::ready;
  ready_.push_back(&fiber);
}

Fiber* Scheduler::pop() {
  if (!any_ready()) return nullptr;
  Fiber* next = nullptr;
  switch (options_.order) {
  case Order::fifo: next = ready_[first_++]; break;
  case Order::lifo:
    next = ready_.back();
    ready_.pop_back();
    break;
  case Order::random:
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    std::swap(ready_[first_ + random_ % (ready_.size() - first_)], ready_.back());
    next = ready_.back();
    ready_.pop_back();
  }
  if (first_ == ready_.size()) {
    ready_.clear();
    first_ = 0;
  } else if (first_ > 4096) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  return next;
}

void Scheduler::resume(Fiber& fiber) {
  save(outside_exceptions_, thread_exceptions_);
  restore(fiber.exceptions_, thread_exceptions_);
  current_ = &fiber;
  fiber.state_ = Fiber::State::running;
  fiber.started_ = true;
  swap(outside_, fiber.context_);
  current_ = nullptr;
  restore(outside_exceptions_, thread_exceptions_);
}

// Gives the processor away: straight to the next ready fiber, or to `run` when there is none.
void Scheduler::leave() {
  Fiber& self = *current_;
  save(self.exceptions_, thread_exceptions_);
  Fiber* next = failure_ || unwinding_ ? nullptr : pop();
  if (next == nullptr) {
    swap(self.context_, outside_);
  } else if (next == &self) {
    self.state_ = Fiber::State::running;
  } else {
    restore(next->exceptions_, thread_exceptions_);
    current_ = next;
    next->state_ = Fiber::State::running;
    next->started_ = true;
    // Its stack has left the cache when there are many: fetched while `next` runs.
    if (any_ready()) prefetch(ready_[first_]->context_);
    swap(self.context_, next->context_);
  }
  if (unwinding_ && !self.done()) throw Cancelled{};
}

void Scheduler::yield() {
  if (unwinding_) throw Cancelled{};
  push(*current_);
  // Behind all others, or one that asks again and again would be the only one to run.
  if (options_.order == Order::lifo) std::rotate(ready_.begin(), ready_.end() - 1, ready_.end());
  leave();
}

void Scheduler::park(const void* waits_on) {
  if (unwinding_) throw Cancelled{};
  current_->state_ = Fiber::State::parked;
  current_->waits_on_ = waits_on;
  leave();
}

void Scheduler::unpark(Fiber& fiber) {
  if (fiber.parked()) push(fiber);
}

}  // namespace palladium::fiber
