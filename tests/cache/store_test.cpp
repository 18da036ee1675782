// The store: found when whole, missed when anything is wrong, and never an error.
#include "cache/store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;
using cache::Entry;
using cache::Key;
using cache::Parts;
using cache::Store;
using test::CapturedStderr;
using test::Environment;
using test::fail_with;
using test::Folder;
using test::ReplacedFiles;

namespace {

const std::string ours = "0123456789abcdef";
const std::string older = "1111111111111111";

Entry entry_of(const std::string& name, const std::string& toolchain = ours, int major = 13,
               int minor = 0) {
  Entry entry;
  entry.key = cache::key_of({{"graph", name}});
  entry.toolchain = toolchain;
  entry.metadata.kernel = name;
  entry.metadata.function = name;
  entry.metadata.arch = "sm_90a";
  entry.metadata.nvrtc_major = major;
  entry.metadata.nvrtc_minor = minor;
  entry.cubin.assign(1000, std::byte{42});
  entry.ptx = "ptx of " + name;
  entry.source = "source of " + name;
  return entry;
}

std::string path_in(const std::string& root, const Entry& entry) {
  const std::string hex = entry.key.hex();
  return root + "/v1/" + hex.substr(0, 2) + "/" + hex.substr(2) + "." + entry.toolchain + ".k";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what was published is found, by its key and exactly its toolchain") {
  const Folder folder;
  const Store store(folder / "cache");
  const Entry entry = entry_of("softmax");
  const CapturedStderr log;
  CHECK_FALSE(store.find(entry.key, ours));
  REQUIRE(store.publish(entry));
  const std::optional<Entry> found = store.find(entry.key, ours, Parts::all);
  REQUIRE(found);
  CHECK(found->cubin == entry.cubin);
  CHECK(found->metadata == entry.metadata);
  CHECK(found->source == "source of softmax");
  CHECK_FALSE(store.find(entry.key, older));
  CHECK_FALSE(store.find(entry_of("matmul").key, ours));
  CHECK(log.text().empty());
}

TEST_CASE("an entry lies where the design says, with its folders and itself private") {
  const Folder folder;
  const Store store(folder / "a/cache/");
  const Entry entry = entry_of("softmax");
  REQUIRE(store.publish(entry));
  files::Info info;
  REQUIRE(files::info(path_in(folder / "a/cache", entry), info));
  CHECK(info.mode == 0600);
  for (const char* part : {"a", "a/cache", "a/cache/v1"}) {
    REQUIRE(files::info(folder / part, info));
    CHECK(info.mode == 0700);
  }
}

TEST_CASE("with any toolchain the newest that the driver accepts is found") {
  const Folder folder;
  const Store store(folder / "cache");
  for (const auto& [toolchain, major, minor] :
       {std::tuple{"aaaaaaaaaaaaaaaa", 12, 9}, std::tuple{"bbbbbbbbbbbbbbbb", 13, 1},
        std::tuple{"cccccccccccccccc", 13, 0}, std::tuple{"dddddddddddddddd", 14, 0}})
    REQUIRE(store.publish(entry_of("softmax", toolchain, major, minor)));
  REQUIRE(store.publish(entry_of("matmul")));
  const Key key = entry_of("softmax").key;
  CHECK(store.find_any(key, 12)->toolchain == "aaaaaaaaaaaaaaaa");
  CHECK(store.find_any(key, 13)->toolchain == "bbbbbbbbbbbbbbbb");
  CHECK(store.find_any(key, 20)->toolchain == "dddddddddddddddd");
  CHECK(store.find_any(key, 13, Parts::all)->ptx == "ptx of softmax");
  CHECK_FALSE(store.find_any(key, 11));
  CHECK_FALSE(store.find_any(entry_of("blur").key, 20));

  // A defect takes one candidate away, not the kernel.
  REQUIRE(files::publish(path_in(folder / "cache", entry_of("softmax", "bbbbbbbbbbbbbbbb")), "?"));
  const CapturedStderr log;
  CHECK(store.find_any(key, 13)->toolchain == "cccccccccccccccc");
  CHECK(contains(log.text(), "truncated to 1 bytes"));
}

TEST_CASE("a damaged entry is a miss that is logged, and publishing again mends it") {
  const Folder folder;
  const Store store(folder.path());
  const Entry entry = entry_of("softmax");
  REQUIRE(store.publish(entry));
  const std::string path = path_in(folder.path(), entry);
  std::string bytes = test::text_of(path);
  std::string reason;
  SECTION("truncated") {
    bytes.resize(bytes.size() / 2);
    reason = "truncated";
  }
  SECTION("emptied") {
    bytes.clear();
    reason = "truncated to 0 bytes";
  }
  SECTION("a flipped bit") {
    bytes[bytes.size() / 2] ^= 4;
    reason = "its digest does not match its content";
  }
  SECTION("another format") {
    bytes[8] = 9;
    reason = "format 9, this library reads 1";
  }
  SECTION("another kernel's entry under this name") {
    const Entry other = entry_of("matmul");
    REQUIRE(store.publish(other));
    bytes = test::text_of(path_in(folder.path(), other));
    reason = "it holds another kernel than its name says";
  }
  SECTION("another toolchain's entry under this name") {
    const Entry other = entry_of("softmax", older);
    REQUIRE(store.publish(other));
    bytes = test::text_of(path_in(folder.path(), other));
    reason = "it holds another kernel than its name says";
  }
  REQUIRE(files::publish(path, bytes));
  {
    const CapturedStderr log;
    CHECK_FALSE(store.find(entry.key, ours));
    CHECK(contains(log.text(), path));
    CHECK(contains(log.text(), reason));
  }
  REQUIRE(store.publish(entry));
  CHECK(store.find(entry.key, ours));
}

TEST_CASE("an entry or a root that others could have written is not trusted") {
  const Folder folder;
  const Entry entry = entry_of("softmax");
  REQUIRE(Store(folder / "cache").publish(entry));
  const std::string path = path_in(folder / "cache", entry);
  ReplacedFiles calls;
  SECTION("the entry is writable by others") {
    REQUIRE(::chmod(path.c_str(), 0620) == 0);
    const CapturedStderr log;
    CHECK_FALSE(Store(folder / "cache").find(entry.key, ours));
    CHECK(contains(log.text(), "is writable by others (mode 620): `chmod go-w"));
  }
  SECTION("the root is writable by others") {
    REQUIRE(::chmod((folder / "cache").c_str(), 0777) == 0);
    const Store store(folder / "cache");
    const CapturedStderr log;
    CHECK_FALSE(store.find(entry.key, ours));
    CHECK_FALSE(store.publish(entry));
    CHECK_FALSE(store.find_any(entry.key, 20));
    CHECK(store.list().empty());
    CHECK_FALSE(Store(folder / "cache").find(entry.key, ours));
    const std::string text = log.text();
    CHECK(contains(text, "is writable by others (mode 777): `chmod go-w"));
    CHECK(std::ranges::count(text, '\n') == 1);  // said once, whoever asks
    REQUIRE(::chmod((folder / "cache").c_str(), 0770) == 0);
    CHECK_FALSE(Store(folder / "cache").find(entry.key, ours));
    CHECK(contains(log.text(), "is writable by others (mode 770)"));
  }
  SECTION("the entry belongs to somebody else") {
    calls->fstat = [](int descriptor, struct stat* status) {
      const int result = ::fstat(descriptor, status);
      status->st_uid = ::geteuid() + 1;
      return result;
    };
    const CapturedStderr log;
    CHECK_FALSE(Store(folder / "cache").find(entry.key, ours));
    CHECK(contains(log.text(), "belongs to uid " + std::to_string(::geteuid() + 1)));
    CHECK(contains(log.text(), "use another PALLADIUM_CACHE_DIR or `chown -R"));
  }
  SECTION("the root belongs to somebody else") {
    calls->stat = [](const char* name, struct stat* status) {
      const int result = ::stat(name, status);
      status->st_uid = ::geteuid() + 1;
      return result;
    };
    const CapturedStderr log;
    CHECK_FALSE(Store(folder / "cache").find(entry.key, ours));
    CHECK_FALSE(Store(folder / "cache").publish(entry));
    CHECK(contains(log.text(), "belongs to uid"));
  }
}

TEST_CASE("an entry of root's serves every user: images are built by root and run by others") {
  const Folder folder;
  const Entry entry = entry_of("softmax");
  REQUIRE(Store(folder / "cache").publish(entry));
  ReplacedFiles calls;
  calls->stat = [](const char* name, struct stat* status) {
    const int result = ::stat(name, status);
    status->st_uid = 0;
    return result;
  };
  calls->fstat = [](int descriptor, struct stat* status) {
    const int result = ::fstat(descriptor, status);
    status->st_uid = 0;
    return result;
  };
  CHECK(Store(folder / "cache").find(entry.key, ours));
}

TEST_CASE("a disk that fails at any call costs the cache, never the program") {
  const Folder folder;
  const Entry entry = entry_of("softmax");
  ReplacedFiles calls;
  const CapturedStderr log;
  // The k-th call of any kind fails, for every k until an undisturbed pass.
  static int countdown;
  static int error;
  calls->open = [](const char* path, int flags, mode_t mode) {
    return countdown-- == 0 ? fail_with(error) : ::open(path, flags, mode);
  };
  calls->read = [](int descriptor, void* bytes, std::size_t count) -> ssize_t {
    return countdown-- == 0 ? fail_with(error) : ::read(descriptor, bytes, count);
  };
  calls->write = [](int descriptor, const void* bytes, std::size_t count) -> ssize_t {
    return countdown-- == 0 ? fail_with(error) : ::write(descriptor, bytes, count);
  };
  calls->close = [](int descriptor) {
    const int result = ::close(descriptor);
    return countdown-- == 0 ? fail_with(error) : result;
  };
  calls->fstat = [](int descriptor, struct stat* status) {
    return countdown-- == 0 ? fail_with(error) : ::fstat(descriptor, status);
  };
  calls->stat = [](const char* path, struct stat* status) {
    return countdown-- == 0 ? fail_with(error) : ::stat(path, status);
  };
  calls->rename = [](const char* from, const char* to) {
    return countdown-- == 0 ? fail_with(error) : ::rename(from, to);
  };
  calls->mkdir = [](const char* path, mode_t mode) {
    return countdown-- == 0 ? fail_with(error) : ::mkdir(path, mode);
  };
  calls->utimensat = [](int at, const char* path, const timespec* times, int flags) {
    return countdown-- == 0 ? fail_with(error) : ::utimensat(at, path, times, flags);
  };
  calls->chmod = [](const char* path, mode_t mode) {
    return countdown-- == 0 ? fail_with(error) : ::chmod(path, mode);
  };
  calls->opendir = [](const char* path) {
    if (countdown-- == 0) return errno = error, static_cast<DIR*>(nullptr);
    return ::opendir(path);
  };
  calls->readdir = [](DIR* directory) {
    if (countdown-- == 0) return errno = error, static_cast<dirent*>(nullptr);
    return ::readdir(directory);
  };
  int points = 0;
  for (const int failure :
       {ENOSPC, EIO, EROFS, EACCES, EDQUOT, EMFILE, ESTALE, ENOENT, EINTR, ENOLCK, EBUSY}) {
    for (int k = 0;; ++k) {
      const Store store(folder / ("cache" + std::to_string(failure) + "." + std::to_string(k)),
                        {.sharing = cache::Sharing::group, .note_use_after_ns = 0});
      countdown = k;
      error = failure;
      const bool stored = store.publish(entry);
      const std::optional<Entry> exact = store.find(entry.key, ours, Parts::all);
      const std::optional<Entry> any = store.find_any(entry.key, 20);
      const std::size_t listed = store.list().size();
      const bool undisturbed = countdown >= 0;
      countdown = -1;
      if (exact) CHECK((exact->cubin == entry.cubin && exact->source == entry.source));
      if (any) CHECK(any->cubin == entry.cubin);
      CHECK(listed <= 1);
      // What was reported stored is there; nothing half-written lies about.
      const std::optional<Entry> later = store.find(entry.key, ours);
      if (stored) CHECK(later);
      std::vector<std::string> names;
      if (files::list(files::directory_of(path_in(store.root(), entry)), names))
        CHECK(names.size() == (later ? 1u : 0u));
      ++points;
      if (undisturbed) {
        CHECK((stored && exact && any && listed == 1));
        break;
      }
    }
  }
  CHECK(points > 11 * 20);
}

TEST_CASE("a disk that takes and gives a few bytes at a time costs nothing but calls") {
  const Folder folder;
  const Store store(folder.path());
  const Entry entry = entry_of("softmax");
  ReplacedFiles calls;
  calls->write = [](int descriptor, const void* bytes, std::size_t count) {
    return ::write(descriptor, bytes, std::min<std::size_t>(count, 7));
  };
  calls->read = [](int descriptor, void* bytes, std::size_t count) {
    return ::read(descriptor, bytes, std::min<std::size_t>(count, 5));
  };
  REQUIRE(store.publish(entry));
  const std::optional<Entry> found = store.find(entry.key, ours, Parts::all);
  REQUIRE(found);
  CHECK(found->cubin == entry.cubin);
  CHECK(found->source == entry.source);
}

TEST_CASE("an I/O error deletes nothing") {
  const Folder folder;
  const Store store(folder.path());
  const Entry entry = entry_of("softmax");
  REQUIRE(store.publish(entry));
  {
    ReplacedFiles calls;
    calls->read = [](int, void*, std::size_t) -> ssize_t { return fail_with(EIO); };
    const CapturedStderr log;
    CHECK_FALSE(store.find(entry.key, ours));
    CHECK(contains(log.text(), "read: Input/output error"));
  }
  CHECK(store.find(entry.key, ours));
}

TEST_CASE("a store without a root, or with a file in its place, is an empty one") {
  const Folder folder;
  REQUIRE(files::publish(folder / "file", "text"));
  const Entry entry = entry_of("softmax");
  const CapturedStderr log;
  for (const std::string& root : {std::string(), folder / "file", folder / "file/below"}) {
    const Store store(root);
    CHECK_FALSE(store.publish(entry));
    CHECK_FALSE(store.find(entry.key, ours));
    CHECK_FALSE(store.find_any(entry.key, 20));
    CHECK(store.list().empty());
    CHECK(store.clear().entries == 0);
  }
  CHECK(contains(log.text(), "it is not a directory"));
}

TEST_CASE("entries are listed, loaded, removed one by one and cleared, foreign files are left") {
  const Folder folder;
  const Store store(folder.path());
  for (const char* name : {"softmax", "matmul", "blur"}) REQUIRE(store.publish(entry_of(name)));
  REQUIRE(store.publish(entry_of("blur", older)));
  const std::string foreign = files::directory_of(path_in(folder.path(), entry_of("blur")));
  REQUIRE(files::publish(foreign + "/notes.txt", "mine"));
  REQUIRE(files::publish(foreign + "/.x.1.2.tmp", "left over"));

  const std::vector<Store::Listed> listed = store.list();
  REQUIRE(listed.size() == 4);
  for (const Store::Listed& each : listed) {
    CHECK(each.bytes > 1000);
    CHECK(each.modified_ns > 0);
    const std::optional<Entry> entry = store.load(each);
    REQUIRE(entry);
    CHECK(entry->key == each.key);
    CHECK(entry->source == "source of " + entry->metadata.kernel);
  }
  CHECK(std::is_sorted(listed.begin(), listed.end(), [](const auto& a, const auto& b) {
    return std::pair(a.key, a.toolchain) < std::pair(b.key, b.toolchain);
  }));

  CHECK(store.remove(entry_of("blur").key, ours));
  CHECK(store.remove(entry_of("blur").key, ours));
  CHECK_FALSE(store.find(entry_of("blur").key, ours));
  CHECK(store.find(entry_of("blur").key, older));
  CHECK(store.clear().entries == 3);
  CHECK(store.list().empty());
  std::vector<std::string> names;
  REQUIRE(files::list(foreign, names));
  CHECK(names == std::vector<std::string>{"notes.txt"});
}

TEST_CASE("many threads publish and find one kernel and see it whole") {
  const Folder folder;
  const Store store(folder.path());
  const Entry entry = entry_of("softmax");
  std::atomic<int> found = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) {
        if (!store.publish(entry)) ++wrong;
        const std::optional<Entry> back = store.find(entry.key, ours);
        if (back && back->cubin == entry.cubin) ++found;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(found == 200);
  CHECK(wrong == 0);
  CHECK(store.list().size() == 1);
}

TEST_CASE("the root is the variable's, else the XDG cache's, else the home's") {
  const Environment home("HOME", "/home/someone");
  const Environment xdg("XDG_CACHE_HOME", "/caches");
  {
    const Environment variable("PALLADIUM_CACHE_DIR", "/kernels");
    CHECK(cache::default_root() == "/kernels");
  }
  const Environment variable("PALLADIUM_CACHE_DIR", nullptr);
  CHECK(cache::default_root() == "/caches/palladium");
  const Environment relative("XDG_CACHE_HOME", "caches");
  CHECK(cache::default_root() == "/home/someone/.cache/palladium");
  const Environment nobody("HOME", nullptr);
  CHECK(cache::default_root().empty());
}
