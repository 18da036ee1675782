// A disk that fails at any call while a kernel is compiled: the kernel is the one that a disk in
// order would have given, and the log says which call failed and how.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "palladium/palladium.hpp"
#include "tests/support/captured_stderr.hpp"
#include "tests/support/compile_helper.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"

using namespace palladium;
using pl::_;
using test::Environment;
using test::fail_with;
using test::Folder;
using test::ReplacedFiles;

namespace {

int countdown, error;
bool has_failed;

bool is_due() {
  if (countdown-- != 0) return false;
  has_failed = true;
  return true;
}

/// The k-th call of any kind fails.
void replace(files::Functions& calls) {
  calls.open = [](const char* path, int flags, mode_t mode) {
    return is_due() ? fail_with(error) : ::open(path, flags, mode);
  };
  calls.read = [](int file, void* bytes, std::size_t count) -> ssize_t {
    return is_due() ? fail_with(error) : ::read(file, bytes, count);
  };
  calls.write = [](int file, const void* bytes, std::size_t count) -> ssize_t {
    return is_due() ? fail_with(error) : ::write(file, bytes, count);
  };
  calls.close = [](int file) {
    const int result = ::close(file);
    return is_due() ? fail_with(error) : result;
  };
  calls.fstat = [](int file, struct stat* status) {
    return is_due() ? fail_with(error) : ::fstat(file, status);
  };
  calls.stat = [](const char* path, struct stat* status) {
    return is_due() ? fail_with(error) : ::stat(path, status);
  };
  calls.rename = [](const char* from, const char* to) {
    return is_due() ? fail_with(error) : ::rename(from, to);
  };
  calls.mkdir = [](const char* path, mode_t mode) {
    return is_due() ? fail_with(error) : ::mkdir(path, mode);
  };
  calls.chmod = [](const char* path, mode_t mode) {
    return is_due() ? fail_with(error) : ::chmod(path, mode);
  };
}

Lowered kernel() {
  return pallas_call([](Ref x, Ref o) { o[_] = x[_] * 2.f; },
                     {.name = "doubling", .out_type = {{128}, f32}})
      .lower(ShapeDtype{{128}, f32});
}

/// Of one from the cache the texts may be missing: they are read apart.
bool same(const Compiled& a, const Compiled& b) {
  return std::ranges::equal(a.cubin(), b.cubin()) &&
         (a.from_cache() || a.cuda_source() == b.cuda_source());
}

}  // namespace

TEST_CASE("HIDDEN faults", "[.]") {
  const Folder folder;
  const CompileOptions options{.arch = "sm_90a"};
  const auto compiled_in = [&](const std::string& name) {
    const Environment root("PALLADIUM_CACHE_DIR", folder / name);
    return kernel().compile(options);
  };
  const Compiled cold = compiled_in("cold");
  int points = 0;
  for (const int failure : {ENOSPC, EIO, EROFS, EACCES, EDQUOT, EMFILE, ESTALE, ENOLCK, EBUSY}) {
    for (int k = 0;; ++k) {
      const std::string name = std::to_string(failure) + "." + std::to_string(k);
      const CacheStats before = cache_stats();
      const test::CapturedStderr log;
      ReplacedFiles calls;
      replace(files::functions());
      countdown = k;
      error = failure;
      has_failed = false;
      const Compiled first = compiled_in(name);
      const Compiled second = compiled_in(name);
      calls.restore();
      CHECK(same(first, cold));
      CHECK(same(second, cold));
      const CacheStats after = cache_stats();
      if (!second.from_cache() ||
          after.not_stored + after.refused > before.not_stored + before.refused) {
        // What it cost is counted and named.
        INFO(log.text());
        CHECK(has_failed);
        CHECK(log.text().find(std::strerror(failure)) != std::string::npos);
      }
      ++points;
      if (has_failed) continue;
      CHECK(second.from_cache());
      CHECK(log.text().empty());
      break;
    }
  }
  CHECK(points >= 9 * 15);
}

TEST_CASE("a disk that fails at any call while a kernel is compiled costs time and nothing else") {
  const Folder folder;
  const test::Finished child =
      test::run_hidden("HIDDEN faults", {{"PALLADIUM_NVRTC", test::fake_toolchain().library},
                                         {"PALLADIUM_COMPILE", "in-process"},
                                         {"PALLADIUM_CACHE_DIR", folder.path()}});
  INFO(child.out << child.err);
  CHECK(child.status == 0);
}
