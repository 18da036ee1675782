// What a compile leaves alone: the application's signals, limits, locale, folders, threads,
// descriptors and forks.
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "codegen/base/files.hpp"
#include "palladium/palladium.hpp"
#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using pl::_;
using test::Folder;

namespace {

constexpr const char* arch = "sm_90a";

/// Another kernel for every number.
Lowered scaled(int by) {
  return pallas_call([=](Ref x, Ref o) { o[_] = x[_] * static_cast<float>(by) + exp(x[_]); },
                     {.name = "scaled", .out_type = {{128}, f32}})
      .lower(ShapeDtype{{128}, f32});
}

/// Compiles one kernel after the other in another thread.
class Compiling {
 public:
  explicit Compiling(int first = 0)
      : thread_([this, first] {
          for (int i = first; !stop_; ++i) {
            try {
              if (scaled(i).compile({.arch = arch}).cubin().empty()) ++failures_;
            } catch (const Error&) {
              ++failures_;
            }
            ++done_;
          }
        }) {}
  ~Compiling() { stop(); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int done() const { return done_; }
  int failures() const { return failures_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> done_ = 0, failures_ = 0;
  std::thread thread_;
};

/// All of a process that NVRTC or a library could change.
struct State {
  struct Action {
    void* handler = nullptr;
    int flags = 0;
    bool operator==(const Action&) const = default;
  };
  std::vector<Action> actions;
  std::vector<int> blocked;
  std::vector<rlim_t> limits;
  std::string locale, folder;
  mode_t mask = 0;

  static State now() {
    State state;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction action = {};
      sigaction(signal, nullptr, &action);
      state.actions.push_back({reinterpret_cast<void*>(action.sa_handler), action.sa_flags});
      state.blocked.push_back(sigismember(&mask, signal));
    }
    for (int resource = 0; resource < RLIMIT_NLIMITS; ++resource) {
      rlimit limit = {};
      getrlimit(static_cast<__rlimit_resource>(resource), &limit);
      state.limits.push_back(limit.rlim_cur);
      state.limits.push_back(limit.rlim_max);
    }
    state.locale = setlocale(LC_ALL, nullptr);
    char folder[4096];
    state.folder = getcwd(folder, sizeof folder);
    state.mask = umask(0);
    umask(state.mask);
    return state;
  }
  bool operator==(const State&) const = default;
};

void in_own_process(const std::string& hidden, std::vector<test::Variable> more = {}) {
  test::toolchain();
  const Folder folder;
  more.emplace_back("PALLADIUM_CACHE_DIR", folder.path());
  const test::Finished child = test::run_hidden("HIDDEN " + hidden, more);
  INFO(child.out << child.err);
  CHECK(child.status == 0);
  CHECK(child.err.empty());
}

volatile sig_atomic_t caught = 0;

}  // namespace

TEST_CASE("HIDDEN signals", "[.]") {
  // Like a terminal's, signals go to the whole process group.
  REQUIRE(::setpgid(0, 0) == 0);
  struct sigaction action = {};
  action.sa_handler = [](int) { caught = caught + 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  Compiling compiling;
  while (compiling.done() == 0) std::this_thread::yield();
  std::mt19937 random(1);
  for (const int signal : {SIGTERM, SIGINT}) {
    for (int i = 0; i < 50; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
      const sig_atomic_t before = caught;
      REQUIRE(process::Id::self().signal_group(signal));
      for (int wait = 0; wait < 1000 && caught == before; ++wait)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      CHECK(caught == before + 1);
    }
  }
  compiling.stop();
  CHECK(caught == 100);
  CHECK(compiling.failures() == 0);
}

TEST_CASE("SIGTERM and SIGINT at 50 instants of compiles reach the application's handler") {
  in_own_process("signals");
}

TEST_CASE("HIDDEN state", "[.]") {
  REQUIRE(setlocale(LC_ALL, "C.UTF-8") != nullptr);
  umask(027);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGUSR1, &ignore, nullptr);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);

