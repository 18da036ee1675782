// Compile helpers: what comes from one is what NVRTC in this process would have given, and this
// process does not notice that there is one.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "palladium/error.hpp"
#include "tests/support/compile_helper.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;
using nvrtc::Pool;
using test::helper_options;
using test::scale;
using test::toolchain;

namespace {

/// What both ways of compiling say of a request: the result's log, or the exception.
std::string refusal(const nvrtc::Request& request, const nvrtc::Toolchain& by, Pool* pool) {
  try {
    const nvrtc::Result result =
        pool ? pool->compile(request, by).result : nvrtc::compile(request, by);
    CHECK(!result.ok);
    return "log: " + result.log;
  } catch (const CompileError& error) {
    return std::string("CompileError: ") + error.what();
  } catch (const CudaError& error) {
    return std::string("CudaError: ") + error.what();
  }
}

}  // namespace

TEST_CASE("a helper gives the cubin, PTX and log that NVRTC gives in this process") {
  Pool pool(helper_options(), 1);
  const nvrtc::Result here = nvrtc::compile(scale(), toolchain());
  for (int i = 0; i < 3; ++i) {
    const Pool::Outcome there = pool.compile(scale(), toolchain());
    REQUIRE(there.end == Pool::End::result);
    CHECK(there.result.ok);
    CHECK(there.result.cubin == here.cubin);
    CHECK(there.result.ptx == here.ptx);
    CHECK(nvrtc::parse_log(there.result.log) == nvrtc::parse_log(here.log));
    CHECK(there.result.milliseconds > 0);
  }
}

TEST_CASE("a helper is used again and again") {
  Pool pool(helper_options(), 1);
  CHECK(pool.idle_processes().empty());
  pool.compile(scale(), toolchain());
  const std::vector<process::Id> first = pool.idle_processes();
  REQUIRE(first.size() == 1);
  pool.compile(scale("sm_80"), toolchain());
  CHECK(pool.idle_processes() == first);
}

TEST_CASE("what NVRTC refuses, it refuses in a helper with the same words") {
  Pool pool(helper_options(), 1);
  const auto check_same = [&](const nvrtc::Request& request, const nvrtc::Toolchain& by,
                              const std::string& words) {
    const std::string here = refusal(request, by, nullptr);
    CHECK_THAT(here, ContainsSubstring(words));
    CHECK(refusal(request, by, &pool) == here);
  };
  check_same({.source = "__global__ void k() { foo(); }", .arch = "sm_90a"}, toolchain(),
             "log: kernel.cu(1): error: identifier \"foo\" is undefined");
  check_same({.source = "", .options = {"--frobnicate"}, .arch = "sm_90a"}, toolchain(),
             "--frobnicate");
  check_same(scale("sm_42"), toolchain(),
             "CompileError: unknown architecture 'sm_42'; kernels are compiled for sm_75, ");
  nvrtc::Toolchain missing = toolchain();
  missing.library = "/nonexistent/libnvrtc.so.13";
  check_same(scale(), missing, "CudaError: NVRTC could not be loaded: /nonexistent/");
  // And goes on compiling.
  CHECK(pool.compile(scale(), toolchain()).result.ok);
}

TEST_CASE("a helper is no child of its program: no wait meets it, no signal tells of it") {
  static volatile sig_atomic_t signals = 0;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) { signals = signals + 1; };
  sigaction(SIGCHLD, &action, &before);
  std::optional<process::Id> helper;
  {
    Pool pool(helper_options(), 1);
    REQUIRE(pool.compile(scale(), toolchain()).result.ok);
    helper = pool.idle_processes().at(0);
    CHECK(test::children_of(process::Id::self()).empty());
  }
  CHECK(test::ends_within(*helper, 3000));
  CHECK(test::children_of(process::Id::self()).empty());
  CHECK(signals == 0);
  sigaction(SIGCHLD, &before, nullptr);
}

TEST_CASE("a helper has no descriptor of its program's but its socket") {
  int inherited[2];
  REQUIRE(::pipe(inherited) == 0);  // not close-on-exec
  Pool pool(helper_options(), 1);
  REQUIRE(pool.compile(scale(), toolchain()).result.ok);
  const process::Id helper = pool.idle_processes().at(0);
  const std::vector<process::Id> workers = test::children_of(helper);
  REQUIRE(workers.size() == 1);
  for (const process::Id process : {helper, workers[0]}) {
    const std::vector<std::string> open = test::descriptors_of(process);
    REQUIRE(open.size() > 3);
    for (const std::string& name : open) {
      INFO(name);
      const bool is_expected = name == "/dev/null" || name.starts_with("socket:") ||
                               name == "anon_inode:[pidfd]" || name.starts_with("pipe:");
      CHECK(is_expected);
      CHECK(name != test::descriptor_name(inherited[0]));
    }
  }
  ::close(inherited[0]);
  ::close(inherited[1]);
}

TEST_CASE("a helper has a session of its own, which no terminal's Ctrl-C reaches") {
  Pool pool(helper_options(), 1);
  REQUIRE(pool.compile(scale(), toolchain()).result.ok);
  const process::Id helper = pool.idle_processes().at(0);
  CHECK(::getsid(helper.number()) == helper.number());
  CHECK(::getpgid(helper.number()) == helper.number());
  const process::Id worker = test::children_of(helper).at(0);
  CHECK(::getsid(worker.number()) == helper.number());
}
