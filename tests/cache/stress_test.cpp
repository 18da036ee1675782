// Many processes with many threads store, find and evict while others are killed: nothing wrong is
// ever loaded, nothing is lost but by eviction, and nothing is left lying about.
//
// PALLADIUM_STRESS multiplies the kills: 1 is two hundred of them.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cache/stats.hpp"
#include "cache/store.hpp"
#include "cache/turn.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using cache::Entry;
using cache::Store;
using test::Folder;

namespace {

constexpr int processes = 16, threads = 8, kernels = 50;
const std::string ours = "0123456789abcdef";

/// What lies in memory that all processes share.
struct Shared {
  std::atomic<std::uint64_t> wrong, stored, hits, evicted, lost;
  std::atomic<bool> is_stored[kernels];  // as some process was told, or saw
};

Shared& shared() {
  static Shared* const memory = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *memory;
}

/// Its cubin is a function of its number: whatever else is found under its key is wrong.
Entry entry_of(int kernel) {
  Entry entry;
  entry.key = cache::key_of({{"graph", std::to_string(kernel)}});
  entry.toolchain = ours;
  entry.metadata.kernel = "kernel" + std::to_string(kernel);
  entry.source = std::string(500, static_cast<char>('a' + kernel % 26));
  std::minstd_rand random(static_cast<unsigned>(kernel) + 1);
  for (int i = 0; i < 3000 + kernel * 40; ++i)
    entry.cubin.push_back(static_cast<std::byte>(random()));
  return entry;
}

bool is_right(const Entry& found, const Entry& expected) {
  return found.key == expected.key && found.cubin == expected.cubin &&
         found.source == expected.source && found.metadata == expected.metadata;
}

void work(const Store& store, unsigned seed, int rounds) {
  std::minstd_rand random(seed);
  for (int i = 0; i < rounds; ++i) {
    const unsigned kernel = random() % kernels;
    const Entry expected = entry_of(static_cast<int>(kernel));
    const bool was_stored = shared().is_stored[kernel];
    auto found = store.find(expected.key, ours, cache::Parts::all);
    if (was_stored && !found) ++shared().lost;
    if (!found) {
      const cache::Turn turn(store.root(), expected.key, ours);
      found = store.find(expected.key, ours, cache::Parts::all);
      if (!found && store.publish(expected)) {
        shared().is_stored[kernel] = true;
        ++shared().stored;
      }
    }
    if (found) {
      shared().is_stored[kernel] = true;
      ++shared().hits;
    }
    if (found && !is_right(*found, expected)) ++shared().wrong;
  }
}

process::Child start(const std::string& root, const cache::StoreOptions& options, unsigned seed,
                     int rounds) {
  return test::forked([&] {
    for (auto& count : cache::events) count = 0;
    const Store store(root, options);
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
      running.emplace_back([&, t] { work(store, seed * threads + t, rounds); });
    for (std::thread& thread : running) thread.join();
    shared().evicted += cache::counted(cache::Event::evicted);
    return cache::counted(cache::Event::refused) == 0 &&
                   cache::counted(cache::Event::not_stored) == 0
               ? 0
               : 1;
  });
}

int scale() {
  const char* given = std::getenv("PALLADIUM_STRESS");
  return given == nullptr ? 1 : std::max(1, std::atoi(given));
}

void reset() { new (&shared()) Shared(); }

int temporaries_in(const std::string& root) {
  int count = 0;
  std::vector<std::string> folders, names;
  if (!files::list(root + "/v1", folders)) return 0;
  for (const std::string& folder : folders)
    if (files::list(root + "/v1/" + folder, names))
      for (const std::string& name : names) count += name.ends_with(files::temporary_suffix);
  return count;
}

}  // namespace

TEST_CASE("sixteen processes with eight threads each, killed at random, load nothing wrong") {
  const Folder folder;
  reset();
  const int kills = 200 * scale();
  // Room for half of the kernels: eviction never rests.
  const cache::StoreOptions options = {
      .most_bytes = 128 << 10, .most_files = 25, .note_use_after_ns = 1'000'000};
  std::mt19937 random(20260101);
  std::vector<process::Child> running;
  unsigned seed = 1;
  const test::CapturedStderr quiet;
  for (int i = 0; i < processes; ++i)
    running.push_back(start(folder / "cache", options, seed++, 1 << 30));
  for (int i = 0; i < kills; ++i) {
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    process::Child& victim = running[random() % running.size()];
    CHECK(victim.kill().signal == SIGKILL);
    victim = start(folder / "cache", options, seed++, 1 << 30);
  }
  for (process::Child& process : running) CHECK(process.kill().signal == SIGKILL);
  CHECK(shared().wrong == 0);
  CHECK(shared().hits > 100);
  CHECK(shared().stored > 50);

  // Afterwards the store is whole, within its bounds at the next sweep, and clean.
  cache::StoreOptions recovering = options;
  recovering.temporaries_live_ns = 0;
  const Store store(folder / "cache", recovering);
  store.sweep();
  CHECK(temporaries_in(store.root()) == 0);
  const auto listed_now = store.list();
  CHECK(!listed_now.empty());
  CHECK(listed_now.size() <= options.most_files);
  for (const Store::Listed& listed : listed_now) CHECK(store.defect(listed) == "");
  CHECK(quiet.text().empty());  // no process ever saw a defect
}

TEST_CASE("what is reported stored is found from then on, whoever is killed meanwhile") {
  const Folder folder;
  reset();
  const cache::StoreOptions unbounded = {};
  const test::CapturedStderr quiet;
  std::mt19937 random(7);
  std::vector<process::Child> killed, running;
  for (unsigned i = 0; i < 3; ++i) {
    killed.push_back(start(folder.path(), unbounded, 100 + i, 1 << 30));
    running.push_back(start(folder.path(), unbounded, 103 + i, 200));
  }
  for (process::Child& process : killed) {
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    CHECK(process.kill().signal == SIGKILL);
  }
  for (process::Child& process : running) CHECK(process.wait().is_good());
  CHECK(shared().wrong == 0);
  CHECK(shared().lost == 0);
  CHECK(shared().evicted == 0);
  const Store store(folder.path(), unbounded);
  for (int kernel = 0; kernel < kernels; ++kernel) {
    INFO(kernel);
    // Who survived asked for each of them, and found or stored it.
    CHECK(shared().is_stored[kernel]);
    const Entry expected = entry_of(kernel);
    const auto found = store.find(expected.key, ours, cache::Parts::all);
    REQUIRE(found);
    CHECK(is_right(*found, expected));
  }
  const auto listed = store.list();
  CHECK(listed.size() == kernels);
  for (const Store::Listed& each : listed) CHECK(store.defect(each) == "");
  CHECK(quiet.text().empty());
}
