// Processes by their numbers, which here are never -1 or 0: to kill() and waitpid() those would be
// all processes of the user, and our own group. Nobody else calls these two, or fork().
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace palladium::process {

/// The number of one process.
class Id {
 public:
  /// None for a number that stands for several processes, or for an error.
  static std::optional<Id> of(pid_t number);
  static Id self();

  pid_t number() const { return number_; }
  /// False, with errno, when there is no such process, or it is not ours to signal.
  bool signal(int signal) const;
  /// The same for all processes of the group that it leads.
  bool signal_group(int signal) const;
  bool operator==(const Id&) const = default;

 private:
  explicit Id(pid_t number) : number_(number) {}
  pid_t number_;
};

/// How a child ended. That is unknown where the application ignores SIGCHLD, or waits for children
/// that are not its own.
struct Ending {
  static Ending of_wait_status(int wait_status);

  bool is_known = false;
  int status = 0;  // with which it ended, unless
  int signal = 0;  // killed it

  bool is_good() const { return is_known && status == 0 && signal == 0; }
  /// The status, or minus the signal; -1000 where neither is known.
  int code() const;
  /// "ended with status 4", "was killed by signal 9 (Killed)", "ended"
  std::string words() const;
};

/// A child of this process. Killed and waited for at the end of this object, unless it has been
/// waited for; a child of fork() that gets a copy of this does neither.
class Child {
 public:
  /// Takes over what posix_spawn() or clone() has started.
  explicit Child(Id id) : running_(id) {}
  /// By fork(): runs `body` and ends with what it returns, without handlers of exit(). None, with
  /// errno, where there can be no process.
  static std::optional<Child> fork(const std::function<int()>& body);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  /// While it has not been waited for.
  Id id() const { return running_.value(); }
  Ending wait();
  /// Without waiting: none while it runs.
  std::optional<Ending> wait_now();
  /// Ends it if it runs.
  Ending kill();
  /// From now on it is nobody's business.
  void leave() { running_.reset(); }

 private:
  bool is_ours() const;

  std::optional<Id> running_;
};

}  // namespace palladium::process
