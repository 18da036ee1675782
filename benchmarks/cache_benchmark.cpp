// What it costs that a cache is bounded, shared by processes and watched, beside the same without.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/timing.hpp"
#include "cache/stats.hpp"
#include "cache/store.hpp"
#include "cache/turn.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/process.hpp"

using namespace palladium;

namespace {

const std::string toolchain = "0123456789abcdef";

double microseconds(const auto& action) {
  return 1e6 * benchmark::seconds_of(benchmark::wall_seconds, action);
}

double best(int runs, const auto& action) {
  return 1e6 * benchmark::best_of(runs, benchmark::wall_seconds, action);
}

cache::Entry entry_of(const std::string& name, std::size_t bytes) {
  cache::Entry entry;
  entry.key = cache::key_of({{"graph", name}});
  entry.toolchain = toolchain;
  entry.metadata.kernel = "softmax";
  entry.metadata.function = "softmax";
  entry.metadata.arch = "sm_90a";
  for (std::size_t i = 0; i < bytes; ++i) entry.cubin.push_back(static_cast<std::byte>(i * i >> 3));
  return entry;
}

/// A folder that is gone afterwards.
class Root {
 public:
  explicit Root(const std::string& parent = P_tmpdir)
      : path_(parent + "/palladium-benchmark-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::exit(1);
  }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  ~Root() {
    cache::Store(path_).clear();
    (void)files::remove_directory(path_ + "/v1");
    (void)files::remove_directory(path_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void report_500_kernels() {
  const Root root;
  const cache::Store store(root.path());
  std::vector<cache::Key> keys;
  for (int i = 0; i < 500; ++i) {
    const cache::Entry entry = entry_of(std::to_string(i), 20'000);
    store.publish(entry);
    keys.push_back(entry.key);
  }
  const double ms = best(9,
                         [&] {
                           for (const cache::Key& key : keys)
                             if (!store.find(key, toolchain)) std::exit(1);
                         }) /
                    1000;
  std::printf("%-52s %9.2f ms   target <= 25 ms  (Warp: 0.4 to 5 ms for each)\n",
              "500 kernels of 20 KB, from disk to bytes for the driver", ms);
}

void report_count() {
  constexpr int times = 1'000'000;
  const double us = best(9, [] {
    for (int i = 0; i < times; ++i) cache::count(cache::Event::hit);
  });
  std::printf("%-52s %9.2f ns   target <= 5 ns\n", "count a hit", us * 1000 / times);
}

/// Stores three times the bound, one after the other; in microseconds for each.
double store_three_times(const std::string& where, const cache::StoreOptions& options, int bound) {
  const Root root(where);
  const cache::Store store(root.path(), options);
  cache::Entry entry = entry_of("", 8'000);
  return microseconds([&] {
           for (int i = 0; i < 3 * bound; ++i) {
             entry.key = cache::key_of({{"graph", std::to_string(i)}});
             if (!store.publish(entry)) std::exit(1);
           }
         }) /
         (3 * bound);
}

/// What bounds cost, as a share of the time in which a kernel comes to be stored: its compile, of
/// which the cheapest takes NVRTC 20 ms, and its store. On disk the file system's own price for
/// files of which many were deleted is in it.
void report_sweeps(const char* name, const std::string& where) {
  constexpr int bound = 2000;
  constexpr double compile_us = 20'000;
  double bounded = 1e30, unbounded = 1e30;
  for (int run = 0; run < 3; ++run) {
    unbounded = std::min(unbounded, store_three_times(where, {}, bound));
    bounded = std::min(bounded, store_three_times(where, {.most_files = bound}, bound));
  }
  const double more = std::max(0.0, bounded - unbounded);
  std::printf(
      "%-52s %9.2f %%    target <= 1 %%    (%.0f us for each kernel, of its compile, 20 ms, and "
      "its store, %.0f us; of the store alone %.0f %%)\n",
      name, 100 * more / (compile_us + unbounded), more, unbounded, 100 * more / unbounded);
}

process::Child forked(const std::function<int()>& body) {
  auto child = process::Child::fork(body);
  if (!child) std::exit(1);
  return std::move(*child);
}

/// Sixteen processes that make a kernel each, in 20 ms; in milliseconds until the last has.
double sixteen_processes(bool by_turns) {
  const Root root;
  return microseconds([&] {
           std::vector<process::Child> children;
           for (int i = 0; i < 16; ++i)
             children.push_back(forked([&] {
               const cache::Entry entry = entry_of(std::to_string(i), 20'000);
               const cache::Store store(root.path());
               const cache::Turn turn(by_turns ? root.path() : "", entry.key, toolchain);
               ::usleep(20'000);
               return store.publish(entry) ? 0 : 1;
             }));
           for (process::Child& child : children) child.wait();
         }) /
         1000;
}

void report_turns() {
  double with = 1e30, without = 1e30;
  for (int run = 0; run < 15; ++run) {
    with = std::min(with, sixteen_processes(true));
    without = std::min(without, sixteen_processes(false));
  }
  std::printf("%-52s %9.2f x    target <= 1.15  (%.1f ms; everybody without asking %.1f ms)\n",
              "16 processes with a kernel each, by turns", with / without, with, without);
}

/// From the death of who has the turn until the next one has it.
double after_death(const Root& root) {
  const cache::Key key = cache::key_of({{"graph", "turn"}});
  int ready[2];
  if (::pipe(ready) != 0) std::exit(1);
  process::Child holder = forked([&] {
    const cache::Turn turn(root.path(), key, toolchain);
    (void)!::write(ready[1], "x", 1);
    return ::pause();
  });
  char byte;
  (void)!::read(ready[0], &byte, 1);
  int killed[2];
  if (::pipe(killed) != 0) std::exit(1);
  process::Child killer = forked([&] {
    ::usleep(30'000);
    const auto now = std::chrono::steady_clock::now();
    holder.id().signal(SIGKILL);
    (void)!::write(killed[1], &now, sizeof now);
    return 0;
  });
  const cache::Turn turn(root.path(), key, toolchain);
  const auto had = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point died;
  (void)!::read(killed[0], &died, sizeof died);
  holder.wait();
  killer.wait();
  for (const int end : {ready[0], ready[1], killed[0], killed[1]}) ::close(end);
  return std::chrono::duration<double, std::milli>(had - died).count();
}

void report_death() {
  const Root root;
  double most = 0;
  for (int run = 0; run < 20; ++run) most = std::max(most, after_death(root));
  std::printf("%-52s %9.2f ms   target < 50 ms   (the longest of 20)\n",
              "until others go on whose compiler was killed", most);
}

}  // namespace

int main() {
  report_500_kernels();
  report_count();
  report_sweeps("bounds kept while three times as much is stored", "/dev/shm");
  report_sweeps("the same on disk", P_tmpdir);
  report_turns();
  report_death();
  return 0;
}
