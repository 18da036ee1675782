// The file helpers, and what they say when the disk misbehaves.
#include "codegen/base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/folder.hpp"

using namespace palladium;
using test::fail_with;
using test::Folder;
using test::text_of;

TEST_CASE("publishing replaces a file whole and leaves no temporary file") {
  const Folder folder;
  REQUIRE(files::publish(folder / "a", "first"));
  REQUIRE(files::publish(folder / "a", "second", files::Durability::durable));
  CHECK(text_of(folder / "a") == "second");
  CHECK(folder.names() == std::vector<std::string>{"a"});
  files::Info about;
  REQUIRE(files::info(folder / "a", about));
  CHECK(about.mode == 0600);
  CHECK(about.size == 6);
  CHECK(about.owner == ::geteuid());
  CHECK(about.modified_ns > 0);
  CHECK_FALSE(about.is_directory);
}

TEST_CASE("a publish that fails at any call keeps the old file and removes its temporary one") {
  const Folder folder;
  REQUIRE(files::publish(folder / "a", "old"));
  test::ReplacedFiles calls;
  files::Outcome outcome;
  SECTION("open") {
    calls->open = [](const char*, int, mode_t) { return fail_with(EACCES); };
    outcome = files::publish(folder / "a", "new");
    CHECK(outcome.message() == "open: Permission denied");
  }
  SECTION("write") {
    calls->write = [](int, const void*, std::size_t) -> ssize_t { return fail_with(ENOSPC); };
    outcome = files::publish(folder / "a", "new");
    CHECK(outcome.message() == "write: No space left on device");
  }
  SECTION("fsync") {
    calls->fsync = [](int) { return fail_with(EIO); };
    outcome = files::publish(folder / "a", "new", files::Durability::durable);
    CHECK(outcome.message() == "fsync: Input/output error");
  }
  SECTION("close") {
    calls->close = [](int descriptor) {
      ::close(descriptor);
      return fail_with(EDQUOT);
    };
    outcome = files::publish(folder / "a", "new");
    CHECK(outcome.message() == "close: Disk quota exceeded");
  }
  SECTION("rename") {
    calls->rename = [](const char*, const char*) { return fail_with(EROFS); };
    outcome = files::publish(folder / "a", "new");
    CHECK(outcome.message() == "rename: Read-only file system");
  }
  CHECK_FALSE(outcome);
  calls.restore();
  CHECK(text_of(folder / "a") == "old");
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("short and interrupted reads and writes are continued") {
  const Folder folder;
  test::ReplacedFiles calls;
  static int turn;
  turn = 0;
  calls->write = [](int descriptor, const void* bytes, std::size_t) -> ssize_t {
    return turn++ % 2 == 0 ? fail_with(EINTR) : ::write(descriptor, bytes, 1);
  };
  calls->read = [](int descriptor, void* bytes, std::size_t) -> ssize_t {
    return turn++ % 2 == 0 ? fail_with(EINTR) : ::read(descriptor, bytes, 1);
  };
  REQUIRE(files::publish(folder / "a", "palladium"));
  CHECK(text_of(folder / "a") == "palladium");
}

TEST_CASE("a read says which call failed, and keeps no half of the bytes") {
  const Folder folder;
  REQUIRE(files::publish(folder / "a", "0123456789"));
  std::string text = "before";
  CHECK(files::read(folder / "none", 100, text).is_missing());
  CHECK(files::read(folder / "a/b", 100, text).is_missing());
  CHECK(files::read(folder / "a", 9, text).error == EFBIG);
  CHECK(files::read(folder.path(), 100, text).error == EISDIR);
  test::ReplacedFiles calls;
  calls->read = [](int, void*, std::size_t) -> ssize_t { return fail_with(ESTALE); };
  CHECK(files::read(folder / "a", 100, text).error == ESTALE);
  CHECK(text.empty());
}

TEST_CASE("a file that shrinks while it is read gives what was there") {
  const Folder folder;
  REQUIRE(files::publish(folder / "a", "0123456789"));
  test::ReplacedFiles calls;
  static bool first;
  first = true;
  calls->read = [](int descriptor, void* bytes, std::size_t) -> ssize_t {
    return std::exchange(first, false) ? ::read(descriptor, bytes, 4) : 0;
  };
  CHECK(text_of(folder / "a") == "0123");
}

TEST_CASE("a FIFO in the place of a file is refused without waiting for a writer") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::string text;
  CHECK(files::read(folder / "pipe", 100, text).error == EINVAL);
}

TEST_CASE("a range of a file is read exactly or not at all") {
  const Folder folder;
  REQUIRE(files::publish(folder / "a", "0123456789"));
  std::vector<std::byte> bytes;
  REQUIRE(files::read_at(folder / "a", 3, 4, bytes));
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == "3456");
  CHECK(files::read_at(folder / "a", 8, 4, bytes).error == EIO);
  CHECK(bytes.empty());
}

TEST_CASE("directories are made with their parents, private, and an existing one is success") {
  const Folder folder;
  REQUIRE(files::make_directories(folder / "x/y/z"));
  REQUIRE(files::make_directories(folder / "x/y/z"));
  files::Info about;
  REQUIRE(files::info(folder / "x/y", about));
  CHECK(about.is_directory);
  CHECK(about.mode == 0700);
  REQUIRE(files::publish(folder / "file", ""));
  CHECK(files::make_directories(folder / "file").error == ENOTDIR);
  CHECK_FALSE(files::make_directories(folder / "file/below"));
}

TEST_CASE("a directory that exists on a read-only file system counts as made") {
  const Folder folder;
  test::ReplacedFiles calls;
  calls->mkdir = [](const char*, mode_t) { return fail_with(EROFS); };
  CHECK(files::make_directories(folder.path()));
  CHECK(files::make_directories(folder / "new").error == EROFS);
}

TEST_CASE("a unique directory is private, new each time, and never one that exists") {
  const Folder folder;
  std::string first, second;
  REQUIRE(files::make_unique_directory(folder / "work", first));
  REQUIRE(files::make_unique_directory(folder / "work", second));
  CHECK(first != second);
  files::Info about;
  REQUIRE(files::info(first, about));
  CHECK(about.is_directory);
  CHECK(about.mode == 0700);

  test::ReplacedFiles calls;
  calls->mkdir = [](const char*, mode_t) { return fail_with(EEXIST); };
  CHECK(files::make_unique_directory(folder / "work", second).error == EEXIST);
}

TEST_CASE("listings are sorted, and removing what is gone is success") {
  const Folder folder;
  for (const char* name : {"b", "a", "c"}) REQUIRE(files::publish(folder / name, name));
  CHECK(folder.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(files::remove(folder / "b"));
  CHECK(files::remove(folder / "b"));
  CHECK(files::remove_directory(folder / "none"));
  std::vector<std::string> names = {"left over"};
  CHECK(files::list(folder / "none", names).is_missing());
  CHECK(names.empty());
}

TEST_CASE("paths split as shells split them") {
  CHECK(files::directory_of("/a/b/c.k") == "/a/b");
  CHECK(files::directory_of("/c") == "/");
  CHECK(files::directory_of("c") == ".");
  CHECK(files::name_of("/a/b/c.k") == "c.k");
  CHECK(files::name_of("c.k") == "c.k");
}
