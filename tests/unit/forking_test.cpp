// Forks wait for what other threads have locked, and children find it free.
#include "codegen/base/forking.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/base/log.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using forking::Lock;
using forking::Mutex;
using forking::Outside;
using forking::Section;

namespace {

using std::chrono::milliseconds;

/// The status of a forked child that runs `body`, which has so many seconds for it.
int status_of_child(const auto& body, unsigned seconds = 5) {
  return test::status_of_fork([&] {
    ::alarm(seconds);
    body();
    return 0;
  });
}

struct Forks {
  std::atomic<int> before = 0, in_parent = 0, in_child = 0;
};
Forks forks;
const forking::Registration registration({.before = [] { ++forks.before; },
                                          .in_parent = [] { ++forks.in_parent; },
                                          .in_child = [] { ++forks.in_child; }});

}  // namespace

TEST_CASE("a fork waits for sections of other threads, and sections for the fork") {
  std::mutex mutex;
  std::atomic<bool> stop = false;
  std::atomic<int> rounds = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        const Section section;
        const Section nested;
        const std::lock_guard lock(mutex);
        ++rounds;
      }
    });
  for (int i = 0; i < 60; ++i) {
    const int status = status_of_child([&] {
      const Section section;
      const std::lock_guard lock(mutex);
    });
    REQUIRE(status == 0);
  }
  const int before = rounds;
  while (rounds == before) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a fork does not wait for who is outside for a while") {
  std::atomic<bool> is_outside = false, stop = false;
  std::thread waiting([&] {
    const Section section;
    const Section nested;
    const Outside outside;
    is_outside = true;
    while (!stop) std::this_thread::sleep_for(milliseconds(1));
  });
  while (!is_outside) std::this_thread::yield();
  CHECK(status_of_child([] { const Section section; }) == 0);
  stop = true;
  waiting.join();
  CHECK(status_of_child([] { const Section section; }) == 0);
}

TEST_CASE("a thread may fork inside its own section, and several at once") {
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 20; ++j) {
        const Section section;
        auto child = process::Child::fork([] {
          ::alarm(5);
          const Section nested;
          return 0;
        });
        if (!child || !child->wait().is_good()) ++failures;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}

TEST_CASE("who holds a lock may fork while others wait for it, and the child holds it too") {
  Mutex mutex;
  std::atomic<int> waiting = 0, have_had = 0;
  std::vector<std::thread> threads;
  {
    const Lock lock(mutex);
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        ++waiting;
        const Section nested;  // in the middle of which it waits
        const Lock late(mutex);
        ++have_had;
      });
    while (waiting < 3) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(20));
    ::alarm(60);  // for a fork that waits for those who wait
    CHECK(status_of_child([&] {
            if (have_had != 0) ::_exit(1);
          }) == 0);
    ::alarm(0);
    CHECK(have_had == 0);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(have_had == 3);
  CHECK(status_of_child([&] { const Lock lock(mutex); }) == 0);
}

TEST_CASE("a lock keeps others out, and no fork finds it held by who is not there") {
  Mutex mutex;
  std::atomic<bool> stop = false;
  int inside = 0, worst = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        const Lock lock(mutex);
        worst = std::max(worst, ++inside);
        --inside;
      }
    });
  for (int i = 0; i < 60; ++i) REQUIRE(status_of_child([&] { const Lock lock(mutex); }) == 0);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(worst == 1);
}

TEST_CASE("hooks run around every fork") {
  const int before = forks.before, in_parent = forks.in_parent;
  const int in_child = forks.in_child;
  CHECK(status_of_child([&] {
          if (forks.before != before + 1 || forks.in_child != in_child + 1 ||
              forks.in_parent != in_parent)
            ::_exit(1);
        }) == 0);
  CHECK(forks.before == before + 1);
  CHECK(forks.in_parent == in_parent + 1);
  CHECK(forks.in_child == in_child);
}

TEST_CASE("a child can name dimensions while its parent's threads did") {
  std::atomic<bool> stop = false;
  std::thread naming([&] {
    for (int i = 0; !stop; ++i) (dim("m") + i % 50) * 2;
  });
  for (int i = 0; i < 100; ++i) REQUIRE(status_of_child([&] { (dim("n") + i) * 3; }) == 0);
  stop = true;
  naming.join();
}
