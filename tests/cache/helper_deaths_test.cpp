// Compile helpers that die, hang or are not what they should be: the program gets its kernel, or an
// error that says what happened.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cache/text_digest.hpp"
#include "codegen/nvrtc/spawn.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"
#include "tests/support/wait_until.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using nvrtc::Pool;
using test::ends_within;
using test::fake;
using test::fake_toolchain;
using test::Folder;
using test::helper_options;

namespace {

using std::chrono::milliseconds;

// A second, as far as the machine has time for it.
constexpr int soon = 3000;

/// A compile that is under way in another thread.
class UnderWay {
 public:
  UnderWay(Pool& pool, const nvrtc::Request& request)
      : thread_([&pool, request, this] {
          outcome_ = pool.compile(request, fake_toolchain(), [this] { return stop_.load(); });
        }) {}
  ~UnderWay() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void stop() { stop_ = true; }
  const Pool::Outcome& outcome() {
    thread_.join();
    return outcome_;
  }

 private:
  std::atomic<bool> stop_ = false;
  Pool::Outcome outcome_;
  std::thread thread_;
};

/// The helper that the pool will use next.
process::Id next_helper(Pool& pool) {
  REQUIRE(pool.compile(fake(""), fake_toolchain()).end == Pool::End::result);
  return pool.idle_processes().at(0);
}

/// Until the fake NVRTC has counted as many compiles as `tries` has letters.
void wait_for_tries(const Folder& folder, const std::string& tries) {
  test::wait_until("the fake NVRTC", [&] {
    return files::exists(folder / "tries") && test::text_of(folder / "tries") == tries;
  });
}

}  // namespace

TEST_CASE("a compile whose process dies is tried once more") {
  const Folder folder;
  Pool pool(helper_options(), 1);
  const test::CapturedStderr log;
  const Pool::Outcome outcome =
      pool.compile(fake("count " + (folder / "tries") + ";unless " + (folder / "file") + ";abort"),
                   fake_toolchain());
  CHECK(outcome.end == Pool::End::result);
  CHECK(outcome.result.ok);
  CHECK(test::text_of(folder / "tries") == "xx");
  CHECK_THAT(log.text(),
             ContainsSubstring("the compile helper was killed by signal 6 (Aborted); the compile "
                               "is tried once more"));
}

TEST_CASE("a compile that kills its process twice is an error that says how, and the last words") {
  const std::vector<std::pair<std::string, std::string>> deaths = {
      {"say all is lost;abort", "was killed by signal 6 (Aborted) and had said:\nall is lost\n"},
      {"segv", "was killed by signal 11 (Segmentation fault)"},
      {"kill", "was killed by signal 9 (Killed)"},
      {"exit", "ended with status 4"},
  };
  for (const auto& [orders, words] : deaths) {
    CAPTURE(orders);
    const Folder folder;
    Pool pool(helper_options(), 1);
    const test::CapturedStderr quiet;
    const Pool::Outcome outcome =
        pool.compile(fake("count " + (folder / "tries") + ";" + orders), fake_toolchain());
    CHECK(outcome.end == Pool::End::died);
    CHECK(outcome.why == words);
    CHECK(test::text_of(folder / "tries") == "xx");
    // It poisons nothing.
    CHECK(pool.compile(fake(""), fake_toolchain()).end == Pool::End::result);
  }
}

TEST_CASE("a helper that is killed in the middle of a compile costs one retry") {
  const Folder folder;
  Pool pool(helper_options(), 1);
  const process::Id helper = next_helper(pool);
  const test::CapturedStderr log;
  UnderWay compile(pool, fake("count " + (folder / "tries") + ";sleep 300"));
  wait_for_tries(folder, "x");
  SECTION("its first process") { REQUIRE(helper.signal(SIGKILL)); }
  SECTION("its second process") { REQUIRE(test::children_of(helper).at(0).signal(SIGKILL)); }
  CHECK(compile.outcome().end == Pool::End::result);
  CHECK(test::text_of(folder / "tries") == "xx");
  CHECK_THAT(log.text(), ContainsSubstring("the compile is tried once more"));
  CHECK(ends_within(helper, soon));
}

