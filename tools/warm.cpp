// `palladium warm`: shipped and recorded kernels into the cache, on any machine, before somebody
// waits for them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>

#include "palladium/cache.hpp"
#include "tools/commands.hpp"
#include "tools/kernels.hpp"
#include "tools/output.hpp"

namespace palladium::tools {
namespace {

struct Outcome {
  const char* result;  // "compiled", "hit", "failed"
  std::string key;
  double milliseconds = 0;
  std::string error;
};

/// A kernel that is being compiled, or why it is not.
struct Job {
  const NamedKernel* named;
  std::string arch;
  std::optional<CompileFuture> future = {};
  std::string error = {};
};

Job start(const NamedKernel& named, const std::string& arch) {
  Job job{&named, arch};
  try {
    job.future = named.kernel.compile_async({.arch = checked_arch(arch)});
  } catch (const Error& error) {
    job.error = error.what();
  }
  return job;
}

/// `seen` holds the keys of those before: what is asked for twice is compiled once.
Outcome finish(const Job& job, std::set<std::string>& seen) {
  if (!job.future) return {"failed", "", 0, job.error};
  try {
    const Compiled compiled = job.future->get();
    const bool is_hit = !seen.insert(compiled.key()).second || compiled.from_cache();
    const Compiled::Times& times = compiled.times();
    Outcome outcome{is_hit ? "hit" : "compiled", compiled.key(),
                    times.trace + times.find + times.lower + times.nvrtc, ""};
    if (cache_entries(compiled.key()).empty())
      outcome = {"failed", outcome.key, outcome.milliseconds, "compiled, but not kept"};
    return outcome;
  } catch (const Error& error) {
    return {"failed", "", 0, error.what()};
  }
}

Kernels find(const std::vector<std::string>& names, bool any_size) {
  Kernels all;
  for (const std::string& name : names) {
    Kernels found = kernels_to_warm(name, any_size);
    std::ranges::move(found.kernels, std::back_inserter(all.kernels));
    std::ranges::move(found.damages, std::back_inserter(all.damages));
  }
  return all;
}

/// Those asked for, else those that it was recorded for, else this machine's.
std::vector<std::string> archs_of(const NamedKernel& named, const Warm& asked) {
  if (!asked.archs.empty()) return asked.archs;
  return named.archs.empty() ? std::vector{default_arch()} : named.archs;
}

/// Kernels of manifests: those of calls, and those of other sizes that calls can have.
struct Classes {
  std::ptrdiff_t reached = 0, reachable = 0;
};
Classes classes_of(const Kernels& all) {
  Classes found;
  for (const NamedKernel& named : all.kernels)
    if (names_manifest(named.name)) ++(named.reached ? found.reached : found.reachable);
  return found;
}

}  // namespace

int warm(const Warm& asked) {
  const Kernels found = find(asked.kernels, asked.any_size);
  if (asked.jobs > 0) set_compile_jobs(asked.jobs);
  if (asked.expect) ::setenv("PALLADIUM_EXPECT", "error", 1);
  std::vector<Job> jobs;
  for (const NamedKernel& named : found.kernels)
    for (const std::string& arch : archs_of(named, asked)) jobs.push_back(start(named, arch));

  const std::size_t all = jobs.size() + found.damages.size();
  std::size_t done = 0, compiled = 0, hits = 0, failed = 0;
  Json kernels = Json::array();
  const auto report = [&](const std::string& name, const std::string& kernel,
                          const std::string& arch, const Outcome& o) {
    const std::string_view result = o.result;
    ++(result == "compiled" ? compiled : result == "hit" ? hits : failed);
    note(fmt::format("[{}/{}] {}{}: {}", ++done, all, name, arch.empty() ? "" : " " + arch,
                     o.error.empty() ? fmt::format("{}, {:.1f} ms", o.result, o.milliseconds)
                                     : "failed: " + o.error));
    kernels.push_back({{"name", name},
                       {"kernel", kernel},
                       {"arch", arch},
                       {"key", o.key},
                       {"result", o.result},
                       {"milliseconds", o.milliseconds},
                       {"error", o.error}});
  };
  for (const Kernels::Damage& d : found.damages) report(d.at, "", "", {"failed", "", 0, d.what});
  std::set<std::string> seen;
  for (const Job& job : jobs)
    report(job.named->name, job.named->kernel.name(), job.arch, finish(job, seen));
  const Classes classes = classes_of(found);
  if (asked.json)
    print(Json{{"compiled", compiled},
               {"hits", hits},
               {"failed", failed},
               {"reached", classes.reached},
               {"reachable", classes.reachable},
               {"cache", cache_root()},
               {"kernels", std::move(kernels)}});
  else
    print(fmt::format("{} compiled, {} hits, {} failed; in {}", compiled, hits, failed,
                      cache_root()));
  if (!asked.json && classes.reached + classes.reachable > 0)
    print(fmt::format("{} {} called, {} can be by arrays of other sizes", classes.reached,
                      classes.reached == 1 ? "kernel was" : "kernels were", classes.reachable));
  if (failed == 0) return 0;
  complain(fmt::format("{} of {} kernels failed", failed, all));
  return 1;
}

}  // namespace palladium::tools
