// NVRTC itself: real cubins, real refusals, and the process as it was before.
#include "codegen/nvrtc/nvrtc.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "palladium/error.hpp"
#include "tests/support/folder.hpp"

using namespace palladium;

namespace {

const nvrtc::Toolchain& toolchain() {
  const nvrtc::Search& search = nvrtc::toolchain();
  if (!search.found) SKIP(nvrtc::missing_toolchain_message(search));
  return *search.found;
}

nvrtc::Request scale(const std::string& arch) {
  return {.source =
              "#include \"scale.cuh\"\n"
              "extern \"C\" __global__ void scale(float* a, int n) {\n"
              "  __shared__ float rows[128];\n"
              "  int i = blockIdx.x * 128 + threadIdx.x;\n"
              "  rows[threadIdx.x] = i < n ? twice(a[i]) : 0;\n"
              "  __syncthreads();\n"
              "  if (i < n) a[i] = rows[threadIdx.x ^ 1];\n"
              "}\n",
          .headers = {{"scale.cuh", "__device__ inline float twice(float x) { return 2 * x; }\n"}},
          .arch = arch};
}

}  // namespace

TEST_CASE("a kernel compiles to a cubin for every architecture that we promise") {
  for (const char* arch : {"sm_75", "sm_80", "sm_90a", "sm_100a"}) {
    CAPTURE(arch);
    const nvrtc::Result result = nvrtc::compile(scale(arch), toolchain());
    CAPTURE(result.log);
    REQUIRE(result.ok);
    REQUIRE(result.cubin.size() > 64);
    CHECK(std::memcmp(result.cubin.data(),
                      "\x7f"
                      "ELF",
                      4) == 0);
    CHECK(result.ptx.find(std::string(".target ") + arch) != std::string::npos);
    CHECK(result.ptx.find(".entry scale(") != std::string::npos);
    CHECK(result.milliseconds > 0);
    const Resources resources = nvrtc::parse_log(result.log);
    CHECK(resources.registers > 0);
    CHECK(resources.shared_bytes >= 512);
    CHECK(resources.spill_store_bytes == 0);
    CHECK(resources.barriers == 1);
    CHECK(resources.warnings.empty());
  }
}

TEST_CASE("the same request gives the same cubin, bit for bit") {
  const std::vector<std::byte> first = nvrtc::compile(scale("sm_90a"), toolchain()).cubin;
  CHECK(nvrtc::compile(scale("sm_90a"), toolchain()).cubin == first);
}

TEST_CASE("products and sums are not contracted behind the graph's back") {
  const nvrtc::Request request = {
      .source = "extern \"C\" __global__ void k(float* a) { a[0] = a[1] * a[2] + a[3]; }",
      .arch = "sm_90a"};
  const nvrtc::Result result = nvrtc::compile(request, toolchain());
  REQUIRE(result.ok);
  CHECK(result.ptx.find("fma") == std::string::npos);
  CHECK(result.ptx.find("mul") != std::string::npos);
}

TEST_CASE("bad source is a result whose log names the line") {
  const nvrtc::Result result = nvrtc::compile(
      {.source = "#line 42 \"attention.cpp\"\n__global__ void k() { foo(); }", .arch = "sm_90a"},
      toolchain());
  CHECK_FALSE(result.ok);
  CHECK(result.cubin.empty());
  CHECK(result.log.find("attention.cpp(42): error: identifier \"foo\" is undefined") == 0);
}

TEST_CASE("headers come with the request, never from the working directory") {
  const test::Folder folder;
  REQUIRE(files::publish(folder / "scale.cuh", "#error the file was read"));
  REQUIRE(files::publish(folder / "other.cuh", "int x;"));
  toolchain();
  char before[4096];
  REQUIRE(::getcwd(before, sizeof before) != nullptr);
  REQUIRE(::chdir(folder.path().c_str()) == 0);
  const nvrtc::Result given = nvrtc::compile(scale("sm_90a"), toolchain());
  nvrtc::Request request = scale("sm_90a");
  request.headers[0].name = "another name";
  request.source = "#include \"other.cuh\"\n" + request.source;
  const nvrtc::Result missing = nvrtc::compile(request, toolchain());
  REQUIRE(::chdir(before) == 0);
  CHECK(given.ok);
  CHECK_FALSE(missing.ok);
  CHECK(missing.log.find("could not open source file \"other.cuh\"") != std::string::npos);
}

TEST_CASE("an unknown architecture is an error that lists the known ones") {
  for (const char* arch : {"sm_42", "90a", "sm_90b", "sm_80a", "sm_90aa", "compute_90", ""}) {
    CAPTURE(arch);
    try {
      nvrtc::compile(scale(arch), toolchain());
      FAIL("compiled");
    } catch (const CompileError& error) {
      const std::string message = error.what();
      CHECK(message.find("unknown architecture '" + std::string(arch) + "'; kernels are ") == 0);
      CHECK(message.find("sm_75, ") != std::string::npos);
      CHECK(message.find("sm_90, sm_90a, ") != std::string::npos);
    }
  }
}

TEST_CASE("a bad option is a result whose log names it") {
  nvrtc::Request request = scale("sm_90a");
  request.options = {"--frobnicate"};
  const nvrtc::Result result = nvrtc::compile(request, toolchain());
  CHECK_FALSE(result.ok);
  CHECK(result.log.find("--frobnicate") != std::string::npos);
}

TEST_CASE("signal handlers and the stack limit survive concurrent compiles") {
  const auto mine = [](int) {};
  struct sigaction action = {};
  action.sa_handler = mine;
  struct sigaction before[2];
  sigaction(SIGINT, &action, &before[0]);
  sigaction(SIGTERM, &action, &before[1]);
  rlimit stack;
  REQUIRE(getrlimit(RLIMIT_STACK, &stack) == 0);
  toolchain();

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int j = 0; j < 3; ++j) nvrtc::compile(scale("sm_90a"), *nvrtc::toolchain().found);
    });
  for (std::thread& thread : threads) thread.join();

  struct sigaction after;
  for (const int signal : {SIGINT, SIGTERM}) {
    sigaction(signal, nullptr, &after);
    CHECK(after.sa_handler == action.sa_handler);
  }
  rlimit stack_after;
  REQUIRE(getrlimit(RLIMIT_STACK, &stack_after) == 0);
  CHECK(stack_after.rlim_cur == stack.rlim_cur);
  sigaction(SIGINT, &before[0], nullptr);
  sigaction(SIGTERM, &before[1], nullptr);
}

TEST_CASE("the toolchain is the library that was found, with a portable id") {
  const nvrtc::Toolchain& found = toolchain();
  CHECK(found.id.size() == 16);
  CHECK(found.id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK((found.major > 12 || (found.major == 12 && found.minor >= 9)));
  const std::vector<std::string> architectures = nvrtc::architectures(found);
  CHECK(std::find(architectures.begin(), architectures.end(), std::string("sm_100a")) !=
        architectures.end());
}
