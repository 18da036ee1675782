#include "runtime/fiber/workers.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "codegen/base/forking.hpp"

namespace palladium::fiber {
namespace {

/// One thread that waits for something to do.
struct Worker {
  static constexpr int patience = 20000;  // some 10 us
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<const std::function<void()>*> work = nullptr;
  Worker* next = nullptr;  // in the list that it is in

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return work != nullptr; });
      lock.unlock();
      (*work.load())();
      lock.lock();
      work = nullptr;
      changed.notify_all();
    }
  }
  void start(const std::function<void()>& given) {
    std::lock_guard lock(mutex);
    work = &given;
    changed.notify_all();
  }
  void join() {
    // Those who share work end nearly together: to sleep, and be woken, takes longer.
    for (int turn = 0; turn < patience; ++turn)
      if (work.load(std::memory_order_acquire) == nullptr) return;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return work == nullptr; });
  }
};

/// None where the process can have no more threads.
Worker* start_worker() {
  try {
    auto worker = std::make_unique<Worker>();
    std::thread([w = worker.get()] { w->loop(); }).detach();
    return worker.release();  // lives as long as the process
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// The threads of this process that have nothing to do. Handing them out takes no memory, so that
/// it cannot fail.
struct Pool {
  std::mutex mutex;
  Worker* free = nullptr;

  /// As many as there may be, one list of them.
  Worker* take(int count) {
    std::lock_guard lock(mutex);
    Worker* taken = nullptr;
    for (; count > 0; --count) {
      Worker* const worker = free != nullptr ? std::exchange(free, free->next) : start_worker();
      if (worker == nullptr) break;
      worker->next = std::exchange(taken, worker);
    }
    return taken;
  }
  void give(Worker* workers) {
    std::lock_guard lock(mutex);
    while (workers != nullptr) {
      Worker* const rest = workers->next;
      workers->next = std::exchange(free, workers);
      workers = rest;
    }
  }
};

// Threads do not survive a fork: a child has a pool of its own, and leaves its parent's alone. None
// is ever destroyed: workers may outlive static objects.
constinit std::atomic<Pool*> current = nullptr;
const forking::Registration workers_registration({.in_child = [] { current.store(nullptr); }});

Pool& pool() {
  if (Pool* known = current.load(std::memory_order_acquire)) return *known;
  auto* made = new Pool;
  Pool* expected = nullptr;
  if (current.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *expected;
}

}  // namespace

int worker_count(int wanted) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return wanted > 0 ? std::min(wanted, std::max(16, 4 * cores)) : cores;
}

void run_on_workers(int count, const std::function<void()>& work) {
  if (count <= 1) return work();
  const forking::Outside outside;
  Pool& here = pool();
  Worker* const others = here.take(count - 1);
  for (Worker* worker = others; worker != nullptr; worker = worker->next) worker->start(work);
  work();
  for (Worker* worker = others; worker != nullptr; worker = worker->next) worker->join();
  here.give(others);
}

}  // namespace palladium::fiber
