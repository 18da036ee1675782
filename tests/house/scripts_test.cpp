// What scripts/test says of tests that were skipped, with which NVRTCs scripts/setup lets it test,
// and which tests scripts/gpu_check runs.
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A ctest entry that runs this shell command and is skipped by status 4.
std::string entry(const std::string& name, const std::string& command) {
  return "add_test(\"" + name + "\" /bin/sh -c \"" + command + "\")\nset_tests_properties(\"" +
         name + "\" PROPERTIES SKIP_RETURN_CODE 4)\n";
}

/// scripts/skips on what ctest writes of such entries.
test::Finished skips(const std::string& entries) {
  const test::Folder folder;
  REQUIRE(files::publish(folder / "CTestTestfile.cmake", entries));
  const std::string results = folder / "results.xml";
  (void)test::run_program(
      {"/usr/bin/env", "ctest", "--test-dir", folder.path(), "--output-junit", results});
  return test::run_program({test::source_dir() + "/scripts/skips", results});
}

/// A checkout with nothing but scripts/setup, a toolkit of CUDA 13.0, and a pip that makes folders
/// instead of asking PyPI, where 99.7 is the newest.
class Checkout {
 public:
  Checkout() {
    write("scripts/setup", test::text_of(test::source_dir() + "/scripts/setup"));
    for (const char* file : {"include/cuda.h", "include/nvtx3/nvToolsExt.h", "lib64/libnvrtc.so.13",
                             "lib64/libnvrtc-builtins.so.13.0"})
      write(toolkit + file, "");
    write("bin/python3", R"(#!/bin/sh
case "$*" in
  "-m pip --version") ;;
  *" index versions "*) [ ! -e offline ] && echo 'nvidia-cuda-nvrtc (99.7.1)' ;;
  *)
    echo "$*" >>asked
    [ ! -e offline ] || { echo 'no route to host' >&2; exit 1; }
    while [ "$1" != --target ]; do shift; done
    version=${3#*==} && version=${version%.*} && mkdir -p "$2/nvidia/any/lib"
    : >"$2/nvidia/any/lib/libnvrtc-builtins.so.$version" ;;
esac
)");
    REQUIRE(::chmod((folder / "bin/python3").c_str(), 0700) == 0);
  }

  void write(const std::string& file, const std::string& text) const {
    REQUIRE(files::make_directories(files::directory_of(folder / file)));
    REQUIRE(files::publish(folder / file, text));
  }

  /// What setup found, a line each, behind what it said.
  test::Finished setup(const std::string& what = "nvrtcs") const {
    return test::run_program({"/bin/bash", "-c",
                              "cd '" + folder.path() + "' && source scripts/setup --" + what +
                                  " && printf '%s\\n' \"${" + what + "[@]}\""},
                             {{"PATH", folder / "bin:" + std::string(std::getenv("PATH"))},
                              {"CUDA_HOME", folder / "toolkit"}});
  }

  std::string toolkit = "toolkit/";
  test::Folder folder;
};

}  // namespace

TEST_CASE("setup finds NVRTCs in toolkits, in .deps and on PyPI, and asks PyPI once") {
  const Checkout checkout;
  const std::string newest = "99.7 " + (checkout.folder / ".deps/nvrtc-99.7/nvidia/any\n");
  const test::Finished first = checkout.setup();
  INFO(first.err);
  CHECK(first.status == 0);
  CHECK(first.out.starts_with("12.9 /"));
  CHECK_THAT(first.out, ContainsSubstring("\n13.0 " + (checkout.folder / "toolkit\n") + newest));
  const std::string asked = test::text_of(checkout.folder / "asked");
  CHECK_THAT(asked, ContainsSubstring(" nvidia-cuda-nvrtc==99.7.*\n"));
  CHECK(asked.find("13.0") == asked.npos);
  checkout.write("offline", "");
  for (int again = 0; again < 2; ++again) {
    const test::Finished done = checkout.setup();
    CHECK(done.out == first.out);
    CHECK_THAT(done.err, ContainsSubstring("taking the newest in .deps/"));
  }
  CHECK(test::text_of(checkout.folder / "asked") == asked);
}

