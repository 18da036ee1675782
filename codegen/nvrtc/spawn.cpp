#include "codegen/nvrtc/spawn.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "codegen/base/environment.hpp"

namespace palladium::nvrtc {
namespace {

constexpr std::size_t stack_bytes = 64 << 10;

class Actions {
 public:
  explicit Actions(int socket) {
    posix_spawn_file_actions_init(&actions_);
    // The socket first: it may be one of the three that are overwritten.
    posix_spawn_file_actions_adddup2(&actions_, socket, spawned_socket);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&actions_, standard, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions_, spawned_socket + 1);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

struct Plan {
  const char* program;
  const posix_spawn_file_actions_t* actions;
  const posix_spawnattr_t* attributes;
  char* const* arguments;
  char* const* environment;
  pid_t process = -1;
  int error = 0;
  const char* call = "posix_spawn";
};

int start_and_leave(void* plan) {
  Plan& p = *static_cast<Plan*>(plan);
  p.error = posix_spawn(&p.process, p.program, p.actions, p.attributes, p.arguments, p.environment);
  return 0;
}

/// By a child in between, which ends at once and makes an orphan of the program. It shares our
/// memory while we stand still (CLONE_VM | CLONE_VFORK), so it runs no handler of ours; and it ends
/// without a signal, so only a wait that asks for such children sees it.
void run_between(Plan& plan, [[maybe_unused]] std::byte* stack_end) {
#ifdef __SANITIZE_THREAD__
  start_and_leave(&plan);  // the sanitizer cannot follow such a child
#else
  const auto between =
      process::Id::of(::clone(start_and_leave, stack_end, CLONE_VM | CLONE_VFORK, &plan));
  if (between)
    process::Child(*between).wait();
  else
    plan.error = errno, plan.call = "clone";
#endif
}

}  // namespace

Spawned spawn(const std::string& program, const std::vector<std::string>& arguments, int socket) {
  std::vector<char*> pointers = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const Actions actions(socket);
  const Attributes attributes;
  const std::vector<char*> variables = environment::pointers();
  Plan plan{program.c_str(), actions.get(), attributes.get(), pointers.data(), variables.data()};
  const auto stack = std::make_unique_for_overwrite<std::byte[]>(stack_bytes);

  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  run_between(plan, stack.get() + stack_bytes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (plan.error != 0) return {.error = plan.error, .call = plan.call};
  return {.process = process::Id::of(plan.process)};
}

}  // namespace palladium::nvrtc
