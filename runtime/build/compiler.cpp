#include "runtime/build/compiler.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include "cache/text_digest.hpp"
#include "codegen/base/environment.hpp"
#include "codegen/base/forking.hpp"
#include "codegen/base/log.hpp"
#include "codegen/nvrtc/find_helper.hpp"
#include "palladium/error.hpp"

namespace palladium::runtime {
namespace {

using environment::Variable;
using nvrtc::Pool;

constexpr int most_jobs = 1024;
std::atomic<int> chosen_jobs = 0;

bool in_this_process() { return environment::checked(Variable::compile) == "in-process"; }

nvrtc::HelperOptions helper_options(std::string program) {
  nvrtc::HelperOptions options{.program = std::move(program), .digest = cache::text_digest};
  if (const auto mib = environment::number(Variable::compile_memory))
    options.memory_bytes = *mib << 20;
  return options;
}

/// The helpers of this process. A child of fork() gets its own.
struct Helpers {
  explicit Helpers(nvrtc::HelperPath found)
      : problem(std::move(found.problem)),
        is_unusable(!problem.empty()),
        pool(helper_options(std::move(found.path)), compile_jobs()) {}

  const std::string problem;
  std::atomic<bool> is_unusable;  // for good
  Pool pool;
};

constinit std::atomic<Helpers*> current_helpers = nullptr;
const forking::Registration helpers_registration({.in_child = [] {
  current_helpers.store(nullptr);
}});

Helpers& helpers() {
  if (Helpers* known = current_helpers.load(std::memory_order_acquire)) return *known;
  static constinit std::mutex mutex;
  const forking::Section section;
  const std::lock_guard lock(mutex);
  if (Helpers* known = current_helpers.load(std::memory_order_acquire)) return *known;
  Helpers* made = new Helpers(nvrtc::find_helper());
  current_helpers.store(made, std::memory_order_release);
  return *made;
}

void warn_once(const std::string& problem) {
  static std::atomic<bool> has_warned = false;
  if (has_warned.exchange(true)) return;
  log::warning(
      "kernels are compiled in this process, where NVRTC takes SIGINT and SIGTERM for "
      "itself meanwhile, because no compile helper can be started: " +
      problem + "; PALLADIUM_COMPILE_HELPER names it, PALLADIUM_COMPILE=in-process does without");
}

/// A child forked while NVRTC is at work would hang in its own next compile: forks wait.
Pool::Outcome run_here(const nvrtc::Request& request, const nvrtc::Toolchain& toolchain) {
  const forking::Section section;
  return {.end = Pool::End::result, .result = nvrtc::compile(request, toolchain)};
}

}  // namespace

Pool::Outcome run_nvrtc(const nvrtc::Request& request, const nvrtc::Toolchain& toolchain,
                        const Pool::Stopped& stopped) {
  if (in_this_process()) return run_here(request, toolchain);
  Helpers& here = helpers();
  std::string problem = here.problem;
  if (!here.is_unusable) {
    const forking::Outside outside;
    Pool::Outcome outcome = here.pool.compile(request, toolchain, stopped);
    if (outcome.end != Pool::End::unavailable) return outcome;
    if (outcome.is_lasting) here.is_unusable = true;
    problem = std::move(outcome.why);
  }
  warn_once(problem);
  return run_here(request, toolchain);
}

HelperCheck check_helper() {
  const nvrtc::HelperPath found = nvrtc::find_helper();
  if (!found.problem.empty()) return {"", found.problem};
  return {found.path, nvrtc::Helper::start(helper_options(found.path), {}).problem};
}

int compile_jobs() {
  if (const int chosen = chosen_jobs.load(std::memory_order_relaxed)) return chosen;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto asked = environment::number(Variable::compile_jobs);
  return asked ? static_cast<int>(*asked) : cores;
}

void choose_compile_jobs(int jobs) {
  if (jobs < 1 || jobs > most_jobs)
    throw CompileError("set_compile_jobs: expected a number from 1 to " +
                       std::to_string(most_jobs) + ", got " + std::to_string(jobs));
  chosen_jobs.store(jobs, std::memory_order_relaxed);
  if (Helpers* known = current_helpers.load(std::memory_order_acquire)) known->pool.set_jobs(jobs);
}

}  // namespace palladium::runtime
