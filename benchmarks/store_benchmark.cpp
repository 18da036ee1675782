// What lies between a program's start and a kernel's bytes when the cache is warm, and what a store
// costs when it is not. Figures beside ours are from their projects' own reports.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "benchmarks/timing.hpp"
#include "cache/key.hpp"
#include "cache/memory.hpp"
#include "cache/store.hpp"
#include "cache/turn.hpp"
#include "codegen/base/files.hpp"
#include "codegen/base/process.hpp"
#include "codegen/nvrtc/toolchain.hpp"
#include "palladium/ops/softmax.hpp"
#include "palladium/palladium.hpp"

using namespace palladium;

extern char** environ;

namespace {

/// The best of many runs, each of `times` repetitions, in microseconds per repetition.
double best(int runs, int times, const auto& action) {
  return 1e6 / times * benchmark::best_of(runs, benchmark::wall_seconds, [&] {
           for (int i = 0; i < times; ++i) action();
         });
}

void report(const char* what, double us, const char* target, const char* peer) {
  std::printf("%-46s %10.3f us   target %-9s %s\n", what, us, target, peer);
}

cache::Entry entry_of_20_kb() {
  cache::Entry entry;
  entry.key = cache::key_of({{"graph", "softmax"}});
  entry.toolchain = "0123456789abcdef";
  entry.metadata.kernel = "softmax";
  entry.metadata.function = "softmax";
  entry.metadata.arch = "sm_90a";
  entry.metadata.nvrtc_major = 13;
  for (int i = 0; i < 40; ++i)
    entry.metadata.components["args[" + std::to_string(i) + "].block_shape"] = "128, 64";
  for (int i = 0; i < 20'000; ++i) entry.cubin.push_back(static_cast<std::byte>(i * i >> 3));
  for (int i = 0; i < 600; ++i) entry.ptx += "add.f32 %f" + std::to_string(i) + ", %f1, %f2;\n";
  entry.source = entry.ptx;
  return entry;
}

/// What the file system takes for a new file of these bytes.
double bare_publish(const std::string& folder, const std::vector<std::byte>& bytes) {
  int made = 0;
  return best(51, 5, [&] {
    const std::string path = folder + "/bare" + std::to_string(made++), temporary = path + ".tmp";
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    const bool is_written = ::write(file, bytes.data(), bytes.size()) > 0;
    ::close(file);
    if (!is_written || ::rename(temporary.c_str(), path.c_str()) != 0) std::exit(1);
  });
}

/// A new file each time: a file system may write out at once what replaces another file.
void store_new_ones(cache::Entry entry, const std::string& root, const char* what) {
  const cache::Store store(root);
  int stored = 0;
  const double ours = best(51, 5, [&] {
    entry.key = cache::key_of({{"graph", std::to_string(stored++)}});
    (void)store.publish(entry);
  });
  char beside[96];
  std::snprintf(beside, sizeof beside, "(open, write, close and rename alone, here: %.0f us)",
                bare_publish(root, cache::encode(entry)));
  report(what, ours, "<= 200 us", beside);
}

/// A chain of 166 times a constant, a difference and an exponential.
Lowered kernel_of_500_operations() {
  const ShapeDtype type{{128}, f32};
  const Kernel kernel = pallas_call(
      [](Ref x, Ref o) {
        Value v = x[_];
        for (int i = 0; i < 166; ++i) v = exp(v - static_cast<float>(i));
        o[_] = v;
      },
      {.name = "chain", .out_type = type});
  return kernel.lower(type);
}

Compiled softmax() {
  const auto lowered = ops::softmax().lower(ShapeDtype{{dim("m"), 1000}, f32});
  return lowered.compile({.arch = "sm_90a"});
}

/// The whole of a warm start in a process of its own: from the kernel's lambda to its bytes.
int warm_start() {
  const Compiled found = softmax();
  std::string maps;
  if (std::FILE* file = std::fopen("/proc/self/maps", "r")) {
    char line[512];
    while (std::fgets(line, sizeof line, file) != nullptr) maps += line;
    std::fclose(file);
  }
  const bool loaded = maps.find("libnvrtc") != std::string::npos;
  return found.from_cache() && !found.cubin().empty() && !loaded ? 0 : 1;
}

int run_child(const char* program) {
  std::string mode = "warm-start";
  char* arguments[] = {const_cast<char*>(program), mode.data(), nullptr};
  pid_t child;
  if (posix_spawn(&child, program, nullptr, nullptr, arguments, environ) != 0) return 1;
  return process::Child(process::Id::of(child).value()).wait().is_good() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "warm-start") == 0) return warm_start();

  std::string root = P_tmpdir "/palladium-benchmark-XXXXXX";
  if (mkdtemp(root.data()) == nullptr) return 1;
  const cache::Store store(root);
  cache::Entry entry = entry_of_20_kb();
  if (!store.publish(entry)) return 1;

  report("find an entry of 20 KB: open, verify, read",
         best(51, 20, [&] { (void)store.find(entry.key, entry.toolchain); }), "<= 50 us",
         "(cuda.core: ~10 us, not verified)");
  store_new_ones(entry, root, "store it");
  if (std::string memory = "/dev/shm/palladium-benchmark-XXXXXX"; mkdtemp(memory.data())) {
    store_new_ones(entry, memory, "store it, in /dev/shm");
    std::filesystem::remove_all(memory);
  }
  report("store it again", best(51, 5, [&] { (void)store.publish(entry); }), "", "");

  report("be the one process that compiles it",
         best(51, 20, [&] { const cache::Turn turn(root, entry.key, entry.toolchain); }), "",
         "(a lock file of its own: open + flock + unlink)");

  cache::Memory<int> memory;
  std::vector<cache::Key> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(cache::key_of({{"graph", std::to_string(i)}}));
  std::vector<cache::Memory<int>::Handle> held;
  for (const cache::Key& key : keys) held.push_back(memory.insert(nullptr, key, 1));
  std::size_t next = 0;
  int sum = 0;
  report("hit in memory by key",
         best(51, 10'000, [&] { sum += *memory.find(nullptr, keys[next++ % keys.size()]); }),
         "<= 50 ns", "(Jitify2 2.5 us added per launch)");

  const Lowered lowered = kernel_of_500_operations();
  report("key of a graph of 500 operations",
         best(51, 20, [&] { (void)lowered.key({.arch = "sm_90a"}); }), "<= 100 us", "");
  report("find and identify NVRTC without loading it",
         best(51, 5, [] { (void)nvrtc::find_toolchain(); }), "",
         "(dlopen alone: 5.4 ms warm, 127 ms cold)");

  int failures = 0;
  if (nvrtc::toolchain().found) {
    ::setenv("PALLADIUM_CACHE_DIR", root.c_str(), 1);
    (void)softmax();
    const double process = best(41, 1, [&] { failures += run_child(arguments[0]) != 0; });
    report("a process from start to the kernel's bytes", process, "<= 3 ms",
           "(Warp cached module 400 to 5000 us)");
    if (failures != 0) std::printf("%d of 41 warm starts failed\n", failures);
  }

  std::filesystem::remove_all(root);
  return failures != 0 || sum < 0 ? 1 : 0;
}
