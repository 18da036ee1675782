// What it costs to compile in helper processes, beside NVRTC in the program itself; and what a
// second core brings.
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/timing.hpp"
#include "cache/text_digest.hpp"
#include "codegen/base/process.hpp"
#include "codegen/nvrtc/find_helper.hpp"
#include "codegen/nvrtc/pool.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"
#include "runtime/build/program.hpp"

using namespace palladium;
using pl::_;

extern char** environ;

namespace {

constexpr const char* arch = "sm_90a";

double milliseconds(const auto& action) {
  return 1e3 * benchmark::seconds_of(benchmark::wall_seconds, action);
}

/// The text of softmax over `columns` columns, which each differ a little.
nvrtc::Request softmax(int columns) {
  const auto kernel = ops::softmax().lower(ShapeDtype{{dim("m"), columns}, f32});
  return {.source = runtime::full_text(kernel.cuda_source({.arch = arch})), .arch = arch};
}

nvrtc::Pool new_pool() {
  return nvrtc::Pool({.program = nvrtc::find_helper().path, .digest = cache::text_digest}, 1);
}

void compile(const nvrtc::Request& request, nvrtc::Pool* pool) {
  const nvrtc::Toolchain& by = *nvrtc::toolchain().found;
  const bool is_good = pool ? pool->compile(request, by).result.ok : nvrtc::compile(request, by).ok;
  if (!is_good) std::exit(1);
}

/// In a process of its own: prints the milliseconds of its first compile.
int first_compile(bool in_helper) {
  const nvrtc::Request request = softmax(1000);
  nvrtc::toolchain();
  auto pool = new_pool();
  std::printf("%f\n", milliseconds([&] { compile(request, in_helper ? &pool : nullptr); }));
  return 0;
}

double run_first(const char* program, const char* where) {
  int out[2];
  if (::pipe(out) != 0) std::exit(1);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::string mode = where;
  char* arguments[] = {const_cast<char*>(program), mode.data(), nullptr};
  pid_t child;
  if (posix_spawn(&child, program, &actions, nullptr, arguments, environ) != 0) std::exit(1);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  char text[64] = {};
  if (::read(out[0], text, sizeof text - 1) <= 0) std::exit(1);
  ::close(out[0]);
  process::Child(process::Id::of(child).value()).wait();
  return std::atof(text);
}

/// The time when nothing else wanted the machine, for two things that take turns.
struct Pair {
  double here, there;
};
Pair best_of(int runs, const auto& here, const auto& there) {
  std::vector<double> heres, theres;
  for (int i = 0; i < runs; ++i) {
    heres.push_back(here(i));
    theres.push_back(there(i));
  }
  return {*std::ranges::min_element(heres), *std::ranges::min_element(theres)};
}

/// What does not depend on how long NVRTC takes, nor much on how busy the machine is.
void report_way() {
  const nvrtc::HelperOptions options{.program = nvrtc::find_helper().path,
                                     .digest = cache::text_digest};
  std::vector<double> starts, ways;
  for (int i = 0; i < 31; ++i)
    starts.push_back(milliseconds([&] {
      if (!nvrtc::Helper::start(options, {}).helper) std::exit(1);
    }));
  nvrtc::Pool pool = new_pool();
  nvrtc::Request request = softmax(1000);
  request.arch = "sm_0";
  for (int i = 0; i < 101; ++i)
    ways.push_back(milliseconds([&] {
      try {
        pool.compile(request, *nvrtc::toolchain().found);
        std::exit(1);
      } catch (const CompileError&) {
        // NVRTC's list of architectures has travelled back.
      }
    }));
  std::printf("%-46s %8.2f ms\n", "start of a helper, until it is ready",
              *std::ranges::min_element(starts));
  std::printf("%-46s %8.2f ms       (a request of %zu KB that is refused)\n",
              "the way to a helper and back", *std::ranges::min_element(ways),
              request.source.size() >> 10);
}

/// What a later compile takes beyond what NVRTC takes, wherever it runs: the two are of one
/// compile, so that nothing else on the machine is between them.
void report_later() {
  nvrtc::Pool pool = new_pool();
  compile(softmax(999), &pool);
  std::vector<double> more;
  double in_nvrtc = 1e30;
  for (int i = 0; i < 21; ++i) {
    const nvrtc::Request request = softmax(1000 + i);
    nvrtc::Pool::Outcome outcome;
    const double all =
        milliseconds([&] { outcome = pool.compile(request, *nvrtc::toolchain().found); });
    if (!outcome.result.ok) std::exit(1);
    more.push_back(all - outcome.result.milliseconds);
    in_nvrtc = std::min(in_nvrtc, outcome.result.milliseconds);
  }
  std::ranges::sort(more);
  std::printf("%-46s %8.2f ms more  target %-10s (median; least %.2f ms; NVRTC itself %.1f ms)\n",
              "a later compile (softmax)", more[more.size() / 2], "<= 3 ms", more.front(),
              in_nvrtc);
}

/// A folder for a cache, which is gone afterwards; in the machine's memory or on its disk.
class Folder {
 public:
  explicit Folder(std::string parent) : path_(std::move(parent) + "/palladium-benchmark-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::exit(1);
    ::setenv("PALLADIUM_CACHE_DIR", path_.c_str(), 1);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

 private:
  std::string path_;
};

/// From cancel() until who waits has been told.
void report_cancel() {
  const Folder folder(P_tmpdir);
  double most = 0;
  for (int i = 0; i < 10; ++i) {
    const CompileFuture future = ops::softmax()
                                     .lower(ShapeDtype{{dim("m"), 100'000 + 4 * i}, f32})
                                     .compile_async({.arch = arch});
    (void)future.wait_for(0.02);
    most = std::max(most, milliseconds([&] {
                      future.cancel();
                      try {
                        future.get();
                        std::exit(1);
                      } catch (const CudaError&) {
                        // It was cancelled.
                      }
                    }));
  }
  std::printf("%-46s %8.2f ms       target %-10s (the longest of 10)\n",
              "cancel a compile that runs", most, "< 50 ms");
}

void report(const char* what, const Pair& pair, const char* target) {
  std::printf("%-46s %8.2f ms more  target %-10s (in a helper %.1f ms, in the program %.1f ms)\n",
              what, pair.there - pair.here, target, pair.there, pair.here);
}

/// x * factor for another factor each time: the cheapest kernel there is.
Kernel scale(int factor) {
  return pallas_call([=](Ref x, Ref o) { o[_] = x[_] * static_cast<float>(factor); },
                     {.name = "scale", .out_type = {{128}, f32}});
}

/// Compiles `count` kernels that no cache has, with so many helpers that run already.
double warm(int count, int jobs, int round) {
  set_compile_jobs(jobs);
  std::vector<Lowered> kernels;
  for (int i = 0; i < count + jobs; ++i)
    kernels.push_back(scale(round * 2000 + i).lower(ShapeDtype{{128}, f32}));
  const auto compile_all = [&](std::size_t from, std::size_t to) {
    std::vector<CompileFuture> futures;
    for (std::size_t i = from; i < to; ++i)
      futures.push_back(kernels[i].compile_async({.arch = arch}));
    for (const CompileFuture& future : futures)
      if (future.get().from_cache()) std::exit(1);
  };
  const auto first = static_cast<std::size_t>(jobs);
  compile_all(0, first);
  return milliseconds([&] { compile_all(first, kernels.size()); });
}

/// The same with nothing of the library around the helpers: as much as the machine has to give.
double helpers_alone(int count, int jobs) {
  nvrtc::Pool pool({.program = nvrtc::find_helper().path, .digest = cache::text_digest}, jobs);
  const Lowered kernel = scale(1).lower(ShapeDtype{{128}, f32});
  const nvrtc::Request request{.source = runtime::full_text(kernel.cuda_source({.arch = arch})),
                               .arch = arch};
  const auto compile_all = [&](int each) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < jobs; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < each; ++k) compile(request, &pool);
      });
  };
  compile_all(1);
  return milliseconds([&] { compile_all(count / jobs); });
}

void report_warm(const char* where, int kernels, int runs, const char* target) {
  static int round = 0;
  const Pair both = best_of(
      runs, [&](int) { return warm(kernels, 2, round++); },
      [&](int) { return warm(kernels, 1, round++); });
  std::printf(
      "%3d kernels on two cores, cache %-15s %8.2f x        target %-10s (%.0f ms; one core %.0f "
      "ms)\n",
      kernels, where, both.there / both.here, target, both.here, both.there);
}

/// Where files cost nothing, and where they cost what this disk takes for a new one.
void report_second_core() {
  const Pair alone = best_of(
      3, [](int) { return helpers_alone(64, 2); }, [](int) { return helpers_alone(64, 1); });
  std::printf("%-46s %8.2f x        (%.0f ms; one core %.0f ms)\n",
              "the helpers of 64 kernels alone, on two cores", alone.there / alone.here, alone.here,
              alone.there);
  {
    const Folder folder("/dev/shm");
    report_warm("in memory", 64, 3, ">= 1.6");
    report_warm("in memory", 512, 2, ">= 1.85");
  }
  const Folder folder(P_tmpdir);
  report_warm("on disk", 64, 3, ">= 1.6");
  report_warm("on disk", 512, 1, ">= 1.85");
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "first-in-helper") == 0) return first_compile(true);
  if (count == 2 && std::strcmp(arguments[1], "first-here") == 0) return first_compile(false);
  if (!nvrtc::toolchain().found) {
    std::puts("no NVRTC: nothing to measure");
    return 0;
  }

  report_way();
  report("first compile of a process (softmax)",
         best_of(
             9, [&](int) { return run_first(arguments[0], "first-here"); },
             [&](int) { return run_first(arguments[0], "first-in-helper"); }),
         "<= 60 ms");

  report_later();

  report_cancel();
  report_second_core();
  return 0;
}
