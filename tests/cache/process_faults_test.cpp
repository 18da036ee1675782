// Machines that have no more processes, memory or descriptors: whatever call fails, of the program
// or of its compile helper, the kernel is compiled in the program with one warning that names the
// call, or there is one error that does; nobody else is hurt, nothing is left behind, and the next
// compile works.
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using nvrtc::Pool;
using pl::_;
using test::Folder;

namespace {

constexpr const char* arch = "sm_90a";

/// Another kernel for every number.
Lowered scaled(int by) {
  return pallas_call([=](Ref x, Ref o) { o[_] = x[_] * static_cast<float>(by); },
                     {.name = "scaled", .out_type = {{128}, f32}})
      .lower(ShapeDtype{{128}, f32});
}

/// Somebody else of the same user.
process::Child bystander() {
  return test::forked([] {
    ::alarm(600);
    return ::pause();
  });
}

std::size_t open_descriptors() { return test::descriptors_of(process::Id::self()).size(); }

int count_of(const std::string& text, const std::string& words) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++count;
  return count;
}

constexpr const char* warning = "kernels are compiled in this process";

struct Fault {
  const char* who;
  const char* function;
  int call;
  int error;

  std::string text() const {
    return std::string(who) + " " + function + " " + std::to_string(call) + " " +
           std::to_string(error);
  }
  /// "fork: Cannot allocate memory"
  std::string words() const { return std::string(function) + ": " + std::strerror(error); }
};

/// Runs a hidden test case, with a fake NVRTC, to its good end under the fault.
test::Finished under(const Fault& fault, const std::string& hidden, bool& was_hit) {
  const Folder folder;
  test::Finished child =
      test::run_isolated("HIDDEN " + hidden,
                         {{"PALLADIUM_NVRTC", test::fake_toolchain().library},
                          {"PALLADIUM_CACHE_DIR", folder / "cache"},
                          {"PROCESS_FAULT", fault.text()},
                          {"PROCESS_FAULT_HITS", folder / "hits"},
                          {"TEST_WORDS", fault.words()}},
                         test::binary_dir() + "/tests/fake/libprocess_faults.so");
  INFO(fault.text() << "\n" << child.out << child.err);
  CHECK(child.status == 0);
  was_hit = files::exists(folder / "hits");
  return child;
}

}  // namespace

TEST_CASE("HIDDEN compiles under a fault", "[.]") {
  process::Child other = bystander();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 2; ++i) CHECK_FALSE(scaled(i).compile({.arch = arch}).cubin().empty());
  for (int i = 2; i < 4; ++i)
    CHECK_FALSE(scaled(i).compile_async({.arch = arch}).get().cubin().empty());
  CHECK(open_descriptors() <= before + 1);  // the socket of the helper that waits for more
  CHECK(test::children_of(process::Id::self()).size() == 1);
  CHECK_FALSE(other.wait_now());
}

TEST_CASE("whichever call fails that starts a process, kernels are compiled all the same") {
  const std::vector<Fault> faults = {
      {"program", "socketpair", 1, EMFILE},  {"program", "clone", 1, EAGAIN},
      {"program", "clone", 1, ENOMEM},       {"program", "posix_spawn", 1, EAGAIN},
      {"program", "posix_spawn", 1, EACCES}, {"program", "pthread_create", 1, EAGAIN},
      {"helper", "socketpair", 1, ENFILE},   {"helper", "pipe2", 1, EMFILE},
      {"helper", "fork", 1, EAGAIN},         {"helper", "fork", 1, ENOMEM},
  };
  for (Fault fault : faults) {
    bool was_hit = true;
    for (fault.call = 1; was_hit; ++fault.call) {
      const test::Finished child = under(fault, "compiles under a fault", was_hit);
      CAPTURE(fault.text(), child.err);
      REQUIRE((was_hit || fault.call > 1));
      const bool is_told = was_hit && std::strcmp(fault.function, "pthread_create") != 0;
      CHECK(count_of(child.err, "\n") == is_told);
      CHECK(count_of(child.err, warning) == is_told);
      CHECK(count_of(child.err, fault.words() + "; PALLADIUM_COMPILE_HELPER") == is_told);
    }
  }
}

TEST_CASE("HIDDEN a helper's first try fails", "[.]") {
  process::Child other = bystander();
  Pool pool(test::helper_options(), 1);
  const Pool::Outcome first = pool.compile(test::fake(""), test::fake_toolchain());
  CHECK(first.end == Pool::End::unavailable);
  CHECK_FALSE(first.is_lasting);
  CHECK(first.why == test::helper_options().program + ": " + std::getenv("TEST_WORDS"));
  const process::Id helper = pool.idle_processes().at(0);
  const std::size_t before = test::descriptors_of(helper).size();
  CHECK(test::children_of(helper).empty());
  CHECK(pool.compile(test::fake(""), test::fake_toolchain()).end == Pool::End::result);
  CHECK(pool.idle_processes().at(0) == helper);
  CHECK(test::children_of(helper).size() == 1);
  CHECK(test::descriptors_of(helper).size() == before + 2);  // the worker's socket and its words
  CHECK_FALSE(other.wait_now());
}

