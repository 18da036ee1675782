// One compile for many processes: who waits, for whom, and that nobody waits for the dead.
#include "cache/turn.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using cache::Key;
using cache::Turn;
using test::Folder;

namespace {

const std::string toolchain = "0123456789abcdef";
Key key_named(const std::string& name) { return cache::key_of({{"graph", name}}); }

/// A process that does something, and whose result can be waited for.
class Child {
 public:
  template <class Body>
  explicit Child(const Body& body) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    process_.emplace(test::forked([&] {
      ::close(ends[0]);
      return body([&] { (void)!::write(ends[1], "x", 1); });
    }));
    ::close(ends[1]);
    ready_ = ends[0];
  }
  Child(Child&& from) noexcept
      : process_(std::move(from.process_)), ready_(std::exchange(from.ready_, -1)) {}
  ~Child() {
    if (ready_ >= 0) ::close(ready_);
  }
  void wait_until_ready() const {
    char byte;
    REQUIRE(::read(ready_, &byte, 1) == 1);
  }
  void end() const { process_->id().signal(SIGKILL); }
  int status() { return process_->wait().code(); }

 private:
  std::optional<process::Child> process_;
  int ready_;
};

Child holder(const std::string& root, const std::string& name) {
  Child child([&](const auto& say_ready) {
    const Turn turn(root, key_named(name), toolchain);
    say_ready();
    ::pause();
    return 0;
  });
  child.wait_until_ready();
  return child;
}

double seconds_of(const auto& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("sixteen processes that want one kernel make it once") {
  const Folder folder;
  const std::string made = folder / "made", log = folder / "log";
  std::vector<Child> children;
  for (int i = 0; i < 16; ++i)
    children.emplace_back([&](const auto&) {
      const Turn turn(folder.path(), key_named("softmax"), toolchain);
      if (files::exists(made)) return 0;
      ::usleep(50'000);
      if (!files::append(log, "made\n")) return 1;
      return files::publish(made, "bytes") ? 0 : 1;
    });
  for (Child& child : children) CHECK(child.status() == 0);
  CHECK(test::text_of(log) == "made\n");
}

TEST_CASE("programs without standard input take turns, and give them back") {
  const Folder folder;
  const std::string made = folder / "made", asks = folder / "asks";
  const Child first([&](const auto& say_ready) {
    ::close(STDIN_FILENO);  // a socket will stand there
    { const Turn turn(folder.path(), key_named("softmax"), toolchain); }
    const Turn turn(folder.path(), key_named("softmax"), toolchain);
    if (turn.has_waited()) return 1;
    say_ready();
    while (!files::exists(asks)) ::usleep(1'000);
    ::usleep(300'000);
    return files::publish(made, "bytes") ? 0 : 1;
  });
  first.wait_until_ready();
  Child second([&](const auto&) {
    ::close(STDIN_FILENO);
    if (!files::publish(asks, "")) return 1;
    const Turn turn(folder.path(), key_named("softmax"), toolchain);
    return turn.has_waited() && files::exists(made) ? 0 : 1;
  });
  CHECK(second.status() == 0);
}

TEST_CASE("a turn is for one kernel, one toolchain and one store") {
  const Folder folder;
  const Child held = holder(folder.path(), "softmax");
  CHECK_FALSE(Turn(folder.path(), key_named("blur"), toolchain).has_waited());
  CHECK_FALSE(Turn(folder.path(), key_named("softmax"), "fedcba9876543210").has_waited());
  CHECK_FALSE(Turn(folder / "other", key_named("softmax"), toolchain).has_waited());
  CHECK_FALSE(Turn("", key_named("softmax"), toolchain).has_waited());
}

TEST_CASE("who waits goes on when the holder is killed") {
  const Folder folder;
  const Child held = holder(folder.path(), "softmax");
  std::thread killer([&] {
    ::usleep(100'000);
    held.end();
  });
  bool waited = false;
  const double waited_for = seconds_of(
      [&] { waited = Turn(folder.path(), key_named("softmax"), toolchain).has_waited(); });
  killer.join();
  CHECK(waited);
  CHECK(waited_for > 0.05);
  CHECK(waited_for < 30);
}

TEST_CASE("a turn that is over is free, in this process too") {
  const Folder folder;
  for (int i = 0; i < 3000; ++i) {
    const Turn turn(folder.path(), key_named("softmax"), toolchain);
    if (turn.has_waited()) FAIL("waited for itself");
  }
}

TEST_CASE("who is asked to stop waits no longer") {
  const Folder folder;
  const Child held = holder(folder.path(), "softmax");
  int asked = 0;
  const Turn turn(folder.path(), key_named("softmax"), toolchain, [&] { return ++asked == 3; });
  CHECK(turn.has_waited());
  CHECK(asked == 3);
}

TEST_CASE("where no name can be had, nobody waits and nobody fails") {
  const Folder folder;
  const Child held = holder(folder.path(), "softmax");
  Child without([&](const auto&) {
    // As many descriptors as there are.
    const rlimit none = {3, 3};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return 2;
    const double seconds = seconds_of([&] {
      const Turn mine(folder.path(), key_named("softmax"), toolchain);
      const Turn other(folder.path(), key_named("blur"), toolchain);
    });
    return seconds < 30 ? 0 : 1;
  });
  CHECK(without.status() == 0);
}

TEST_CASE("a child of fork holds no turn of its parent's") {
  const Folder folder;
  std::optional<Turn> turn;
  turn.emplace(folder.path(), key_named("softmax"), toolchain);
  Child child([&](const auto& say_ready) {
    say_ready();
    ::pause();
    return 0;
  });
  child.wait_until_ready();
  turn.reset();
  CHECK_FALSE(Turn(folder.path(), key_named("softmax"), toolchain).has_waited());
}

TEST_CASE("threads of one process take turns like processes") {
  const Folder folder;
  std::atomic<int> inside = 0, most = 0, had_it = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const Turn turn(folder.path(), key_named("softmax"), toolchain);
      most = std::max<int>(most, ++inside);
      ::usleep(2000);
      --inside;
      ++had_it;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(most == 1);
  CHECK(had_it == 8);
}