  const State before = State::now();
  Compiling compiling;
  int samples = 0;
  while (compiling.done() < 3 || samples < 500) {
    REQUIRE(State::now() == before);
    ++samples;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  compiling.stop();
  CHECK(compiling.failures() == 0);
  // In this thread too, and in the background.
  scaled(1000).compile({.arch = arch});
  scaled(1001).compile_async({.arch = arch}).get();
  CHECK(State::now() == before);
}

TEST_CASE(
    "handlers, mask, limits, locale, folder and umask are the application's at every moment") {
  in_own_process("state");
}

TEST_CASE("HIDDEN threads and descriptors", "[.]") {
  const auto threads = [] {
    std::vector<std::string> names;
    REQUIRE(files::list("/proc/self/task", names));
    return names.size();
  };
  const auto inheritable = [] {
    std::vector<std::string> names;
    REQUIRE(files::list("/proc/self/fd", names));
    int count = 0;
    for (const std::string& name : names) {
      const int flags = ::fcntl(std::stoi(name), F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++count;
    }
    return count;
  };
  const std::size_t threads_before = threads();
  const int inheritable_before = inheritable();
  scaled(1).compile({.arch = arch});
  CHECK(threads() == threads_before);
  CHECK(inheritable() == inheritable_before);
  CHECK(test::children_of(process::Id::self()).empty());
  // NVRTC has not been here.
  CHECK(test::mapped_files().find("libnvrtc") == std::string::npos);
  CHECK(test::mapped_files().find("libcuda") == std::string::npos);
}

TEST_CASE("a compile leaves no thread, no child, no descriptor to inherit and no NVRTC") {
  in_own_process("threads and descriptors", {{"PALLADIUM_TARGET", "interpreter"}});
}

namespace {

/// How many of `count` children that are forked while two threads compile do not compile a kernel
/// of their own in time.
int hung_children(int count) {
  Compiling one(0), other(10'000);
  while (one.done() == 0 || other.done() == 0) std::this_thread::yield();
  std::mt19937 random(1);
  int hung = 0;
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5'000));
    const int status = test::status_of_fork([&] {
      ::alarm(100);
      const Lowered kernel = scaled(20'000 + i);
      const bool is_good = !(i % 4 == 0 ? kernel.compile_async({.arch = arch}).get()
                                        : kernel.compile({.arch = arch}))
                                .cubin()
                                .empty();
      return is_good ? 0 : 1;
    });
    if (status != 0) ++hung;
  }
  one.stop();
  other.stop();
  CHECK(one.failures() + other.failures() == 0);
  return hung;
}

}  // namespace

TEST_CASE("HIDDEN 100 forks", "[.]") { CHECK(hung_children(100) == 0); }
TEST_CASE("HIDDEN 6 forks", "[.]") { CHECK(hung_children(6) == 0); }

TEST_CASE("100 children forked during compiles compile kernels of their own") {
  in_own_process("100 forks",
                 {{"PALLADIUM_NVRTC", test::fake_toolchain().library}, {"FAKE_NVRTC", "sleep 4"}});
}

TEST_CASE("children forked during compiles by NVRTC itself compile kernels of their own") {
  in_own_process("6 forks");
}

TEST_CASE("children forked during compiles in the same process compile kernels of their own") {
  in_own_process("6 forks", {{"PALLADIUM_COMPILE", "in-process"}});
}

TEST_CASE("HIDDEN future of the parent", "[.]") {
  const CompileFuture future = scaled(1).compile_async({.arch = arch});
  CHECK(test::status_of_fork([&] {
          ::alarm(120);
          try {
            future.get();
          } catch (const CudaError& error) {
            future.cancel();
            const bool says = std::strstr(error.what(), "it was started before fork()") != nullptr;
            return says && future.wait_for(0) ? 0 : 2;
          }
          return 1;
        }) == 0);
  REQUIRE(files::publish(std::getenv("TEST_GO"), "go"));
  CHECK(future.get().cubin().size() > 4);
}

TEST_CASE("a child that waits for its parent's compile is told so") {
  const Folder folder;
  in_own_process("future of the parent", {{"PALLADIUM_NVRTC", test::fake_toolchain().library},
                                          {"FAKE_NVRTC", "until " + (folder / "go")},
                                          {"TEST_GO", folder / "go"}});
}

TEST_CASE("HIDDEN fork after CUDA", "[.]") {
  const Array x = Array::zeros({128}, f32).to(Device::cuda(0));
  CHECK(test::status_of_fork([&] {
          ::alarm(120);
          // Compiling needs no CUDA.
          if (scaled(1).compile().cubin().empty()) return 3;
          try {
            x.to(Device::cpu());
          } catch (const CudaError& error) {
            return std::strstr(error.what(), "was forked from one that had started CUDA") ? 0 : 2;
          }
          return 1;
        }) == 0);
}

TEST_CASE("a child forked after CUDA was started compiles, and is told that it has no GPU") {
  in_own_process("fork after CUDA",
                 {{"PALLADIUM_LIBCUDA", test::binary_dir() + "/tests/fake/libcuda.so.1"}});
}
