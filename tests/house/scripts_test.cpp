// What scripts/test says of tests that were skipped.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"

using namespace palladium;

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

}  // namespace

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
