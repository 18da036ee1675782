#include "tools/compile/keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <string>
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

/// Reading end and writing end of a pipe.
struct Pipe {
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { close(ends[0]), close(ends[1]); }
  static void close(int& end) {
    if (end >= 0) ::close(std::exchange(end, -1));
  }

  int ends[2] = {-1, -1};
};

std::string problem_of(const char* call) { return std::string(call) + ": " + std::strerror(errno); }

}  // namespace

/// The process that compiles, and how to talk to it. The members end in the opposite order: the
/// process before what it is connected with.
struct Keeper::Worker {
  Worker(int socket) : channel(socket) {}

  Channel channel;
  Pipe says;  // its stdout and stderr
  std::optional<process::Child> process = {};
};

Keeper::Keeper(int socket) : program_(socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  if (::chdir("/") != 0) return;  // else a folder of the user's could not be unmounted
}

Keeper::~Keeper() = default;

int Keeper::run() {
  if (!greet()) return 1;
  serve();
  worker_.reset();
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
                       {worker_ ? worker_->channel.socket() : -1, POLLIN, 0},
                       {worker_ ? worker_->says.ends[0] : -1, POLLIN, 0}};
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
  if (!worker_) {
    const std::string problem = start_worker();
    if (!problem.empty())
      return program_.send(Kind::unable, nvrtc::wire::encode(nvrtc::wire::Unable{problem}));
  }
  is_busy_ = true;
  worker_->channel.send(message.kind,
                        message.body);  // if it has died meanwhile, its socket says so
  return true;
}

void Keeper::take_answer() {
  Message message;
  const Received received = worker_->channel.receive_now(message);
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
  int& from_worker = worker_->says.ends[0];
  if (from_worker < 0) return false;
  const ssize_t count = ::read(from_worker, bytes, sizeof bytes);
  if (count <= 0) {
    if (count == 0) Pipe::close(from_worker);
    return false;
  }
  words_.append(bytes, static_cast<std::size_t>(count));
  if (words_.size() > most_words) words_.erase(0, words_.size() - most_words);
  return true;
}

void Keeper::report_death(const std::string& how) {
  program_.send(Kind::died, nvrtc::wire::encode(nvrtc::wire::Died{how, words_}));
}

/// What keeps it from starting, or "". Then there is nothing left of it, and the next request is
/// another try.
std::string Keeper::start_worker() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return problem_of("socketpair");
  Channel from_keeper(sockets[1]);
  auto worker = std::make_unique<Worker>(sockets[0]);
  Pipe& says = worker->says;
  if (::pipe2(says.ends, O_CLOEXEC | O_NONBLOCK) != 0) return problem_of("pipe2");
  const pid_t keeper = ::getpid();
  worker->process = process::Child::fork([&]() -> int {
    program_.close();
    worker->channel.close();
    ::dup2(says.ends[1], STDOUT_FILENO);
    ::dup2(says.ends[1], STDERR_FILENO);
    work(from_keeper, keeper, memory_bytes_);
  });
  if (!worker->process) return problem_of("fork");
  Pipe::close(says.ends[1]);
  worker_ = std::move(worker);
  return "";
}

/// How the worker ended; it is killed if it has not.
std::string Keeper::bury_worker() {
  const process::Ending ending = worker_->process->kill();
  while (take_words()) continue;
  worker_.reset();
  return ending.words();
}

}  // namespace palladium::tools