TEST_CASE("a helper that was killed while it had nothing to do is replaced") {
  Pool pool(helper_options(), 1);
  const process::Id helper = next_helper(pool);
  REQUIRE(helper.signal(SIGKILL));
  CHECK(ends_within(helper, soon));
  const test::CapturedStderr quiet;
  CHECK(pool.compile(fake(""), fake_toolchain()).end == Pool::End::result);
  CHECK(pool.idle_processes().at(0) != helper);
}

TEST_CASE("a helper without work ends by itself, and the next compile starts another") {
  nvrtc::HelperOptions options = helper_options();
  options.idle_ms = 1000;
  Pool pool(options, 1);
  const process::Id first = next_helper(pool);
  const process::Id worker = test::children_of(first).at(0);
  CHECK(ends_within(first, 1000 + soon));
  CHECK(ends_within(worker, soon));
  const test::CapturedStderr log;
  CHECK(next_helper(pool) != first);
  CHECK(log.text().empty());
}

TEST_CASE("a compile can be given up, and its process with it") {
  const Folder folder;
  Pool pool(helper_options(), 1);
  const process::Id helper = next_helper(pool);
  UnderWay compile(pool, fake("count " + (folder / "tries") + ";sleep 60000"));
  wait_for_tries(folder, "x");
  const process::Id worker = test::children_of(helper).at(0);
  compile.stop();
  CHECK(compile.outcome().end == Pool::End::stopped);
  CHECK(ends_within(helper, soon));
  CHECK(ends_within(worker, soon));
  CHECK(pool.compile(fake(""), fake_toolchain()).end == Pool::End::result);
}

TEST_CASE("who waits for a helper can give up too") {
  Pool pool(helper_options(), 1);
  UnderWay first(pool, fake("sleep 60000"));
  std::this_thread::sleep_for(milliseconds(50));
  UnderWay second(pool, fake(""));
  std::this_thread::sleep_for(milliseconds(50));
  second.stop();
  CHECK(second.outcome().end == Pool::End::stopped);
  first.stop();
  CHECK(first.outcome().end == Pool::End::stopped);
}

TEST_CASE("a compile that needs more memory than it may have ends with words about it") {
  nvrtc::HelperOptions options = helper_options();
  options.memory_bytes = 256 << 20;
  Pool pool(options, 1);
  const test::CapturedStderr quiet;
  const Pool::Outcome outcome = pool.compile(fake("hog"), fake_toolchain());
  CHECK(outcome.end == Pool::End::died);
  CHECK_THAT(outcome.why, ContainsSubstring("was killed by signal 6 (Aborted)") &&
                              ContainsSubstring("out of memory"));
}

TEST_CASE("NVRTC compiles in 256 MiB, and says so where it cannot even be loaded") {
  nvrtc::HelperOptions options = helper_options();
  options.memory_bytes = 256 << 20;
  CHECK(Pool(options, 1).compile(test::scale(), test::toolchain()).result.ok);
  options.memory_bytes = 4 << 20;
  CHECK_THROWS_WITH(Pool(options, 1).compile(test::scale(), test::toolchain()),
                    ContainsSubstring("NVRTC could not be loaded"));
}

TEST_CASE("as many helpers work at once as there may, and not one more") {
  const Folder folder;
  Pool pool(helper_options(), 2);
  const nvrtc::Request request = fake("count " + (folder / "tries") + ";sleep 60000");
  std::vector<std::unique_ptr<UnderWay>> compiles;
  for (int i = 0; i < 4; ++i) compiles.push_back(std::make_unique<UnderWay>(pool, request));
  wait_for_tries(folder, "xx");
  std::this_thread::sleep_for(milliseconds(200));
  CHECK(test::text_of(folder / "tries") == "xx");
  for (const auto& compile : compiles) compile->stop();
  for (const auto& compile : compiles) CHECK(compile->outcome().end == Pool::End::stopped);
}