TEST_CASE("setup finds an nvdisasm, else asks PyPI for one, once, and goes on without") {
  const Checkout checkout;
  checkout.write("offline", "");
  const test::Finished first = checkout.setup("nvdisasm"), second = checkout.setup("nvdisasm");
  INFO(first.err);
  CHECK(first.status + second.status == 0);
  if (first.out != "\n") {  // one is here
    CHECK_THAT(first.out, ContainsSubstring("/nvdisasm\n"));
    return;
  }
  CHECK_THAT(first.err, ContainsSubstring("without it no machine code"));
  CHECK(second.err.find("nvdisasm") == std::string::npos);
  CHECK_THAT(test::text_of(checkout.folder / "asked"), ContainsSubstring("nvidia-cuda-nvdisasm\n"));
  for (const std::string place : {".deps/nvdisasm/nvidia/any/bin/", "toolkit/bin/"}) {
    checkout.write(place + "nvdisasm", "");
    REQUIRE(::chmod((checkout.folder / (place + "nvdisasm")).c_str(), 0700) == 0);
    CHECK_THAT(checkout.setup("nvdisasm").out, ContainsSubstring(checkout.folder / place));
  }
}

TEST_CASE("setup says which NVRTC cannot be fetched, and goes on") {
  const Checkout checkout;
  checkout.write("offline", "");
  test::Finished done = checkout.setup();
  CHECK(done.status == 0);
  CHECK_THAT(done.out, ContainsSubstring("\n13.0 /") && ContainsSubstring("\nnewest\n"));
  CHECK_THAT(done.err, ContainsSubstring("NVRTC newest is not here and could not be fetched"));
  // PyPI knows of one that it does not give.
  checkout.write("bin/python3",
                 "#!/bin/sh\n[ \"$3\" != index ] || echo 'nvidia-cuda-nvrtc (99.7.1)'\n");
  REQUIRE(::chmod((checkout.folder / "bin/python3").c_str(), 0700) == 0);
  done = checkout.setup();
  CHECK_THAT(done.out, ContainsSubstring("\n99.7\n"));
  CHECK_THAT(done.err, ContainsSubstring("NVRTC 99.7 is not here and could not be fetched"));
}

TEST_CASE("a skip for want of a GPU is told, any other is a failure") {
  const std::string fine = entry("fine", "true"),
                    gpu = entry("gpu", "echo a.cpp:7: SKIPPED:; echo there is no GPU; exit 4");
  test::Finished told = skips(fine + gpu);
  CHECK(told.status == 0);
  CHECK(told.err == "skips: gpu: there is no GPU\n");
  told = skips(fine + gpu + entry("tool", "echo a.cpp:9: SKIPPED:; echo needs strace; exit 4"));
  CHECK(told.status == 1);
  CHECK(told.err.find("skips: tool: needs strace  <- checks nothing here\n") != std::string::npos);
  CHECK(skips(fine + "add_test(gone /nonexistent/program)\n").status == 1);
  CHECK(skips("").status == 1);
}

TEST_CASE("gpu_check runs every file of tests that asks a GPU, and no other") {
  const std::string root = test::source_dir(), script = test::text_of(root + "/scripts/gpu_check");
  for (const std::string label : {"emulator", "interpreter", "mosaic", "user_kernels"}) {
    const std::size_t begin = script.find("[test_" + label + "]='");
    REQUIRE(begin != script.npos);
    const std::string listed = script.substr(begin, script.find('\n', begin) - begin);
    std::vector<std::string> names;
    const std::string folder = root + "/tests/" + label;
    REQUIRE(files::list(folder, names));
    for (const std::string& name : names) {
      if (!name.ends_with("_test.cpp")) continue;
      const std::string text = test::text_of(folder + "/" + name);
      bool asks = false;
      for (const char* word :
           {"for_each_target(", "on_all_targets(", "problem_of(", "Target::cuda)"})
        asks = asks || text.find(word) != text.npos;
      INFO(label << "/" << name);
      CHECK(asks == (listed.find("[#" + name.substr(0, name.size() - 4) + "]") != listed.npos));
    }
  }
}
