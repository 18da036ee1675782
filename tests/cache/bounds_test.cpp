// The store keeps its bounds, drops what was not used for longest, and cleans up after the killed.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>
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
using cache::StoreOptions;
using test::CapturedStderr;
using test::Environment;
using test::fail_with;
using test::Folder;
using test::ReplacedFiles;

namespace {

const std::string ours = "0123456789abcdef";

Entry entry_of(const std::string& name, std::size_t bytes = 1000) {
  Entry entry;
  entry.key = cache::key_of({{"graph", name}});
  entry.toolchain = ours;
  entry.metadata.kernel = name;
  entry.metadata.function = name;
  entry.metadata.arch = "sm_90a";
  entry.cubin.assign(bytes, std::byte{42});
  return entry;
}

void set_age(const std::string& path, int seconds) {
  timespec times[2] = {};
  ::clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

std::string path_in(const Store& store, const Entry& entry) {
  for (const Store::Listed& listed : store.list())
    if (listed.key == entry.key) return listed.path;
  return "";
}

std::uint64_t bytes_in(const Store& store) {
  std::uint64_t bytes = 0;
  for (const Store::Listed& listed : store.list()) bytes += listed.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("a sweep removes what was not used for longest, down to nine tenths") {
  const Folder folder;
  const Store unbounded(folder.path());
  for (int i = 0; i < 20; ++i) {
    REQUIRE(unbounded.publish(entry_of(std::to_string(i))));
    set_age(path_in(unbounded, entry_of(std::to_string(i))), 1000 - i);
  }
  const std::uint64_t all = bytes_in(unbounded), each = all / 20;
  const std::uint64_t evicted = cache::counted(cache::Event::evicted);

  SECTION("bounded in files") {
    const Store store(folder.path(), {.most_files = 10, .note_use_after_ns = 0});
    REQUIRE(store.find(entry_of("0").key, ours));  // used just now
    const Store::Removed removed = store.sweep();
    CHECK(removed.entries == 11);
    CHECK(removed.bytes == all - bytes_in(unbounded));
    CHECK(store.find(entry_of("0").key, ours));
    CHECK_FALSE(store.find(entry_of("1").key, ours));
    CHECK_FALSE(store.find(entry_of("11").key, ours));
    CHECK(store.find(entry_of("12").key, ours));
    CHECK(cache::counted(cache::Event::evicted) == evicted + 11);
  }
  SECTION("bounded in bytes") {
    const Store store(folder.path(), {.most_bytes = 10 * each + each / 2});
    CHECK(store.sweep().entries == 11);
    CHECK_FALSE(store.find(entry_of("10").key, ours));
    CHECK(store.find(entry_of("11").key, ours));
  }
  SECTION("within its bounds nothing goes") {
    const Store store(folder.path(), {.most_files = 20});
    CHECK(store.sweep().entries == 0);
  }
}

TEST_CASE("a use is noted in the file's time, but not at each use") {
  const Folder folder;
  const Store store(folder.path());
  const Entry entry = entry_of("softmax");
  REQUIRE(store.publish(entry));
  const std::string path = path_in(store, entry);
  static int touched;
  touched = 0;
  ReplacedFiles calls;
  calls->utimensat = [](int at, const char* name, const timespec* times, int flags) {
    ++touched;
    return ::utimensat(at, name, times, flags);
  };
  CHECK(store.find(entry.key, ours));
  CHECK(touched == 0);
  set_age(path, 700);
  CHECK(store.find(entry.key, ours));
  CHECK(store.find(entry.key, ours));
  CHECK(touched == 1);
  // A cache that is not ours to write serves all the same.
  set_age(path, 700);
  calls->utimensat = [](int, const char*, const timespec*, int) { return fail_with(EROFS); };
  CHECK(store.find(entry.key, ours));
}

TEST_CASE("many processes that store three times the bound never exceed it by a tenth") {
  const Folder folder;
  constexpr int processes = 8, each = 45;
  const StoreOptions options = {.most_bytes = 120 * 4096, .most_files = 120};
  std::vector<process::Child> children;
  for (int p = 0; p < processes; ++p)
    children.push_back(test::forked([&, p] {
      const Store store(folder.path(), options);
      int failures = 0;
      for (int i = 0; i < each; ++i)
        failures += !store.publish(entry_of(std::to_string(p) + "." + std::to_string(i), 2500));
      return failures;
    }));
  const Store store(folder.path(), options);
  // Entries come and go while a folder is listed: those of two lists were there together in between.
  const auto paths = [&] {
    std::vector<std::string> all;
    for (const auto& entry : store.list()) all.push_back(entry.path);
    std::ranges::sort(all);
    return all;
  };
  std::size_t most = 0;
  for (process::Child& child : children) {
    std::optional<process::Ending> ending;
    while (!(ending = child.wait_now())) {
      const std::vector<std::string> first = paths(), second = paths();
      std::vector<std::string> both;
      std::ranges::set_intersection(first, second, std::back_inserter(both));
      most = std::max(most, both.size());
      ::usleep(2000);
    }
    CHECK(ending->is_good());
  }
  CHECK(std::max(most, store.list().size()) <= 132);
  CHECK(store.list().size() > 90);
}

TEST_CASE("a kernel that is used stays, however much is stored meanwhile") {
  const Folder folder;
  const Store store(folder.path(), {.most_files = 60, .note_use_after_ns = 0});
  const Entry used = entry_of("used");
  REQUIRE(store.publish(used));
  for (int i = 0; i < 180; ++i) {
    REQUIRE(store.publish(entry_of(std::to_string(i))));
    if (!store.find(used.key, ours)) FAIL("gone after " << i);
  }
  store.sweep();
  CHECK(store.find(used.key, ours));
  CHECK(store.list().size() <= 60);
}

TEST_CASE("a store of the default size has no folder of more than 4096 files") {
  // Keys are spread evenly: 1.1 times the bound, and eight standard deviations.
  const double mean = 1.1 * static_cast<double>(StoreOptions().most_files) / 256;
  CHECK(mean + 8 * std::sqrt(mean) < 4096);
}

namespace {

/// Files named like entries, as many as a store has had for long.
void fill(const Store& store, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string hex = cache::key_of({{"graph", "filled" + std::to_string(i)}}).hex();
    const std::string inside = store.root() + "/v1/" + hex.substr(0, 2);
    REQUIRE(files::make_directories(inside));
    const int file = ::open((inside + "/" + hex.substr(2) + "." + ours + ".k").c_str(),
                            O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    ::close(file);
  }
}

}  // namespace

TEST_CASE("a large store is looked at in part, and as a whole when it is nearly full") {
  const Folder folder;
  static int folders_listed;
  folders_listed = 0;
  {
    const Store large(folder.path(), {.most_files = 14'000});
    fill(large, 7000);
    ReplacedFiles calls;
    calls->opendir = [](const char* path) { return ++folders_listed, ::opendir(path); };
    // Some five times it is time to look; once in 150 runs it is only after more of them.
    for (int i = 0; i < 1400 || (folders_listed == 0 && i < 6000); ++i)
      REQUIRE(large.publish(entry_of(std::to_string(i), 10)));
    CHECK(folders_listed >= 16);
    CHECK(folders_listed < 30 * 24);
  }
  const Store full(folder.path(), {.most_files = 8000});
  const std::uint64_t evicted = cache::counted(cache::Event::evicted);
  // As often; once in some 250 runs only after more.
  const auto evicts = [&] { return cache::counted(cache::Event::evicted) > evicted; };
  for (int i = 0; i < 900 || (!evicts() && i < 6000); ++i)
    REQUIRE(full.publish(entry_of("more" + std::to_string(i), 10)));
  CHECK(evicts());
  CHECK(full.list().size() <= 8800);
  CHECK(full.list().size() >= 7000);
  REQUIRE(full.clear().entries > 7000);
}

TEST_CASE("a store whose folders are mostly missing is never looked at as a whole in vain") {
  const Folder folder;
  const Store store(folder.path(), {.most_files = 300});
  fill(store, 150);
  static int looks, whole_looks;
  looks = whole_looks = 0;
  ReplacedFiles calls;
  calls->opendir = [](const char* path) {
    ++looks;
    whole_looks += std::string_view(path).ends_with("/v1");
    return ::opendir(path);
  };
  // Some sixteen times it is time to look.
  for (int i = 0; i < 100; ++i) REQUIRE(store.publish(entry_of(std::to_string(i), 10)));
  CHECK(looks >= 256);
  CHECK(whole_looks == 0);
}

TEST_CASE("a kernel larger than the whole bound is not stored") {
  const Folder folder;
  const Store store(folder.path(), {.most_bytes = 5000});
  REQUIRE(store.publish(entry_of("small")));
  const CapturedStderr log;
  CHECK_FALSE(store.publish(entry_of("large", 6000)));
  CHECK(log.text().find("bytes are more than 5000") != std::string::npos);
  CHECK(store.find(entry_of("small").key, ours));
}

TEST_CASE("temporary files of killed processes go an hour later, at the next sweep") {
  const Folder folder;
  const Store store(folder.path());
  REQUIRE(store.publish(entry_of("softmax")));
  const std::string inside = files::directory_of(path_in(store, entry_of("softmax")));
  REQUIRE(files::publish(inside + "/.old.1.2.3.tmp", "left over"));
  REQUIRE(files::publish(inside + "/.new.1.2.3.tmp", "being written"));
  REQUIRE(files::publish(folder / "v1/probe.77.tmp", "left over"));
  set_age(inside + "/.old.1.2.3.tmp", 3700);
  set_age(folder / "v1/probe.77.tmp", 3700);
  const Store::Removed removed = store.sweep();
  CHECK(removed.temporaries == 2);
  CHECK(removed.entries == 0);
  CHECK(files::exists(inside + "/.new.1.2.3.tmp"));
  CHECK(store.find(entry_of("softmax").key, ours));
}

TEST_CASE("a process killed at any call of a store leaves a store that works, and no litter") {
  const Folder folder;
  static int countdown;
  for (int k = 0;; ++k) {
    const std::string root = folder / std::to_string(k);
    const StoreOptions options = {
        .most_files = 2, .note_use_after_ns = 0, .temporaries_live_ns = 0};
    REQUIRE(Store(root, options).publish(entry_of("before")));
    const int status = test::status_of_fork([&] {
      countdown = k;
      files::Functions& calls = files::functions();
      const auto dies = [] {
        if (countdown-- == 0) ::_exit(9);
      };
      static decltype(dies) die = dies;
      calls.open = [](const char* path, int flags, mode_t mode) {
        return die(), ::open(path, flags, mode);
      };
      calls.write = [](int d, const void* bytes, std::size_t count) -> ssize_t {
        if (countdown == 0) (void)!::write(d, bytes, count / 2);
        return die(), ::write(d, bytes, count);
      };
      calls.read = [](int d, void* bytes, std::size_t count) {
        return die(), ::read(d, bytes, count);
      };
      calls.close = [](int d) { return die(), ::close(d); };
      calls.rename = [](const char* a, const char* b) { return die(), ::rename(a, b); };
      calls.unlink = [](const char* path) { return die(), ::unlink(path); };
      calls.mkdir = [](const char* path, mode_t mode) { return die(), ::mkdir(path, mode); };
      calls.stat = [](const char* path, struct stat* s) { return die(), ::stat(path, s); };
      calls.opendir = [](const char* path) { return die(), ::opendir(path); };
      calls.readdir = [](DIR* directory) { return die(), ::readdir(directory); };
      calls.closedir = [](DIR* directory) { return die(), ::closedir(directory); };
      calls.fstat = [](int d, struct stat* s) { return die(), ::fstat(d, s); };
      calls.utimensat = [](int at, const char* path, const timespec* times, int flags) {
        return die(), ::utimensat(at, path, times, flags);
      };
      calls.rmdir = [](const char* path) { return die(), ::rmdir(path); };
      const Store store(root, options);
      for (const char* name : {"one", "two", "three"}) {
        store.publish(entry_of(name));
        (void)store.find(entry_of("one").key, ours);
        (void)store.find_any(entry_of(name).key, 20);
      }
      store.sweep();
      store.remove(entry_of("three").key, ours);
      return 0;
    });
    const Store store(root, options);
    const CapturedStderr log;
    for (const char* name : {"before", "one", "two", "three"})
      if (const auto found = store.find(entry_of(name).key, ours))
        CHECK(found->cubin == entry_of(name).cubin);
    store.sweep();
    CHECK(log.text().empty());  // nothing half-written bears an entry's name
    for (const char* each : {"before", "one", "two", "three"}) {
      const std::string inside = root + "/v1/" + entry_of(each).key.hex().substr(0, 2);
      std::vector<std::string> names;
      if (files::list(inside, names))
        for (const std::string& name : names) CHECK_FALSE(name.ends_with(files::temporary_suffix));
    }
    CHECK(store.publish(entry_of("after")));
    if (status == 0) {
      CHECK(k >= 200);
      UNSCOPED_INFO("points " << k);
      break;
    }
  }
}

TEST_CASE("a disk that fails at any call of a sweep costs the sweep, never the program") {
  const Folder folder;
  static int countdown, error;
  for (const int failure : {EIO, ESTALE, EBUSY, ENOENT}) {
    for (int k = 0;; ++k) {
      const std::string root = folder / (std::to_string(failure) + "." + std::to_string(k));
      const Store filled(root);
      for (const char* name : {"1", "2", "3", "4"}) REQUIRE(filled.publish(entry_of(name)));
      const CapturedStderr log;
      ReplacedFiles calls;
      calls->unlink = [](const char* path) {
        return countdown-- == 0 ? fail_with(error) : ::unlink(path);
      };
      calls->stat = [](const char* path, struct stat* s) {
        return countdown-- == 0 ? fail_with(error) : ::stat(path, s);
      };
      calls->opendir = [](const char* path) {
        if (countdown-- == 0) return errno = error, static_cast<DIR*>(nullptr);
        return ::opendir(path);
      };
      calls->readdir = [](DIR* directory) {
        if (countdown-- == 0) return errno = error, static_cast<dirent*>(nullptr);
        return ::readdir(directory);
      };
      countdown = k;
      error = failure;
      const Store store(root, {.most_files = 2});
      const Store::Removed removed = store.sweep();
      const bool undisturbed = countdown >= 0;
      calls.restore();
      // A file that the disk did not give up is not counted as gone, but another may go in its
      // place.
      CHECK(removed.entries <= 4);
      if (failure != ENOENT) CHECK(filled.list().size() == 4 - removed.entries);
      for (const Store::Listed& listed : filled.list()) CHECK(filled.load(listed));
      if (undisturbed) {
        CHECK(removed.entries == 2);
        break;
      }
    }
  }
}

TEST_CASE("the bounds and the sharing are the environment's, and what is no number is said") {
  const CapturedStderr log;
  {
    const Environment size("PALLADIUM_CACHE_SIZE", "7"), count("PALLADIUM_CACHE_FILES", "9");
    const Environment sharing("PALLADIUM_CACHE_SHARING", "group");
    const StoreOptions options = cache::default_store_options();
    CHECK(options.most_bytes == 7 << 20);
    CHECK(options.most_files == 9);
    CHECK(options.sharing == cache::Sharing::group);
    CHECK(log.text().empty());
  }
  for (const char* wrong : {"0", "-1", "2GiB", "99999999999999999999"}) {
    const Environment size("PALLADIUM_CACHE_SIZE", wrong);
    CHECK(cache::default_store_options().most_bytes == std::uint64_t{2} << 30);
    CHECK(log.text().find(std::string("PALLADIUM_CACHE_SIZE is '") + wrong) != std::string::npos);
  }
  const Environment sharing("PALLADIUM_CACHE_SHARING", "all");
  CHECK(cache::default_store_options().sharing == cache::Sharing::own);
  CHECK(log.text().find("PALLADIUM_CACHE_SHARING is 'all'") != std::string::npos);
}