TEST_CASE("a helper of another build is not used") {
  nvrtc::HelperOptions options = helper_options();
  options.digest = std::string(64, 'a');
  Pool pool(options, 1);
  const Pool::Outcome outcome = pool.compile(fake(""), fake_toolchain());
  CHECK(outcome.end == Pool::End::unavailable);
  CHECK(outcome.is_lasting);
  CHECK(outcome.why == options.program + ": it is of another build (" +
                           std::string(cache::text_digest).substr(0, 12) + ", not aaaaaaaaaaaa)");
}

TEST_CASE("what is no helper is not used, and the problem is named") {
  const Folder folder;
  REQUIRE(files::publish(folder / "text", "no program", files::Durability::fast, 0700));
  REQUIRE(files::publish(folder / "script", "#!/bin/sh\necho hello >&3\n", files::Durability::fast,
                         0700));
  const std::vector<std::pair<std::string, std::string>> programs = {
      {folder / "missing", "posix_spawn: No such file or directory"},
      {folder.path(), "posix_spawn: Permission denied"},
      {folder / "text", "posix_spawn: Exec format error"},
      {"/bin/true", "it ended without a word"},
      {folder / "script", "it ended without a word"},
  };
  for (const auto& [program, words] : programs) {
    CAPTURE(program);
    nvrtc::HelperOptions options = helper_options();
    options.program = program;
    Pool pool(options, 1);
    const Pool::Outcome outcome = pool.compile(fake(""), fake_toolchain());
    CHECK(outcome.end == Pool::End::unavailable);
    CHECK(outcome.why == program + ": " + words);
  }
}

namespace {

/// A helper to talk to without a Pool's manners.
struct RawHelper {
  RawHelper() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    started = nvrtc::spawn(helper_options().program, {"--serve"}, ends[1]).process;
    REQUIRE(started);
    ::close(ends[1]);
    socket = ends[0];
  }
  ~RawHelper() { ::close(socket); }

