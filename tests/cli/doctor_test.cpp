// `palladium doctor` on machines that have, lack or break what kernels need.
#include <sys/stat.h>

#include <map>

#include "tests/cli/tool.hpp"

using namespace palladium::test;

namespace {

std::map<std::string, Json> findings(const Json& report) {
  std::map<std::string, Json> by_name;
  for (const Json& finding : report.at("findings")) by_name[finding.at("name")] = finding;
  return by_name;
}

}  // namespace

TEST_CASE("doctor on a machine without a GPU says so, and that kernels are interpreted") {
  const Tool palladium;
  const Json report = palladium.json({"doctor"});
  CHECK(report.at("ok") == true);
  CHECK(report.at("target") == "interpreter");
  CHECK(report.at("version") == "0.1.0");
  auto found = findings(report);
  CHECK(found.size() == 6);
  CHECK(found.at("driver").at("ok") == false);
  CHECK_THAT(found.at("driver").at("found"), ContainsSubstring("no CUDA driver"));
  CHECK_THAT(found.at("driver").at("advice"), ContainsSubstring("install the NVIDIA driver"));
  CHECK(found.at("gpu").at("ok") == false);
  CHECK(found.at("nvrtc").at("ok") == true);
  CHECK(found.at("nvrtc").at("toolchain").get<std::string>().size() == 16);
  CHECK_THAT(found.at("nvrtc").at("path"), ContainsSubstring("libnvrtc.so"));
  CHECK_THAT(found.at("nvrtc").at("found"), ContainsSubstring("compiles for sm_75 to sm_"));
  CHECK(found.at("compile helper").at("ok") == true);
  CHECK(found.at("compile helper").at("path") == binary_dir() + "/palladium-compile");
  CHECK(found.at("cache").at("ok") == true);
  CHECK(found.at("cache").at("path") == palladium.cache());
  CHECK(found.at("cache").at("kernels") == "0");
  CHECK(found.at("host compiler").at("ok") == true);

  const Finished text = palladium({"doctor"});
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  for (const auto& [name, finding] : found) {
    CHECK_THAT(text.out, ContainsSubstring(name));
    CHECK_THAT(text.out, ContainsSubstring(finding.at("found").get<std::string>()));
    CHECK_THAT(text.out, ContainsSubstring(finding.at("advice").get<std::string>()));
  }
  CHECK_THAT(text.out, ContainsSubstring("kernels run on: interpreter"));
}

TEST_CASE("doctor names the GPU that there is") {
  const Tool palladium;
  const Json report = palladium.json({"doctor"}, {fake_gpu(), {"FAKE_CUDA_ARCH", "90"}});
  CHECK(report.at("target") == "cuda");
  auto found = findings(report);
  CHECK(found.at("driver").at("ok") == true);
  CHECK(found.at("driver").at("version") == "13.0");
  CHECK(found.at("gpu").at("ok") == true);
  CHECK(found.at("gpu").at("arch") == "sm_90a");
  CHECK_THAT(found.at("gpu").at("found"), ContainsSubstring("Fake H100, sm_90a, 80 GiB"));
}

TEST_CASE("doctor lists every GPU") {
  const Tool palladium;
  const Json report = palladium.json({"doctor"}, {fake_gpu(), {"FAKE_CUDA_DEVICES", "3"}});
  std::vector<std::string> devices;
  for (const Json& finding : report.at("findings"))
    if (finding.at("name") == "gpu") devices.push_back(finding.at("device"));
  CHECK(devices == std::vector<std::string>{"cuda:0", "cuda:1", "cuda:2"});
}

TEST_CASE("a driver that is too old or does not start is a failure with advice") {
  const Tool palladium;
  const std::vector<std::pair<Variable, std::string>> cases = {
      {{"FAKE_CUDA_VERSION", "11080"}, "update the NVIDIA driver"},
      {{"FAKE_CUDA_FAIL", "cuInit=803"}, "cuInit"},
  };
  for (const auto& [variable, words] : cases) {
    const Finished text = palladium({"doctor"}, {fake_gpu(), variable});
    CHECK(text.status == 1);
    CHECK_THAT(text.out, ContainsSubstring(words));
    CHECK_THAT(text.err, StartsWith("palladium: kernels cannot run: "));
    CHECK_THAT(text.err, ContainsSubstring("PALLADIUM_TARGET=interpreter"));
    const Json report = palladium.json({"doctor"}, {fake_gpu(), variable}, 1);
    CHECK(report.at("ok") == false);
    CHECK(report.at("target").is_null());
    CHECK_THAT(report.at("problem"), ContainsSubstring(words));
    const Json with_target =
        palladium.json({"doctor"}, {fake_gpu(), variable, {"PALLADIUM_TARGET", "interpreter"}});
    CHECK(with_target.at("target") == "interpreter");
  }
}

