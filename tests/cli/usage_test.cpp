// How the tool is called, and what it says to calls that it does not understand.
#include <fmt/format.h>

#include "cache/text_digest.hpp"
#include "palladium/version.hpp"
#include "tests/cli/tool.hpp"

using namespace palladium::test;

namespace {

constexpr int bad_usage = 2;

}  // namespace

TEST_CASE("the tool tells its version and its commands") {
  const Tool palladium;
  const Finished version = palladium({"--version"});
  CHECK(version.status == 0);
  CHECK(version.out == fmt::format("palladium {}\ntext digest {}\n", PALLADIUM_VERSION_STRING,
                                   palladium::cache::text_digest));
  const Finished help = palladium({"--help"});
  CHECK(help.status == 0);
  for (const char* command : {"doctor", "list", "run", "show", "warm", "cache"})
    CHECK_THAT(help.out, ContainsSubstring(command));
  CHECK_THAT(palladium({"show", "--help"}).out, ContainsSubstring("--resources"));
}

TEST_CASE("a call that cannot be understood has status 2, and says where help is") {
  const Tool palladium;
  const std::vector<std::vector<std::string>> calls = {
      {},
      {"shw"},
      {"list", "--jsn"},
      {"list", "more"},
      {"run", "add"},
      {"run", "add", "--in", "a.npy"},
      {"run", "add", "--in", "a.npy", "b.npy", "--out", "o.npy"},
      {"show"},
      {"show", "add", "--arch"},
      {"warm"},
      {"warm", "--arch", "sm_90a"},
      {"cache"},
      {"cache", "drop"},
      {"cache", "show"},
  };
  for (const auto& call : calls) {
    const Finished finished = palladium(call);
    check_error(finished, bad_usage, "--help");
  }
  check_error(palladium({"list", "--jsn"}), bad_usage, "--jsn");
  check_error(palladium({"shw"}), bad_usage, "no command is named 'shw'; there are doctor, list, ");
  check_error(palladium({"cache", "drop"}), bad_usage,
              "no command is named 'drop'; there are list, show");
}

TEST_CASE("list shows each shipped kernel with its sentence and its default inputs") {
  const Tool palladium;
  const Finished text = palladium({"list"});
  CHECK(text.status == 0);
  const Json kernels = palladium.json({"list"}).at("kernels");
  REQUIRE(kernels.size() == 9);
  std::vector<std::string> names;
  for (const Json& kernel : kernels) {
    names.push_back(kernel.at("name"));
    CHECK_THAT(text.out, ContainsSubstring(kernel.at("name").get<std::string>()));
    CHECK_THAT(text.out, ContainsSubstring(kernel.at("sentence").get<std::string>()));
    for (const std::string input : kernel.at("inputs"))
      CHECK_THAT(text.out, ContainsSubstring(input));
  }
  CHECK(names == std::vector<std::string>{"add", "softmax", "layer_norm", "rms_norm",
                                          "cross_entropy", "matmul", "attention", "transpose",
                                          "blur"});
  CHECK(kernels[1].at("inputs").size() == 1);
  CHECK_THAT(kernels[1].at("inputs")[0].get<std::string>(), ContainsSubstring(",1000]"));
}

TEST_CASE("output that nobody takes is an error") {
  const Tool palladium;
  const Finished finished =
      run_program({"/bin/sh", "-c", "exec \"$0\" list >/dev/full", binary_dir() + "/palladium"});
  CHECK(finished.status == 1);
  CHECK_THAT(finished.err, ContainsSubstring("palladium: cannot write to stdout: No space left"));
}
