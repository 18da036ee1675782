#include "runtime/emulator/workers.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace palladium::emulator {
namespace {

/// One thread that waits for something to do.
struct Worker {
  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void()>* work = nullptr;
  std::thread thread;

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return work != nullptr; });
      lock.unlock();
      (*work)();
      lock.lock();
      work = nullptr;
      changed.notify_all();
    }
  }
  void start(const std::function<void()>& next) {
    std::lock_guard lock(mutex);
    work = &next;
    changed.notify_all();
  }
  void join() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return work == nullptr; });
  }
};

/// Threads do not survive a fork: a child starts its own, and leaves its parent's alone.
struct Pool {
  std::mutex mutex;
  std::vector<Worker*> free;
  pid_t owner = getpid();

  std::vector<Worker*> take(std::size_t count) {
    std::lock_guard lock(mutex);
    if (owner != getpid()) {
      free.clear();
      owner = getpid();
    }
    std::vector<Worker*> taken;
    while (taken.size() < count && !free.empty()) {
      taken.push_back(free.back());
      free.pop_back();
    }
    while (taken.size() < count) {
      auto* worker = new Worker;  // lives as long as the process
      worker->thread = std::thread([worker] { worker->loop(); });
      worker->thread.detach();
      taken.push_back(worker);
    }
    return taken;
  }
  void give(const std::vector<Worker*>& workers) {
    std::lock_guard lock(mutex);
    free.insert(free.end(), workers.begin(), workers.end());
  }
};

Pool& pool() {
  static Pool* const pool = new Pool;  // workers may outlive static destruction
  return *pool;
}

}  // namespace

int worker_count(int wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void run_on_workers(int count, const std::function<void()>& work) {
  if (count <= 1) return work();
  const std::vector<Worker*> others = pool().take(static_cast<std::size_t>(count - 1));
  for (Worker* worker : others) worker->start(work);
  work();
  for (Worker* worker : others) worker->join();
  pool().give(others);
}

}  // namespace palladium::emulator
