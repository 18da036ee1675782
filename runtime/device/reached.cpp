#include "runtime/device/reached.hpp"

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "codegen/base/forking.hpp"
#include "runtime/driver/memory.hpp"

namespace palladium {
namespace runtime {
namespace {

/// Each may hold memory that the GPU writes to.
constexpr std::size_t most_waiting = 64;

struct Waiting {
  std::shared_ptr<driver::Event> point;
  std::function<void()> then;
};

struct Points {
  std::mutex mutex;
  std::deque<Waiting> waiting;
};

// Never destroyed: at the end of a process its events may be gone. A child of fork() has no GPU.
std::atomic<Points*> points{nullptr};
std::atomic<std::size_t> num_waiting{0};
const forking::Registration points_registration({.in_child = [] {
  points.store(nullptr);
  num_waiting.store(0);
}});

Points& all_points() {
  Points* known = points.load();
  if (known == nullptr) {
    auto* made = new Points;
    if (points.compare_exchange_strong(known, made)) return *made;
    delete made;
  }
  return *known;
}

/// A GPU that answers with an error does nothing more.
bool is_over(const driver::Event& point) {
  try {
    return point.is_done();
  } catch (const CudaError&) {
    return true;
  }
}

/// Takes out those that are over.
std::vector<Waiting> take_reached() {
  const forking::Section section;
  Points& all = all_points();
  const std::lock_guard lock(all.mutex);
  std::vector<Waiting> reached;
  std::deque<Waiting> left;
  for (Waiting& w : all.waiting)
    if (is_over(*w.point))
      reached.push_back(std::move(w));
    else
      left.push_back(std::move(w));
  all.waiting = std::move(left);
  num_waiting = all.waiting.size();
  return reached;
}

std::shared_ptr<driver::Event> first_point() {
  const forking::Section section;
  Points& all = all_points();
  const std::lock_guard lock(all.mutex);
  return all.waiting.empty() ? nullptr : all.waiting.front().point;
}

/// Waits until fewer than `most` are left.
void wait_for_points(std::size_t most) {
  while (num_waiting >= most) {
    const std::shared_ptr<driver::Event> first = first_point();
    if (first == nullptr) return;
    std::exception_ptr failure;
    try {
      first->synchronize();
    } catch (const CudaError&) {
      failure = std::current_exception();
    }
    call_reached();  // what was told before may say why it failed
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

void when_reached(Stream stream, std::function<void()> then) {
  std::shared_ptr<driver::Event> point;
  try {
    point = std::make_shared<driver::Event>();
    point->record(reinterpret_cast<driver::StreamHandle>(stream.handle()));
  } catch (...) {
    new std::function<void()>(std::move(then));  // the GPU may still write to what it holds
    throw;
  }
  {
    const forking::Section section;
    Points& all = all_points();
    const std::lock_guard lock(all.mutex);
    all.waiting.push_back({std::move(point), std::move(then)});
    num_waiting = all.waiting.size();
  }
  wait_for_points(most_waiting);
}

void call_reached() {
  if (num_waiting.load(std::memory_order_relaxed) == 0) return;
  std::exception_ptr first;
  for (const Waiting& w : take_reached()) {
    try {
      w.then();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace runtime

void debug_flush() { runtime::wait_for_points(1); }

}  // namespace palladium
