#include "codegen/nvrtc/pool.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "codegen/base/files.hpp"
#include "codegen/base/log.hpp"

namespace palladium::nvrtc {
namespace {

constexpr std::chrono::milliseconds tick{20};

/// What a process in another folder finds, too; as it is where it cannot be found at all.
std::string absolute(const std::string& path) {
  std::string folder;
  if (path.starts_with('/') || !files::resolve(files::directory_of(path), folder)) return path;
  return folder + "/" + files::name_of(path);
}

wire::Compile message_of(const Request& request, const Toolchain& toolchain) {
  wire::Compile message{toolchain, request};
  message.toolchain.library = absolute(toolchain.library);
  message.toolchain.builtins = absolute(toolchain.builtins);
  return message;
}

}  // namespace

/// The right to one helper: taken from the pool, given back with the helper if it is still good.
class Pool::Lease {
 public:
  Lease(Pool& pool, const Stopped& stopped) : pool_(pool) {
    std::unique_lock lock(pool_.mutex_);
    while (pool_.lent_ >= pool_.jobs_) {
      if (stopped && stopped()) return;
      pool_.returned_.wait_for(lock, tick);
    }
    pool_.idle_.reserve(pool_.idle_.size() + static_cast<std::size_t>(pool_.lent_) + 1);
    ++pool_.lent_;
    is_held_ = true;
    if (pool_.idle_.empty()) return;
    helper_ = std::move(pool_.idle_.back());
    pool_.idle_.pop_back();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (!is_held_) return;
    {
      const std::lock_guard lock(pool_.mutex_);
      --pool_.lent_;
      if (helper_) pool_.idle_.push_back(std::move(helper_));
    }
    pool_.returned_.notify_one();
  }

  bool is_held() const { return is_held_; }
  /// May be none yet.
  std::unique_ptr<Helper>& helper() { return helper_; }

 private:
  Pool& pool_;
  bool is_held_ = false;
  std::unique_ptr<Helper> helper_;
};

Pool::Pool(HelperOptions options, int jobs)
    : options_(std::move(options)), jobs_(std::max(jobs, 1)) {}

Pool::Outcome Pool::compile(const Request& request, const Toolchain& toolchain,
                            const Stopped& stopped) {
  const wire::Compile message = message_of(request, toolchain);
  for (int deaths = 0;;) {
    Lease lease(*this, stopped);
    if (!lease.is_held()) return {End::stopped};
    std::unique_ptr<Helper>& helper = lease.helper();
    const bool is_new = !helper;
    if (is_new) {
      Helper::Started started = Helper::start(options_, stopped);
      if (!started.helper && stopped && stopped()) return {End::stopped};
      if (!started.helper)
        return {End::unavailable, {}, std::move(started.problem), started.is_lasting};
      helper = std::move(started.helper);
    }
    Helper::Answer answer = helper->compile(message, stopped);
    if (answer.end == Helper::End::result) return {End::result, std::move(answer.result)};
    if (answer.end == Helper::End::unable)
      return {End::unavailable, {}, options_.program + ": " + answer.how, false};
    // On every way but these and that of an exception the helper is spent.
    helper.reset();
    if (answer.end == Helper::End::stopped) return {End::stopped};
    if (answer.end == Helper::End::gone) {
      if (!is_new) continue;
      answer.how = "ended before it took the request";  // which a new one has no reason for
    }
    if (++deaths == 2) return {End::died, {}, std::move(answer.how)};
    log::warning("the compile helper " + answer.how + "; the compile is tried once more");
  }
}

void Pool::set_jobs(int jobs) {
  {
    const std::lock_guard lock(mutex_);
    jobs_ = std::max(jobs, 1);
  }
  returned_.notify_all();
}

std::vector<process::Id> Pool::idle_processes() const {
  const std::lock_guard lock(mutex_);
  std::vector<process::Id> processes;
  for (const auto& helper : idle_) processes.push_back(helper->process());
  return processes;
}

}  // namespace palladium::nvrtc
