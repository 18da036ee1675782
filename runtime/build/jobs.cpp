#include "runtime/build/jobs.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "codegen/base/forking.hpp"
#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/build/compiler.hpp"

namespace palladium::runtime {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Time = SteadyClock::time_point;
using Stopped = nvrtc::Pool::Stopped;

// A thread without work ends when an idle helper does.
constexpr std::chrono::seconds idle_time{10};

/// None for what is further away than a clock counts.
std::optional<Time> after(double seconds) {
  constexpr double century = 3e9;
  if (!(seconds < century)) return std::nullopt;
  return SteadyClock::now() +
         std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                const std::optional<Time>& until) {
  if (until)
    changed.wait_until(lock, *until);
  else
    changed.wait(lock);
}

}  // namespace

/// That somebody wants a job done.
struct Wish {
  double deadline = 0;        // seconds, as asked for
  std::optional<Time> until;  // the same as a moment
  bool is_cancelled = false;

  bool is_late() const { return until && *until <= SteadyClock::now(); }
  bool is_over() const { return is_cancelled || is_late(); }
};

struct Job {
  Job(const JobName& n, Work w) : name(n), work(std::move(w)) {}

  const JobName name;
  Work work;  // until it is done
  std::vector<std::shared_ptr<Wish>> wishes = {};
  bool is_in_background = false;
  bool is_given_up = false;
  bool is_done = false;
  std::shared_ptr<const Program> program = nullptr;
  std::exception_ptr error = nullptr;  // without program or error it was given up
  std::condition_variable changed = {};
};

/// The jobs of this process. One mutex guards them all: whatever takes time happens outside of it.
/// It is taken outside of forking::Sections only, since the child of a fork() has its own.
struct Jobs {
  std::mutex mutex;
  std::map<std::pair<cache::Key, Lookup>, std::shared_ptr<Job>> open;
  std::deque<std::shared_ptr<Job>> queue;  // those of the open ones that nobody is at
  std::condition_variable has_work;
  std::condition_variable thread_ended;
  int threads = 0;
  int idle = 0;
  bool is_closing = false;

  /// Adds a wish to the open job of that name; `is_new` says that it has been made for it.
  std::shared_ptr<Job> want(const JobName& name, const Work& work, std::shared_ptr<Wish> wish,
                            bool& is_new) {
    std::shared_ptr<Job>& job = open[{name.key, name.lookup}];
    is_new = !job;
    // Only what is whole is there for others to wait for.
    std::shared_ptr<Job> wanted = is_new ? std::make_shared<Job>(name, work) : job;
    wanted->wishes.push_back(std::move(wish));
    return job = std::move(wanted);
  }

  bool take_from_queue(const std::shared_ptr<Job>& job) { return std::erase(queue, job) != 0; }

  void close(const std::shared_ptr<Job>& job) {
    const auto found = open.find({job->name.key, job->name.lookup});
    if (found != open.end() && found->second == job) open.erase(found);
  }

  /// Whether nobody wants the job any more; then it ends, and the next to ask has a new one.
  bool give_up(const std::shared_ptr<Job>& job) {
    if (job->is_given_up) return true;
    const bool must_end = is_closing && job->is_in_background;
    if (!must_end && !std::ranges::all_of(job->wishes, &Wish::is_over)) return false;
    job->is_given_up = true;
    close(job);
    take_from_queue(job);
    return true;
  }

  void run(const std::shared_ptr<Job>& job) {
    std::shared_ptr<const Program> program;
    std::exception_ptr error;
    const Stopped stopped = [&] {
      const std::lock_guard lock(mutex);
      return give_up(job);
    };
    try {
      if (!stopped()) program = job->work(stopped);
    } catch (...) {
      error = std::current_exception();
    }
    const Work finished = std::move(job->work);  // and what it holds, outside of the lock
    const std::lock_guard lock(mutex);
    close(job);
    job->program = std::move(program);
    job->error = std::move(error);
    job->is_done = true;
    job->changed.notify_all();
  }

  /// A background thread.
  void serve() {
    std::unique_lock lock(mutex);
    while (!is_closing) {
      if (queue.empty()) {
        ++idle;
        const bool has_more =
            has_work.wait_for(lock, idle_time, [&] { return is_closing || !queue.empty(); });
        --idle;
        if (!has_more) break;
        continue;
      }
      const std::shared_ptr<Job> job = std::move(queue.front());
      queue.pop_front();
      job->is_in_background = true;
      lock.unlock();
      run(job);
      lock.lock();
    }
    --threads;
    thread_ended.notify_all();
  }

