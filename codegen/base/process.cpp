#include "codegen/base/process.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace palladium::process {
namespace {

constexpr int init = 1;  // whose group nobody means: as a negative number it is everybody

/// waitpid() for every kind of child, those that end without a signal too.
pid_t wait_for(Id id, int& status, int options) {
  while (true) {
    const pid_t found = ::waitpid(id.number(), &status, options | __WALL);
    if (found >= 0 || errno != EINTR) return found;
  }
}

int end_of(const std::function<int()>& body) noexcept { return body(); }

}  // namespace

std::optional<Id> Id::of(pid_t number) {
  return number > 0 ? std::optional(Id(number)) : std::nullopt;
}

Id Id::self() { return Id(::getpid()); }

bool Id::signal(int signal) const { return ::kill(number_, signal) == 0; }

bool Id::signal_group(int signal) const {
  errno = EPERM;
  return number_ > init && ::killpg(number_, signal) == 0;
}

Ending Ending::of_wait_status(int wait_status) {
  if (WIFEXITED(wait_status)) return {.is_known = true, .status = WEXITSTATUS(wait_status)};
  return {.is_known = true, .signal = WTERMSIG(wait_status)};
}

int Ending::code() const {
  constexpr int unknown = -1000;
  return !is_known ? unknown : signal != 0 ? -signal : status;
}

std::string Ending::words() const {
  if (!is_known) return "ended";
  if (signal == 0) return "ended with status " + std::to_string(status);
  return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

std::optional<Child> Child::fork(const std::function<int()>& body) {
  const pid_t number = ::fork();
  if (number == 0) ::_exit(end_of(body));
  const std::optional<Id> id = Id::of(number);
  return id ? std::optional<Child>(std::in_place, *id) : std::nullopt;
}

Child::Child(Child&& other) noexcept : running_(std::exchange(other.running_, std::nullopt)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(running_, other.running_);
  return *this;
}

Child::~Child() { kill(); }

Ending Child::wait() {
  if (!running_) return {};
  int status = 0;
  const bool is_known = wait_for(*running_, status, 0) > 0;
  running_.reset();
  return is_known ? Ending::of_wait_status(status) : Ending();
}

std::optional<Ending> Child::wait_now() {
  if (!running_) return Ending();
  int status = 0;
  const pid_t found = wait_for(*running_, status, WNOHANG);
  if (found == 0) return std::nullopt;
  running_.reset();
  return found > 0 ? Ending::of_wait_status(status) : Ending();
}

Ending Child::kill() {
  // A number that nobody has waited for is nobody else's; any other may be by now.
  if (running_ && is_ours()) running_->signal(SIGKILL);
  return wait();
}

bool Child::is_ours() const {
  siginfo_t ignored;
  return ::waitid(P_PID, static_cast<id_t>(running_->number()), &ignored,
                  WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

}  // namespace palladium::process
