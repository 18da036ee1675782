// Processes by their numbers: none of them is everybody, and a child ends with its object.
#include "codegen/base/process.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <optional>
#include <utility>

#include "tests/support/compile_helper.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using process::Child;
using process::Ending;
using process::Id;

namespace {

int sleep_for_long() {
  ::alarm(60);
  return ::pause();
}

}  // namespace

TEST_CASE("no number that stands for several processes is an id") {
  for (const pid_t number : {0, -1, -2, -12345}) CHECK_FALSE(Id::of(number));
  CHECK(Id::of(1)->number() == 1);
  CHECK(Id::self().number() == ::getpid());
  // The group of process 1 would be everybody.
  CHECK_FALSE(Id::of(1)->signal_group(0));
  CHECK(errno == EPERM);
}

TEST_CASE("a child's end is known by its status or its signal") {
  CHECK(test::forked([] { return 0; }).wait().is_good());
  const Ending four = test::forked([] { return 4; }).wait();
  CHECK_FALSE(four.is_good());
  CHECK(four.code() == 4);
  CHECK(four.words() == "ended with status 4");
  const Ending killed = test::forked([] { return ::raise(SIGKILL); }).wait();
  CHECK_FALSE(killed.is_good());
  CHECK(killed.code() == -SIGKILL);
  CHECK(killed.words() == "was killed by signal 9 (Killed)");
}

TEST_CASE("a child is killed and buried at the end of its object, or earlier on request") {
  std::optional<Id> first;
  {
    Child child = test::forked(sleep_for_long);
    first = child.id();
    CHECK_FALSE(child.wait_now());
    Child moved = std::move(child);
    CHECK(moved.id() == *first);
    CHECK_FALSE(test::ends_within(*first, 20));
  }
  CHECK(test::ends_within(*first, 0));
  CHECK_FALSE(first->signal(0));
  CHECK(errno == ESRCH);

  Child second = test::forked(sleep_for_long);
  CHECK(second.kill().signal == SIGKILL);
  CHECK_FALSE(second.kill().is_known);  // once
  second = test::forked(sleep_for_long);
  CHECK_FALSE(second.wait_now());
}

TEST_CASE("a child that somebody else has waited for is not touched again") {
  struct sigaction ignore = {}, before;
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &before);
  Child lost = test::forked([] { return 4; });
  const Ending ending = lost.wait();
  sigaction(SIGCHLD, &before, nullptr);
  CHECK_FALSE(ending.is_known);
  CHECK_FALSE(ending.is_good());
  CHECK(ending.words() == "ended");
  // A copy in a fork is not that fork's child.
  Child child = test::forked(sleep_for_long);
  CHECK(test::status_of_fork([&] {
          child.kill();
          return 0;
        }) == 0);
  CHECK_FALSE(child.wait_now());
}

TEST_CASE("where there can be no process there is no child") {
  CHECK(test::status_of_fork([] {
          // Root is above the limit.
          if (::geteuid() == 0 && ::setuid(59'001) != 0) return 2;
          const rlimit none = {0, 0};
          setrlimit(RLIMIT_NPROC, &none);
          return !Child::fork([] { return 0; }) && errno == EAGAIN ? 0 : 1;
        }) == 0);
}
