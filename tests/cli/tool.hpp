// The built tool, run with a cache of the test's own and, unless a test says otherwise, no GPU.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"

namespace palladium::test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

class Tool {
 public:
  Finished operator()(const std::vector<std::string>& arguments,
                      const std::vector<Variable>& more = {}) const {
    std::vector<std::string> command = {binary_dir() + "/palladium"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::vector<Variable> variables = more;
    for (const Variable& each : {Variable{"PALLADIUM_CACHE_DIR", cache()},
                                 Variable{"PALLADIUM_LIBCUDA", "no-such-libcuda.so.1"}})
      if (std::ranges::count(more, each.first, &Variable::first) == 0) variables.push_back(each);
    Finished finished = run_program(command, variables);
    UNSCOPED_INFO("stdout: " << finished.out);
    UNSCOPED_INFO("stderr: " << finished.err);
    return finished;
  }

  /// The object that a command with --json prints, which must be all that it prints there.
  Json json(std::vector<std::string> arguments, const std::vector<Variable>& more = {},
            int status = 0) const {
    arguments.push_back("--json");
    const Finished finished = (*this)(arguments, more);
    REQUIRE(finished.status == status);
    Json object = Json::parse(finished.out);
    REQUIRE(object.is_object());
    return object;
  }

  std::string cache() const { return folder / "cache"; }

  Folder folder;
};

/// How every error of the tool looks.
inline void check_error(const Finished& finished, int status, const std::string& words) {
  CHECK(finished.status == status);
  CHECK(finished.out.empty());
  CHECK_THAT(finished.err, ContainsSubstring("palladium: "));
  CHECK_THAT(finished.err, ContainsSubstring(words));
}

/// Where a GPU is pretended.
inline Variable fake_gpu() {
  return {"PALLADIUM_LIBCUDA", binary_dir() + "/tests/fake/libcuda.so.1"};
}
inline const Variable no_nvrtc = {"PALLADIUM_NVRTC", "/nonexistent"};

}  // namespace palladium::test
