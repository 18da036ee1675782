// The emulator in an application that forks: children build and run kernels of their own beside
// their parent and one another, whatever its threads were at.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"
#include "tests/support/wait_until.hpp"

using namespace palladium;
using pl::_;
using test::Environment;
using test::Folder;

namespace {

constexpr std::int64_t size = 256;

/// Another kernel, and another text, for every number.
Kernel plus(int number) {
  return pallas_call([=](Ref x, Ref o) { o[_] = x[_] + number; },
                     {.name = "plus", .out_type = {{size}, i32}})
      .on(Target::emulator);
}

/// Whether it computes what it says.
bool is_right(const Kernel& kernel, int number) {
  Array x = Array::zeros({size}, i32);
  auto* const values = static_cast<std::int32_t*>(x.data());
  for (int i = 0; i < size; ++i) values[i] = 3 * i;
  const Array result = kernel(x);
  const auto* const results = static_cast<const std::int32_t*>(result.data());
  for (int i = 0; i < size; ++i)
    if (results[i] != 3 * i + number) return false;
  return true;
}

/// A compiler that says that it has been started, waits for `folder`/go, and then is c++.
std::string slow_compiler(const Folder& folder) {
  const std::string script = folder / "slow";
  REQUIRE(files::publish(script,
                         "#!/bin/sh\n: >'" + (folder / "started") + "'\nwhile [ ! -e '" +
                             (folder / "go") + "' ]; do sleep 0.01; done\nexec c++ \"$@\"\n",
                         files::Durability::fast, 0700));
  return script;
}

}  // namespace

TEST_CASE("children that build kernels at once compute what their own kernels say") {
  const Folder folder;
  const Environment temporary("TMPDIR", folder.path());
  REQUIRE(is_right(plus(0), 0));
  std::vector<process::Child> children;
  for (int child = 1; child <= 8; ++child)
    children.push_back(test::forked([=] {
      ::alarm(100);
      for (int i = 0; i < 2; ++i)
        if (!is_right(plus(10 * child + i), 10 * child + i)) return 1;
      return is_right(plus(0), 0) ? 0 : 2;  // its parent's
    }));
  CHECK(is_right(plus(1000), 1000));
  for (process::Child& child : children) CHECK(child.wait().code() == 0);
  CHECK(is_right(plus(1001), 1001));
  CHECK(folder.names().empty());  // nobody leaves anything
}

TEST_CASE("a child builds the kernel that a thread of its parent is building") {
  const Folder folder;
  const Kernel kernel = plus(2000);
  std::thread building, waiting;
  {
    const Environment slow("PALLADIUM_CXX", slow_compiler(folder));
    building = std::thread([&] { CHECK(is_right(kernel, 2000)); });
    test::wait_until("the compiler", [&] { return files::exists(folder / "started"); });
    waiting = std::thread([&] { CHECK(is_right(plus(2000), 2000)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(test::status_of_fork([&] {
          ::alarm(60);
          return is_right(kernel, 2000) && is_right(plus(2000), 2000) ? 0 : 1;
        }) == 0);
  REQUIRE(files::publish(folder / "go", "go"));
  building.join();
  waiting.join();
}

TEST_CASE("children forked while threads of their parent run kernels run them too") {
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0, runs = 0;
  const Kernel kernel = pallas_call([](Ref x, Ref o) { o[_] = x[_] + 5; },
                                    {.name = "blocks",
                                     .out_type = {{size}, i32},
                                     .grid = {8},
                                     .in_specs = {{{size / 8}, [](Index i) { return i; }}},
                                     .out_specs = {{{size / 8}, [](Index i) { return i; }}}})
                            .on(Target::emulator);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        if (!is_right(kernel, 5)) ++failures;
        ++runs;
      }
    });
  while (runs < 2) std::this_thread::yield();
  for (int i = 0; i < 20; ++i)
    CHECK(test::status_of_fork([&] {
            ::alarm(60);
            return is_right(kernel, 5) ? 0 : 1;
          }) == 0);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}

TEST_CASE("a body may fork while other threads wait for its kernel") {
  std::atomic<bool> is_tracing = false;
  std::atomic<int> calling = 0, status = -1;
  const Kernel kernel = pallas_call(
                            [&](Ref x, Ref o) {
                              is_tracing = true;
                              while (calling < 2) std::this_thread::yield();
                              std::this_thread::sleep_for(std::chrono::milliseconds(50));
                              status = test::status_of_fork([] { return 0; });
                              o[_] = x[_] + 7;
                            },
                            {.name = "forks", .out_type = {{size}, i32}})
                            .on(Target::emulator);
  ::alarm(120);  // for a fork that waits for those who wait
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!is_tracing) std::this_thread::yield();
      ++calling;
      CHECK(is_right(kernel, 7));
    });
  CHECK(is_right(kernel, 7));
  for (std::thread& thread : threads) thread.join();
  ::alarm(0);
  CHECK(status == 0);
}

TEST_CASE("kernels are built where the application ignores SIGCHLD, and refusals told") {
  CHECK(test::status_of_fork([] {
          ::alarm(100);
          ::signal(SIGCHLD, SIG_IGN);
          if (!is_right(plus(4000), 4000)) return 1;
          ::setenv("PALLADIUM_CXX", "false", 1);
          try {
            (void)is_right(plus(4001), 4001);
            return 2;
          } catch (const Error&) {
          }
          ::setenv("PALLADIUM_CXX", "c++", 1);
          return is_right(plus(4001), 4001) ? 0 : 3;
        }) == 0);
}
