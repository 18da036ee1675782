// A cache on a network file system: what one host has renamed another does not see for a while,
// files vanish under those who read them, and removals are refused. Each process here is a host.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cache/stats.hpp"
#include "cache/store.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using cache::Entry;
using cache::Store;
using test::fail_with;
using test::Folder;

namespace {

const std::string ours = "0123456789abcdef";

Entry entry_of(unsigned kernel) {
  Entry entry;
  entry.key = cache::key_of({{"graph", std::to_string(kernel)}});
  entry.toolchain = ours;
  entry.metadata.kernel = "kernel" + std::to_string(kernel);
  entry.cubin.assign(500 + kernel, static_cast<std::byte>(kernel));
  return entry;
}

/// What a client of a network file system remembers and suffers.
class Client {
 public:
  explicit Client(unsigned seed, std::chrono::milliseconds forgets_after)
      : random_(seed), forgets_after_(forgets_after) {
    install();
  }
  ~Client() { files::functions() = files::system_functions(); }

  /// What `body` does is done by another host; this one goes on as it was.
  template <class F>
  void elsewhere(F body) {
    files::functions() = files::system_functions();
    body();
    install();
  }

  void install() {
    current_ = this;
    files::Functions& calls = files::functions();
    calls.open = [](const char* path, int flags, mode_t mode) {
      return current_->open(path, flags, mode);
    };
    calls.stat = [](const char* path, struct stat* status) {
      if (current_->knows_missing(path)) return fail_with(ENOENT);
      return current_->remember(path, ::stat(path, status));
    };
    calls.mkdir = [](const char* path, mode_t mode) {
      current_->missing_.erase(path);  // the server answers
      return ::mkdir(path, mode);
    };
    calls.rename = [](const char* from, const char* to) {
      if (current_->is_time(200)) return fail_with(ESTALE);
      current_->missing_.erase(to);
      return ::rename(from, to);
    };
    calls.read = [](int file, void* bytes, std::size_t count) -> ssize_t {
      return current_->is_time(50) ? fail_with(ESTALE) : ::read(file, bytes, count);
    };
    calls.unlink = [](const char* path) {
      return current_->is_time(4) ? fail_with(EBUSY) : ::unlink(path);
    };
    calls.rmdir = [](const char* path) {
      return current_->is_time(2) ? fail_with(EBUSY) : ::rmdir(path);
    };
  }

  int open(const char* path, int flags, mode_t mode) {
    const std::string folder = files::directory_of(path);
    if (knows_missing(folder) || ((flags & O_CREAT) == 0 && knows_missing(path)))
      return fail_with(ENOENT);
    const int file = remember(path, ::open(path, flags, mode));
    if (file < 0 && errno == ENOENT && ::access(folder.c_str(), F_OK) != 0) remember(folder, -1);
    return file;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_time(unsigned one_in) { return random_() % one_in == 0; }
  bool knows_missing(const std::string& path) {
    const auto found = missing_.find(path);
    if (found == missing_.end()) return false;
    if (found->second > Clock::now()) return true;
    missing_.erase(found);
    return false;
  }
  /// A negative answer is believed for a while.
  int remember(const std::string& path, int result) {
    const int error = errno;
    if (result < 0 && error == ENOENT) missing_[path] = Clock::now() + forgets_after_;
    errno = error;
    return result;
  }

  static inline Client* current_ = nullptr;
  std::minstd_rand random_;
  const std::chrono::milliseconds forgets_after_;
  std::map<std::string, Clock::time_point> missing_;
};

/// The number of kernels that were wrong; one more if the cache hardly ever served.
int work(const std::string& root, unsigned seed, int rounds, unsigned kernels) {
  Client client(seed, std::chrono::milliseconds(20));
  std::minstd_rand random(seed);
  const Store store(root, {.most_files = kernels / 2 + 4, .note_use_after_ns = 0});
  int failures = 0, hits = 0;
  for (int i = 0; i < rounds; ++i) {
    const Entry expected = entry_of(random() % kernels);
    const auto found = store.find(expected.key, ours, cache::Parts::all);
    // Who finds nothing has compiled; what the store says of it decides nothing.
    if (!found) (void)store.publish(expected);
    hits += found.has_value();
    if (found && (found->cubin != expected.cubin || found->metadata != expected.metadata))
      ++failures;
    if (const auto any = store.find_any(expected.key, 20); any && any->cubin != expected.cubin)
      ++failures;
    if (random() % 64 == 0) store.sweep();
    if (random() % 512 == 0) store.clear();
  }
  return failures + (hits < rounds / 10);
}

}  // namespace

TEST_CASE("ten thousand races on a network file system: nothing wrong, nothing thrown") {
  const Folder folder;
  const test::CapturedStderr log;
  constexpr int hosts = 8, rounds = 1300;
  std::vector<process::Child> children;
  for (unsigned host = 1; host <= hosts; ++host)
    children.push_back(test::forked([&, host] {
      try {
        return work(folder / "cache", host, rounds, 24) == 0 ? 0 : 1;
      } catch (...) {
        return 1;
      }
    }));
  for (process::Child& child : children) CHECK(child.wait().is_good());
  const std::string text = log.text();
  CHECK(text.find("Stale file handle") != std::string::npos);  // the shim was at work
  CHECK(text.find("digest does not match") == std::string::npos);
  const Store store(folder / "cache");
  const auto left = store.list();
  CHECK(!left.empty());
  for (const Store::Listed& listed : left) CHECK(store.defect(listed) == "");
}

TEST_CASE("who has just missed an entry stores and finds its own, though its client knows better") {
  const Folder folder;
  const Entry entry = entry_of(1);
  Client client(7, std::chrono::hours(1));
  const Store store(folder / "cache");
  const test::CapturedStderr log;
  CHECK_FALSE(store.find(entry.key, ours));
  // Meanwhile another host has made everything, and this one does not see it.
  client.elsewhere([&] { REQUIRE(Store(folder / "cache").publish(entry)); });
  CHECK_FALSE(store.find(entry.key, ours));
  CHECK(store.publish(entry));
  CHECK(store.find(entry.key, ours));
  CHECK(log.text().empty());
}
