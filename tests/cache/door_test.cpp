// The table of file functions is the only door: with its functions replaced by ones that touch
// nothing, the system sees no call that names a file of the cache.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "cache/manifest.hpp"
#include "cache/store.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"

using namespace palladium;
using test::fail_with;
using test::Folder;

namespace {

const std::string ours = "0123456789abcdef";

/// Everything that the cache does with files.
void use_cache() {
  const std::string root = std::getenv("PALLADIUM_CACHE_DIR");
  const cache::Store store(root, {.note_use_after_ns = 0});
  cache::Entry entry;
  entry.key = cache::key_of({{"graph", "softmax"}});
  entry.toolchain = ours;
  entry.cubin.assign(100, std::byte{1});
  store.publish(entry);
  (void)store.find(entry.key, ours);
  (void)store.find_any(entry.key, 20);
  (void)store.list();
  (void)store.problem();
  store.sweep();
  store.remove(entry.key, ours);
  store.clear();
  cache::Manifest manifest;
  cache::ManifestWriter writer(root + "/kernels.json");
  writer.add({.kernel = "softmax", .graph = "{}"});
  (void)cache::read_manifest(root + "/kernels.json", manifest);
}

void close_the_door() {
  files::Functions& calls = files::functions();
  calls.open = [](const char*, int, mode_t) { return fail_with(EIO); };
  calls.stat = [](const char*, struct stat*) { return fail_with(ENOENT); };
  calls.rename = [](const char*, const char*) { return fail_with(EIO); };
  calls.unlink = [](const char*) { return fail_with(EIO); };
  calls.mkdir = [](const char*, mode_t) { return 0; };
  calls.rmdir = [](const char*) { return fail_with(EIO); };
  calls.chmod = [](const char*, mode_t) { return fail_with(EIO); };
  calls.utimensat = [](int, const char*, const timespec*, int) { return fail_with(EIO); };
  calls.realpath = [](const char*, char*) { return errno = EIO, static_cast<char*>(nullptr); };
  calls.opendir = [](const char*) { return errno = EIO, static_cast<DIR*>(nullptr); };
}

/// The lines of strace's log that name a file below the cache's root, calls that start programs
/// aside.
int calls_on_the_cache(const Folder& folder, const char* test_case) {
  std::string program;
  REQUIRE(files::resolve("/proc/self/exe", program));
  const std::string log = folder / "strace", root = folder / "the-cache";
  const test::Finished traced = test::run_program(
      {"/usr/bin/env", "strace", "-f", "-o", log, "-e", "trace=file", program, test_case},
      {{"PALLADIUM_CACHE_DIR", root}});
  INFO(traced.err);
  REQUIRE(traced.status == 0);
  const std::string text = test::text_of(log);
  int count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    count +=
        line.find("the-cache") != std::string::npos && line.find("execve") == std::string::npos;
    at = end + 1;
  }
  return count;
}

}  // namespace

TEST_CASE("HIDDEN the cache with its door open", "[.]") { use_cache(); }
TEST_CASE("HIDDEN the cache with its door closed", "[.]") {
  close_the_door();
  const test::CapturedStderr quiet;
  use_cache();
}

TEST_CASE("the table of file functions is the only door to the file system") {
  const Folder folder;
  if (test::run_program({"/usr/bin/env", "strace", "-o", folder / "probe", "/bin/true"}).status !=
      0)
    SKIP("needs strace");
  CHECK(calls_on_the_cache(folder, "HIDDEN the cache with its door open") > 20);
  CHECK(calls_on_the_cache(folder, "HIDDEN the cache with its door closed") == 0);
}