  void send(const std::string& bytes) const {
    REQUIRE(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  void greet() const {
    send(nvrtc::wire::frame(
        nvrtc::wire::Kind::open,
        nvrtc::wire::encode(nvrtc::wire::Open{
            cache::text_digest, static_cast<std::uint64_t>(::getpid()), 10'000, 1ull << 30})));
  }

  process::Id process() const { return started.value(); }

  int socket = -1;
  std::optional<process::Id> started;
};

}  // namespace

TEST_CASE("a helper ends at the first thing that it does not understand") {
  const std::vector<std::string> rubbish = {
      std::string(16, '\0'),
      "GET / HTTP/1.1\r\n\r\n",
      nvrtc::wire::frame(nvrtc::wire::Kind::done, ""),
      nvrtc::wire::frame(nvrtc::wire::Kind::bye, ""),
      nvrtc::wire::frame(nvrtc::wire::Kind::open, "abc"),
  };
  for (const std::string& bytes : rubbish) {
    CAPTURE(bytes);
    {
      const RawHelper fresh;
      fresh.send(bytes);
      CHECK(ends_within(fresh.process(), soon));
    }
    const RawHelper greeted;
    greeted.greet();
    greeted.send(bytes);
    CHECK(ends_within(greeted.process(), soon));
  }
}

TEST_CASE("a request that is none is answered as such by a helper that lives on") {
  const RawHelper helper;
  helper.greet();
  nvrtc::wire::Channel channel(::dup(helper.socket));
  nvrtc::wire::Message message;
  REQUIRE(channel.receive(message) == nvrtc::wire::Received::message);
  CHECK(message.kind == nvrtc::wire::Kind::ready);
  for (const std::string& body :
       {std::string(), std::string("nonsense"), std::string(100, '\xff')}) {
    channel.send(nvrtc::wire::Kind::compile, body);
    REQUIRE(channel.receive(message) == nvrtc::wire::Received::message);
    nvrtc::wire::Failed failed;
    CHECK(message.kind == nvrtc::wire::Kind::failed);
    CHECK(nvrtc::wire::decode(message.body, failed));
    CHECK(failed.message == "the compile helper cannot read the request");
  }
}

TEST_CASE("half a message is waited for, and forgotten when the socket closes") {
  std::optional<process::Id> process;
  {
    const RawHelper helper;
    process = helper.process();
    helper.greet();
    const std::string whole = nvrtc::wire::frame(nvrtc::wire::Kind::compile, std::string(100, 'x'));
    helper.send(whole.substr(0, 50));
    CHECK_FALSE(ends_within(*process, 100));
  }
  CHECK(ends_within(*process, soon));
}

namespace {

/// Says which processes its helper has, and waits in the middle of a compile to be killed.
void compile_until_killed(bool has_child) {
  Pool pool(helper_options(), 1);
  const process::Id helper = next_helper(pool);
  // A child that runs no fork handlers, and so keeps the helper's socket open.
  if (has_child && ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
    ::sleep(4);
    ::_exit(0);
  }
  const std::string pids = std::to_string(helper.number()) + " " +
                           std::to_string(test::children_of(helper).at(0).number());
  REQUIRE(files::publish(std::getenv("TEST_PIDS"), pids));
  pool.compile(fake("sleep 60000"), fake_toolchain());
}

}  // namespace

TEST_CASE("HIDDEN compile until killed", "[.]") { compile_until_killed(false); }
TEST_CASE("HIDDEN compile until killed, with a child", "[.]") { compile_until_killed(true); }

TEST_CASE("a helper is gone within a second of its program's death") {
  for (const char* parent :
       {"HIDDEN compile until killed", "HIDDEN compile until killed, with a child"}) {
    CAPTURE(parent);
    const Folder folder;
    test::Program program({"/proc/self/exe", parent}, {{"TEST_PIDS", folder / "pids"}});
    test::wait_until("its helper", [&] { return files::exists(folder / "pids"); });
    pid_t numbers[2] = {};
    REQUIRE(std::sscanf(test::text_of(folder / "pids").c_str(), "%d %d", &numbers[0],
                        &numbers[1]) == 2);
    const process::Id helper = process::Id::of(numbers[0]).value();
    const process::Id worker = process::Id::of(numbers[1]).value();
    CHECK_FALSE(ends_within(worker, 100));
    REQUIRE(program.process().signal(SIGKILL));
    CHECK(ends_within(worker, soon));
    CHECK(ends_within(helper, soon));
    CHECK(program.wait().status == -SIGKILL);
  }
}

TEST_CASE("a program that closes all its descriptors keeps what it opens in their places") {
  Pool pool(helper_options(), 1);
  const process::Id helper = next_helper(pool);
  // What a daemon does at its start; and then its own sockets get the numbers.
  std::vector<int> others;
  const std::vector<int> before = test::sockets_of_this_process();
  for (const int socket : before) ::close(socket);
  for (std::size_t i = 0; i < before.size(); ++i) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    others.insert(others.end(), ends, ends + 2);
  }
  CHECK(ends_within(helper, soon));
  const test::CapturedStderr log;
  CHECK(pool.compile(fake(""), fake_toolchain()).end == Pool::End::result);
  CHECK(log.text().empty());
  for (const int socket : others) {
    char byte;
    CHECK(::recv(socket, &byte, 1, MSG_DONTWAIT) == -1);
    CHECK(errno == EAGAIN);  // nothing was written to it, and both ends are open
  }
  for (const int socket : others) ::close(socket);
}
