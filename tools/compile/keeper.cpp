#include "tools/compile/keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "cache/text_digest.hpp"
#include "tools/compile/worker.hpp"

namespace palladium::tools {
namespace {

using nvrtc::wire::Channel;
using nvrtc::wire::Kind;
using nvrtc::wire::Message;
using nvrtc::wire::Received;

// What a dying worker said last; more would fill an error message.
constexpr std::size_t most_words = 4096;

std::string describe(int status) {
  if (WIFEXITED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

}  // namespace

Keeper::Keeper(int socket) : program_(socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  if (::chdir("/") != 0) return;  // else a folder of the user's could not be unmounted
}

int Keeper::run() {
  if (!greet()) return 1;
  serve();
  end_worker();
  return 0;
}

bool Keeper::greet() {
  Message message;
  nvrtc::wire::Open open;
  if (program_.receive(message) != Received::message || message.kind != Kind::open ||
      !nvrtc::wire::decode(message.body, open))
    return false;
  idle_ms_ = static_cast<int>(std::min<std::uint64_t>(open.idle_ms, INT_MAX));
  memory_bytes_ = open.memory_bytes;
  // A kernel without pidfd leaves the end of the socket to tell of the program's end.
  program_process_ = static_cast<int>(::syscall(SYS_pidfd_open, open.process, 0));
  return program_.send(Kind::ready, nvrtc::wire::encode(nvrtc::wire::Ready{cache::text_digest})) &&
         open.digest == cache::text_digest;
}

void Keeper::serve() {
  // What came together with something else is not announced by poll.
  while (take_request()) {
    // A negative descriptor is passed over.
    pollfd events[] = {{program_.socket(), POLLIN, 0},
                       {program_process_, POLLIN, 0},
                       {to_worker_ ? to_worker_->socket() : -1, POLLIN, 0},
                       {worker_says_, POLLIN, 0}};
    const int ready = ::poll(events, 4, is_busy_ ? -1 : idle_ms_);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      program_.send(Kind::bye, "");
      return;
    }
    if (events[1].revents != 0) return;
    if (events[3].revents != 0) take_words();
    if (events[2].revents != 0) take_answer();
  }
}

/// False when there will be no more.
bool Keeper::take_request() {
  Message message;
  const Received received = program_.receive_now(message);
  if (received == Received::nothing) return true;
  // While one is compiled, the program has nothing to say but that it wants no answer.
  if (received != Received::message || message.kind != Kind::compile || is_busy_) return false;
  words_.clear();
  if (worker_ < 0 && !start_worker()) {
    report_death(std::string("cannot start a process: ") + std::strerror(errno));
    return true;
  }
  is_busy_ = true;
  to_worker_->send(message.kind, message.body);  // if it has died meanwhile, its socket says so
  return true;
}

void Keeper::take_answer() {
  Message message;
  const Received received = to_worker_->receive_now(message);
  if (received == Received::nothing) return;
  if (received == Received::message) {
    program_.send(message.kind, message.body);
  } else {
    const std::string how = bury_worker();
    if (is_busy_) report_death(how);
  }
  is_busy_ = false;
}

/// Whether there were any.
bool Keeper::take_words() {
  char bytes[4096];
  const ssize_t count = ::read(worker_says_, bytes, sizeof bytes);
  if (count <= 0) {
    if (count == 0) ::close(std::exchange(worker_says_, -1));
    return false;
  }
  words_.append(bytes, static_cast<std::size_t>(count));
  if (words_.size() > most_words) words_.erase(0, words_.size() - most_words);
  return true;
}

void Keeper::report_death(const std::string& how) {
  program_.send(Kind::died, nvrtc::wire::encode(nvrtc::wire::Died{how, words_}));
}

/// False, with errno, when the machine has nothing left for it.
bool Keeper::start_worker() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return false;
  to_worker_ = std::make_unique<Channel>(sockets[0]);
  Channel from_keeper(sockets[1]);
  int says[2];
  if (::pipe2(says, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  worker_says_ = says[0];
  const pid_t keeper = ::getpid();
  worker_ = ::fork();
  if (worker_ == 0) {
    program_.close();
    to_worker_->close();
    ::dup2(says[1], STDOUT_FILENO);
    ::dup2(says[1], STDERR_FILENO);
    work(from_keeper, keeper, memory_bytes_);
  }
  ::close(says[1]);
  return worker_ >= 0;
}

void Keeper::end_worker() {
  if (worker_ >= 0) bury_worker();
}

/// How the worker ended; it is killed if it has not.
std::string Keeper::bury_worker() {
  int status = 0;
  ::kill(worker_, SIGKILL);
  while (::waitpid(worker_, &status, 0) < 0 && errno == EINTR) continue;
  worker_ = -1;
  to_worker_.reset();
  while (worker_says_ >= 0 && take_words()) continue;
  if (worker_says_ >= 0) ::close(std::exchange(worker_says_, -1));
  return describe(status);
}

}  // namespace palladium::tools
