#include "tests/conformance/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "codegen/base/format.hpp"
#include "codegen/base/process.hpp"
#include "palladium/error.hpp"

namespace palladium::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// What children may take to end what they have begun when the time is over.
constexpr double grace_seconds = 10;
// A process that waits for a broken device may not die at all.
constexpr double seconds_to_die = 10;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Child {
  process::Child process;
  int pipe = -1;
  std::vector<int> open;  // in the order of their run
  bool first = true;
  Clock::time_point heard = Clock::now();
  std::string line = {};  // begun
  bool killed = false;
  bool in_time = true;  // killed for its own silence, not because the time for all was over
  double silence = 0;   // when it was killed
  Clock::time_point killed_at = {};
};

Child start(const std::vector<std::string>& command, std::vector<int> numbers) {
  std::vector<std::string> words = command;
  for (const int n : numbers) words.push_back(std::to_string(n));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw InternalError(fmt::format("pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t number = 0;
  const int error =
      ::posix_spawn(&number, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    throw InternalError(fmt::format("cannot start {}: {}", words[0], std::strerror(error)));
  }
  return {.process = process::Child(process::Id::of(number).value()),
          .pipe = ends[0],
          .open = std::move(numbers)};
}

class Supervisor {
 public:
  Supervisor(const std::vector<int>& numbers, const Supervision& how,
             const std::function<void(const json&)>& finished)
      : how_(how), finished_(finished) {
    const auto bunch = static_cast<std::size_t>(how.bunch);
    for (std::size_t i = 0; i < numbers.size(); i += bunch)
      waiting_.emplace_back(
          numbers.begin() + static_cast<std::ptrdiff_t>(i),
          numbers.begin() + static_cast<std::ptrdiff_t>(std::min(i + bunch, numbers.size())));
  }

  void run() {
    while (!waiting_.empty() || !children_.empty()) {
      const bool late = since(begin_) > how_.seconds_in_all;
      if (late) give_up();
      while (!late && !waiting_.empty() && static_cast<int>(children_.size()) < how_.jobs) {
        children_.push_back(start(how_.command, std::move(waiting_.front())));
        waiting_.pop_front();
      }
      listen();
    }
  }

 private:
  void give_up() {
    for (const std::vector<int>& numbers : waiting_)
      for (const int n : numbers)
        finished_({{"number", n}, {"state", "not run"}, {"detail", "the time was over"}});
    waiting_.clear();
  }

  void listen() {
    std::vector<pollfd> polled;
    for (const Child& c : children_) polled.push_back({c.pipe, POLLIN, 0});
    if (polled.empty()) return;
    ::poll(polled.data(), polled.size(), 100);
    for (std::size_t i = children_.size(); i-- > 0;) {
      Child& c = children_[i];
      bool ended = false;
      if (polled[i].revents != 0) ended = !hear(c);
      const double allowed = how_.seconds_per_check + (c.first ? how_.seconds_to_start : 0);
      const bool over = since(begin_) > how_.seconds_in_all + grace_seconds;
      if (!ended && !c.killed && (since(c.heard) > allowed || over)) {
        c.process.id().signal(SIGKILL);
        c.killed = true;
        c.in_time = since(c.heard) > allowed;
        c.silence = since(c.heard);
        c.killed_at = Clock::now();
      }
      if (ended || (c.killed && since(c.killed_at) > seconds_to_die)) bury(i, ended);
    }
  }

  /// Takes what the child has printed; false at its end.
  bool hear(Child& c) {
    char buffer[4096];
    const ssize_t n = ::read(c.pipe, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    c.line.append(buffer, static_cast<std::size_t>(n));
    for (std::size_t end; (end = c.line.find('\n')) != std::string::npos;) {
      take(c, c.line.substr(0, end));
      c.line.erase(0, end + 1);
    }
    return true;
  }

  void take(Child& c, const std::string& line) {
    json record = json::parse(line, nullptr, false);
    if (!record.is_object()) return;  // somebody else's words
    if (record.contains("ready")) {
      c.first = false;
      c.heard = Clock::now();
    }
    if (!record.contains("number")) return;
    const int number = record["number"];
    const auto at = std::find(c.open.begin(), c.open.end(), number);
    if (at == c.open.end()) return;
    c.open.erase(at);
    c.first = false;
    c.heard = Clock::now();
    finished_(record);
  }

  /// The first of its open checks is the one that ended it; the others start anew.
  void bury(std::size_t i, bool ended) {
    Child c = std::move(children_[i]);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    ::close(c.pipe);
    process::Ending ending;
    if (ended)
      ending = c.process.wait();
    else
      c.process.leave();
    if (c.open.empty()) return;
    // After a CUDA error a child ends by itself, having told; nothing is wrong with the rest.
    const bool told = !c.killed && ending.code() == 3;
    if (!told && !c.in_time) {
      finished_({{"number", c.open.front()},
                 {"state", "not run"},
                 {"detail", "the time was over while it ran"}});
      c.open.erase(c.open.begin());
    } else if (!told) {
      json record = {{"number", c.open.front()}, {"state", c.killed ? "hung" : "crashed"}};
      record["detail"] = c.killed             ? fmt::format("nothing heard for {:.0f} s", c.silence)
                         : ending.signal != 0 ? fmt::format("signal {} ({})", ending.signal,
                                                            ::strsignal(ending.signal))
                                              : fmt::format("exit status {}", ending.status);
      finished_(record);
      c.open.erase(c.open.begin());
    }
    if (!c.open.empty()) waiting_.push_front(std::move(c.open));
  }

  const Supervision& how_;
  const std::function<void(const json&)>& finished_;
  const Clock::time_point begin_ = Clock::now();
  std::deque<std::vector<int>> waiting_;
  std::vector<Child> children_;
};

}  // namespace

void supervise(const std::vector<int>& numbers, const Supervision& how,
               const std::function<void(const json&)>& finished) {
  Supervisor(numbers, how, finished).run();
}

}  // namespace palladium::conformance
