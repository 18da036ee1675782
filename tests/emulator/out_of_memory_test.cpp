// Whatever allocation fails, in whichever thread of the emulator: the call ends with an error, and
// the next one works.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/allocations.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/process.hpp"
#include "tests/support/small_kernel.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using test::SmallKernel;

namespace {

using Words = std::vector<std::uint32_t>;

constexpr int blocks = 6;

/// Blocks of threads that meet and read what others have written in shared memory.
SmallKernel busy(Words& o, int warpgroups = 2) {
  const std::string threads = std::to_string(128 * warpgroups);
  SmallKernel k("  const u32 smem = pl::shared_base(), threads = " + threads + R"(;
  const u32 t = 128 * pl::warpgroup() + pl::thread();
  u32 v = t;
  pl::store_shared(smem + 4 * t, &v);
  pl::block_sync();
  pl::load_shared(&v, smem + 4 * (threads - 1 - t));
  pl::store_global(o + threads * pl::block_x() + t, &v);
  )");
  k.warpgroups = warpgroups;
  k.grid = {blocks, 1, 1};
  o.assign(static_cast<std::size_t>(blocks * 128 * warpgroups), 0);
  k.writes("u32", "o", o);
  return k;
}

Words reversed(int warpgroups = 2) {
  const auto threads = static_cast<std::uint32_t>(128 * warpgroups);
  Words expected;
  for (std::uint32_t i = 0; i < blocks * threads; ++i)
    expected.push_back(threads - 1 - i % threads);
  return expected;
}

/// What a run says, with the `n`-th allocation failing; `has_failed` is whether there were so many.
std::string error_of(const SmallKernel& k, const emulator::Options& options, long n = 0,
                     bool* has_failed = nullptr) {
  std::string error;
  k.launch(options, [&](const emulator::Launch& launch) {
    std::optional<test::FailingAllocation> failing;
    if (n > 0) failing.emplace(n);
    try {
      emulator::run(launch);
    } catch (const CudaError& e) {
      failing.reset();
      error = e.what();
    }
    if (has_failed != nullptr) *has_failed = test::FailingAllocation::has_failed();
  });
  return error;
}

}  // namespace

TEST_CASE("an allocation that fails on any worker is an error of the call, and the next works") {
  Words o;
  const SmallKernel k = busy(o);
  for (const int workers : {1, 3}) {
    const emulator::Options options = {.workers = workers};
    k.run(options);
    int failures = 0;
    bool has_failed = true;
    // Each of the first, where everything is made, then ever fewer.
    for (long n = 1; has_failed; n += 1 + n / 50) {
      const std::string error = error_of(k, options, n, &has_failed);
      CAPTURE(workers, n, error);
      if (!error.empty()) {
        ++failures;
        REQUIRE_THAT(error, ContainsSubstring("emulator: kernel 'k': out of memory"));
      }
      std::fill(o.begin(), o.end(), 0u);
      k.run(options);
      REQUIRE(o == reversed());
    }
    CHECK(failures > 50);
  }
}

namespace {

/// The address space of this process, in bytes.
rlim_t mapped_bytes() {
  std::string text = test::text_of("/proc/self/statm");
  return static_cast<rlim_t>(std::atoll(text.c_str())) * static_cast<rlim_t>(::getpagesize());
}

}  // namespace

TEST_CASE("stacks for which there is no memory are an error of the call, and the next works") {
  Words o;
  const SmallKernel k = busy(o, 8);
  (void)emulator::prepare("k", k.text());
  // In a thread of its own, which has no stacks from earlier launches.
  const auto run = [&] {
    rlimit before;
    getrlimit(RLIMIT_AS, &before);
    // With the least of it there is no room for what stands before the stacks either.
    int of_stacks = 0;
    for (rlim_t more = 1 << 20; more <= 32 << 20; more <<= 1) {
      const rlimit tight = {mapped_bytes() + more, before.rlim_max};
      setrlimit(RLIMIT_AS, &tight);
      const std::string error = error_of(k, {.workers = 1});
      setrlimit(RLIMIT_AS, &before);
      if (error.find("out of memory (") == std::string::npos) return 1;
      if (error.find("no memory for 32 stacks of 131072 bytes") != std::string::npos) ++of_stacks;
    }
    if (of_stacks == 0) return 3;
    return error_of(k, {.workers = 2}).empty() && o == reversed(8) ? 0 : 2;
  };
  CHECK(test::status_of_fork([&] {
          ::alarm(60);
          int status = 4;
          std::thread([&] { status = run(); }).join();
          return status;
        }) == 0);
}

TEST_CASE("where no thread can be started the caller's runs the kernel alone") {
  Words o;
  const SmallKernel k = busy(o);
  k.run({.workers = 1});
  std::fill(o.begin(), o.end(), 0u);
  CHECK(test::status_of_fork([&] {
          ::alarm(60);
          // Root is above the limit.
          if (::geteuid() == 0 && ::setuid(59'002) != 0) return 1;
          const rlimit none = {0, 0};
          setrlimit(RLIMIT_NPROC, &none);
          return error_of(k, {.workers = 4}).empty() && o == reversed() ? 0 : 2;
        }) == 0);
}