TEST_CASE("HIDDEN a helper never gets a process", "[.]") {
  process::Child other = bystander();
  Pool pool(test::helper_options(), 1);
  REQUIRE(pool.compile(test::fake(""), test::fake_toolchain()).end == Pool::End::unavailable);
  const process::Id helper = pool.idle_processes().at(0);
  const std::vector<std::string> before = test::descriptors_of(helper);
  for (int i = 0; i < 30; ++i)
    REQUIRE(pool.compile(test::fake(""), test::fake_toolchain()).end == Pool::End::unavailable);
  CHECK(pool.idle_processes().at(0) == helper);
  CHECK(test::descriptors_of(helper) == before);
  CHECK(test::children_of(helper).empty());
  CHECK_FALSE(other.wait_now());
}

TEST_CASE("a helper that cannot start a process loses nothing and tries again") {
  for (const auto& [function, error] : std::vector<std::pair<const char*, int>>{
           {"socketpair", EMFILE}, {"pipe2", EMFILE}, {"fork", EAGAIN}}) {
    bool was_hit = false;
    under({"helper", function, 1, error}, "a helper's first try fails", was_hit);
    CHECK(was_hit);
    under({"helper", function, 0, error}, "a helper never gets a process", was_hit);
    CHECK(was_hit);
  }
}

namespace {

/// Becomes a user of its own, who may have `most` processes and threads.
bool become_limited_user(uid_t user, rlim_t most) {
  const rlimit limit = {most, most};
  return ::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 &&
         ::setresuid(user, user, user) == 0 && setrlimit(RLIMIT_NPROC, &limit) == 0;
}

/// Eight compiles at once, all of which end well or with words about it; and then another one.
int compile_eight(int first) {
  std::vector<CompileFuture> futures;
  for (int i = 0; i < 8; ++i) futures.push_back(scaled(first + i).compile_async({.arch = arch}));
  for (const CompileFuture& future : futures) {
    try {
      if (future.get().cubin().empty()) return 1;
    } catch (const CudaError& error) {
      if (std::strstr(error.what(), "compile helper") == nullptr) return 2;
    }
  }
  return scaled(first + 8).compile({.arch = arch}).cubin().empty() ? 3 : 0;
}

/// A helper whose worker has died, and which may have no other for a while.
int outlive_a_limit() {
  Pool pool(test::helper_options(), 1);
  const auto compile = [&] { return pool.compile(test::fake(""), test::fake_toolchain()); };
  if (compile().end != Pool::End::result) return 1;
  const process::Id helper = pool.idle_processes().at(0);
  const process::Id worker = test::children_of(helper).at(0);
  if (!worker.signal(SIGKILL) || !test::ends_within(worker, 3000)) return 2;
  while (!test::children_of(helper).empty()) ::usleep(1000);  // until it is buried
  rlimit limit;
  if (::prlimit(helper.number(), RLIMIT_NPROC, nullptr, &limit) != 0) return 3;
  const rlimit none = {0, limit.rlim_max};
  if (::prlimit(helper.number(), RLIMIT_NPROC, &none, nullptr) != 0) return 4;
  const Pool::Outcome refused = compile();
  if (refused.end != Pool::End::unavailable ||
      refused.why.find("fork: Resource temporarily unavailable") == std::string::npos)
    return 5;
  if (::prlimit(helper.number(), RLIMIT_NPROC, &limit, nullptr) != 0) return 6;
  return compile().end == Pool::End::result && pool.idle_processes().at(0) == helper ? 0 : 7;
}

}  // namespace

TEST_CASE("HIDDEN limits of processes", "[.]") {
  constexpr uid_t first_user = 59'100;
  for (int most = 1; most <= 12; ++most) {
    CAPTURE(most);
    const uid_t user = first_user + static_cast<uid_t>(most);
    process::Child other = test::forked([=] {
      if (::setresuid(user, user, user) != 0) return 1;
      ::alarm(600);
      return ::pause();
    });
    const Folder cache;
    REQUIRE(::chown(cache.path().c_str(), user, user) == 0);
    CHECK(test::status_of_fork([&] {
            ::setenv("PALLADIUM_CACHE_DIR", cache.path().c_str(), 1);
            if (!become_limited_user(user, static_cast<rlim_t>(most))) return 99;
            ::alarm(100);
            return compile_eight(100 * most);
          }) == 0);
    CHECK(test::status_of_fork([&] {
            if (!become_limited_user(user, 64)) return 99;
            ::alarm(100);
            return outlive_a_limit();
          }) == 0);
    CHECK_FALSE(other.wait_now());
  }
}

TEST_CASE("eight compiles of a user who may have few processes hurt nobody") {
  if (::geteuid() != 0) SKIP("needs root, to become a user with a limit");
  const std::string helper = test::helper_options().program;
  if (test::status_of_fork([&] {
        return ::setuid(59'100) == 0 && ::access(helper.c_str(), X_OK) == 0 ? 0 : 1;
      }) != 0)
    SKIP("needs a build folder that other users can read");
  const test::Finished child = test::run_isolated(
      "HIDDEN limits of processes",
      {{"PALLADIUM_NVRTC", test::fake_toolchain().library}, {"PALLADIUM_COMPILE_JOBS", "4"}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}