  /// False when this process can have no thread.
  bool start_thread() {
    // Signals are the application's: its handlers run in its threads. Faults are where they happen.
    sigset_t all, before;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool has_started = true;
    try {
      std::thread([this] { serve(); }).detach();
      ++threads;
    } catch (const std::exception&) {  // no thread, or no memory to make one
      has_started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_started;
  }

  /// False when there is none and none can be had.
  bool hand_to_thread(const std::shared_ptr<Job>& job, int most_threads) {
    if (is_closing) return false;
    try {
      queue.push_back(job);
    } catch (const std::bad_alloc&) {
      return false;
    }
    const bool is_short = idle < static_cast<int>(queue.size()) && threads < most_threads;
    if (is_short && !start_thread() && threads == 0) return !take_from_queue(job);
    has_work.notify_one();
    return true;
  }

  /// At the end of the process: ends what is under way.
  void shut_down() {
    std::unique_lock lock(mutex);
    is_closing = true;
    for (const std::shared_ptr<Job>& job : std::exchange(queue, {})) {
      close(job);
      job->is_done = true;
      job->changed.notify_all();
    }
    has_work.notify_all();
    thread_ended.wait(lock, [&] { return threads == 0; });
  }
};

namespace {

// Never destroyed: a child of fork() leaves what was its parent's as it is.
constinit std::atomic<Jobs*> current_jobs = nullptr;
const forking::Registration jobs_registration({.in_child = [] { current_jobs.store(nullptr); }});

Jobs& jobs() {
  if (Jobs* known = current_jobs.load(std::memory_order_acquire)) return *known;
  auto* made = new Jobs;
  Jobs* expected = nullptr;
  if (current_jobs.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *expected;
}

/// Sees to it that no thread of ours outlives what it uses.
void prepare_threads() {
  struct AtExit {
    ~AtExit() {
      if (Jobs* known = current_jobs.load(std::memory_order_acquire)) known->shut_down();
    }
  };
  const forking::Section section;
  nvrtc::toolchain();  // is made before and so ends after
  static const AtExit at_exit;
}

[[noreturn]] void refuse(const JobName& name, const std::string& why) {
  throw CudaError("compiling '" + name.kernel + "' for " + name.arch + " " + why);
}

std::shared_ptr<const Program> result_of(const Job& job) {
  if (job.error) std::rethrow_exception(job.error);
  if (!job.program) refuse(job.name, "ended with the process");
  return job.program;
}

}  // namespace

std::shared_ptr<const Program> do_job(const JobName& name, const Work& work) {
  const forking::Outside outside;
  Jobs& all = jobs();
  std::unique_lock lock(all.mutex);
  bool is_ours = false;
  const std::shared_ptr<Job> job = all.want(name, work, std::make_shared<Wish>(), is_ours);
  // One that only waits for a thread has found it.
  if (is_ours || all.take_from_queue(job)) {
    lock.unlock();
    all.run(job);
    lock.lock();
  }
  job->changed.wait(lock, [&] { return job->is_done; });
  return result_of(*job);
}

Claim start_job(const JobName& name, Work work, double deadline) {
  const forking::Outside outside;
  Jobs& all = jobs();
  prepare_threads();
  const int most_threads = compile_jobs();
  auto wish = std::make_shared<Wish>();
  wish->deadline = deadline;
  if (deadline > 0) wish->until = after(deadline);

  std::unique_lock lock(all.mutex);
  bool is_new = false;
  std::shared_ptr<Job> job = all.want(name, work, wish, is_new);
  if (is_new && !all.hand_to_thread(job, most_threads)) {
    lock.unlock();
    all.run(job);
  }
  return Claim(all, std::move(job), std::move(wish));
}

Claim::Claim(Jobs& jobs, std::shared_ptr<Job> job, std::shared_ptr<Wish> wish)
    : jobs_(&jobs), job_(std::move(job)), wish_(std::move(wish)) {}

std::shared_ptr<const Program> Claim::wait() const {
  if (!is_of_this_process())
    refuse(job_->name, "is the parent's business: it was started before fork()");
  const forking::Outside outside;
  std::unique_lock lock(jobs_->mutex);
  while (!job_->is_done && !wish_->is_over()) wait_until(job_->changed, lock, wish_->until);
  if (!job_->is_done) jobs_->give_up(job_);
  if (wish_->is_cancelled) refuse(job_->name, "was cancelled");
  if (!job_->is_done || (wish_->is_late() && !job_->program && !job_->error))
    refuse(job_->name, fmt::format("took longer than its deadline of {} s", wish_->deadline));
  return result_of(*job_);
}

bool Claim::is_of_this_process() const {
  return jobs_ == current_jobs.load(std::memory_order_acquire);
}

bool Claim::wait_for(double seconds) const {
  if (!is_of_this_process()) return true;
  const forking::Outside outside;
  const std::optional<Time> until = after(seconds);
  std::unique_lock lock(jobs_->mutex);
  const auto is_settled = [&] { return job_->is_done || wish_->is_over(); };
  while (!is_settled() && !(until && *until <= SteadyClock::now()))
    wait_until(job_->changed, lock,
               until && wish_->until ? std::min(*until, *wish_->until)
               : until               ? until
                                     : wish_->until);
  return is_settled();
}

void Claim::cancel() const {
  if (!is_of_this_process()) return;
  const forking::Outside outside;
  const std::lock_guard lock(jobs_->mutex);
  if (job_->is_done) return;
  wish_->is_cancelled = true;
  jobs_->give_up(job_);
  job_->changed.notify_all();
}

}  // namespace palladium::runtime