TEST_CASE("doctor says how to get the NVRTC that is missing, and what does without") {
  const Tool palladium;
  const auto nvrtc = findings(palladium.json({"doctor"}, {no_nvrtc})).at("nvrtc");
  CHECK(nvrtc.at("ok") == false);
  CHECK_THAT(nvrtc.at("found"), ContainsSubstring("PALLADIUM_NVRTC=/nonexistent"));
  CHECK_THAT(nvrtc.at("advice"), ContainsSubstring("install a CUDA toolkit"));
  CHECK_THAT(nvrtc.at("advice"), ContainsSubstring("kernels in the cache"));
}

TEST_CASE("doctor says why a cache cannot be used") {
  const Tool palladium;
  const std::string file = palladium.folder / "file";
  REQUIRE(palladium::files::publish(file, std::string_view("not a folder")));
  const auto cache_at = [&](const std::string& path) {
    return findings(palladium.json({"doctor"}, {{"PALLADIUM_CACHE_DIR", path}})).at("cache");
  };
  CHECK(cache_at(file).at("ok") == false);
  CHECK_THAT(cache_at(file).at("found"), StartsWith(file + ": "));
  CHECK_THAT(cache_at(file).at("advice"), ContainsSubstring("PALLADIUM_CACHE_DIR"));

  const std::string open_to_all = palladium.folder / "open";
  REQUIRE(::mkdir(open_to_all.c_str(), 0700) == 0);
  REQUIRE(::chmod(open_to_all.c_str(), 0777) == 0);
  CHECK(cache_at(open_to_all).at("ok") == false);
  CHECK_THAT(cache_at(open_to_all).at("found"), ContainsSubstring("chmod go-w"));
}

TEST_CASE("doctor does without a host compiler, unless kernels are to run in the emulator") {
  const Tool palladium;
  const Variable none = {"PALLADIUM_CXX", "no-such-compiler"};
  const auto compiler = findings(palladium.json({"doctor"}, {none})).at("host compiler");
  CHECK(compiler.at("ok") == false);
  CHECK_THAT(compiler.at("found"), ContainsSubstring("no-such-compiler cannot be run"));
  CHECK_THAT(compiler.at("advice"), ContainsSubstring("install g++"));
  CHECK(palladium({"doctor"}, {none, {"PALLADIUM_TARGET", "emulator"}}).status == 1);
  CHECK(palladium({"doctor"}, {{"PALLADIUM_TARGET", "emulator"}}).status == 0);
}

TEST_CASE("doctor reports a target that does not exist") {
  const Tool palladium;
  const Finished finished = palladium({"doctor"}, {{"PALLADIUM_TARGET", "gpu"}});
  CHECK(finished.status == 1);
  CHECK_THAT(finished.err, ContainsSubstring("PALLADIUM_TARGET is 'gpu'"));
}

TEST_CASE("doctor says what is wrong with the compile helper, and that kernels run all the same") {
  const Tool palladium;
  const auto finding = [&](const Variable& variable) {
    const Json report = palladium.json({"doctor"}, {variable});
    CHECK(report.at("ok") == true);
    Json helper = findings(report).at("compile helper");
    CHECK(helper.at("ok") == false);
    CHECK_THAT(helper.at("advice"), ContainsSubstring("PALLADIUM_COMPILE_HELPER"));
    return helper.at("found").get<std::string>();
  };
  CHECK(finding({"PALLADIUM_COMPILE_HELPER", "/nonexistent"}) ==
        "/nonexistent: posix_spawn: No such file or directory");
  CHECK(finding({"PALLADIUM_COMPILE_HELPER", "/bin/true"}) == "/bin/true: it ended without a word");
  CHECK(finding({"PALLADIUM_COMPILE_JOBS", "none"}) ==
        "PALLADIUM_COMPILE_JOBS is 'none'; it can be a number from 1 to 1024");
}
