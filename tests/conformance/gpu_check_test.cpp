// gpu_check from its first line to its last, on a fake driver that computes what emitted texts
// would, so that the first machine with a GPU finds no fault but the kernels'.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/files.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "tests/conformance/run.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"

using namespace palladium;
using nlohmann::json;

namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string entry_of(const std::string& check) {
  for (const conformance::Case& c : conformance::all_cases())
    if (c.name == check) return c.entry;
  FAIL("no check " << check);
  return {};
}

/// A machine whose GPU is the emulator, with tools that do nothing but run what they are given.
class Machine {
 public:
  Machine() {
    const auto& real = nvrtc::toolchain().found;
    if (!real) SKIP("no NVRTC");
    for (const char* each : {"cuda", "cuda/lib64", "texts", "tools"})
      REQUIRE(files::make_directories(folder_ / each));
    const std::string library = folder_ / ("cuda/lib64/" + base_name(real->library)),
                      builtins = folder_ / ("cuda/lib64/" + base_name(real->builtins)),
                      fakes = test::binary_dir() + "/tests/fake";
    REQUIRE(::symlink((fakes + "/libnvrtc_keeping.so").c_str(), library.c_str()) == 0);
    REQUIRE(::symlink(real->builtins.c_str(), builtins.c_str()) == 0);
    tool("compute-sanitizer", "while [ \"${1#--}\" != \"$1\" ]; do shift 2; done; exec \"$@\"");
    tool("ncu", "echo 'sm__cycles_elapsed.max cycle 1,234'");
    tool("nvidia-smi", "echo Fake");
    variables_ = {{"PALLADIUM_LIBCUDA", fakes + "/libcuda.so.1"},
                  {"FAKE_CUDA_PLAYER", fakes + "/libfake_cuda_player.so"},
                  {"FAKE_CUDA_TEXTS", folder_ / "texts"},
                  {"FAKE_NVRTC_REAL", real->library},
                  {"CUDA_HOME", folder_ / "cuda"},
                  {"TMPDIR", folder_.path()},
                  {"PATH", folder_ / "tools:" + std::string(std::getenv("PATH"))}};
  }

  void tool(const std::string& name, const std::string& script) const {
    const std::string file = folder_ / ("tools/" + name);
    REQUIRE(files::publish(file, "#!/bin/sh\n" + script + "\n"));
    REQUIRE(::chmod(file.c_str(), 0700) == 0);
  }

  test::Finished check(std::vector<std::string> arguments, const std::string& faults = "") {
    arguments.insert(arguments.begin(), {test::source_dir() + "/scripts/gpu_check", "--bin",
                                         test::binary_dir(), "--results", folder_ / "results"});
    std::vector<test::Variable> variables = variables_;
    variables.emplace_back("FAKE_CUDA_FAULT", faults);
    return test::run_program(arguments, variables);
  }

  /// What the run left, which is three files.
  json report() const {
    std::vector<std::string> names;
    REQUIRE(files::list(folder_ / "results", names));
    CHECK(names.size() == 3);
    for (const std::string& name : names)
      if (name.ends_with(".json")) return json::parse(test::text_of(folder_ / ("results/" + name)));
    FAIL("no JSON");
    return {};
  }

 private:
  test::Folder folder_;
  std::vector<test::Variable> variables_;
};

std::map<std::string, std::string> states_of_steps(const json& report) {
  std::map<std::string, std::string> states;
  for (const auto& [name, step] : report["steps"].items()) states[name] = step["state"];
  return states;
}

std::map<std::string, json> checks_of(const json& report) {
  std::map<std::string, json> checks;
  for (const json& check : report["conformance"]["checks"]) checks[check["name"]] = check;
  return checks;
}

}  // namespace

TEST_CASE("gpu_check passes on a GPU that computes what the emulator does") {
  Machine machine;
  const test::Finished done =
      machine.check({"--short", "barrier/block_sync", "tma/load rank 2 swizzle 128"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK(done.out.find("gpu_check: 0 steps failed, 0 not run, ") != std::string::npos);
  const json report = machine.report();
  CHECK(report["gpu"] == "Fake H100 sm_90a 13000");
  CHECK(report["failed"] == 0);
  const auto states = states_of_steps(report);
  for (const char* step : {"gpu", "machine", "nvrtc", "doctor", "conformance", "tests", "counters",
                           "compute-sanitizer", "memcheck", "racecheck", "synccheck"}) {
    INFO(step);
    REQUIRE(states.contains(step));
    CHECK(states.at(step) == "passed");
    CHECK(done.out.find(std::string("\n") + step + " ") != std::string::npos);
  }
  CHECK(report["conformance"]["total"] == report["conformance"]["checks"].size());
  CHECK(report["conformance"]["checks"].size() > 1);
  for (const auto& [name, check] : checks_of(report)) CHECK(check["state"] == "passed");
}

TEST_CASE("what the GPU answers to questions is told, and fails only against what is assumed") {
  Machine machine;
  const std::string box = "question/load of a box of u32 at ",
                    inside = "question/swizzled A that starts inside of its pattern",
                    lane = "question/which lane is elected";
  const test::Finished done =
      machine.check({"--short", box, inside, lane}, entry_of(box + "-4, 2") + "=719");
  INFO(done.out << done.err);
  CHECK(done.status == 1);
  const json report = machine.report();
  const std::map<std::string, json> checks = checks_of(report);
  const auto state = [&](const std::string& name) { return checks.at(name).value("state", ""); };
  const auto answer = [&](const std::string& name) { return checks.at(name).value("answer", ""); };
  CHECK(state(box + "-4, 2") == "error");
  CHECK(state(box + "4, 2") == "passed");
  for (const std::string& refused : {box + "-1, 2", box + "1, 2", inside}) {
    INFO(refused);
    CHECK(state(refused) == "passed");
    CHECK(answer(refused).find("launch failure") != std::string::npos);
  }
  CHECK(answer(lane).starts_with("ballots 0x"));
  CHECK(report["conformance"]["answers"].value(lane, "") == answer(lane));
  CHECK(done.out.find("what the chip answers\n") != std::string::npos);
}

TEST_CASE(
    "gpu_check tells of results that are off, broken contexts, crashes and hangs one by one") {
  Machine machine;
  machine.tool("compute-sanitizer", "echo '========= Error: device not supported'; exit 1");
  machine.tool("ncu", "echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1");
  const std::map<std::string, std::pair<std::string, std::string>> faults = {
      {"barrier/block_sync", {"off", "failed"}},
      {"barrier/warp_sync", {"719", "error"}},
      {"barrier/warpgroup_sync", {"crash", "crashed"}},
      {"ids/without clusters", {"hang", "hung"}}};
  std::string orders;
  for (const auto& [check, fault] : faults) orders += entry_of(check) + "=" + fault.first + ",";
  const test::Finished done = machine.check({"barrier", "ids"}, orders);
  INFO(done.out << done.err);
  CHECK(done.status == 1);
  const json report = machine.report();
  const auto states = states_of_steps(report);
  CHECK(states.at("conformance") == "failed");
  CHECK(states.at("compute-sanitizer") == "missing");
  CHECK(states.at("counters") == "missing");
  CHECK(report["failed"] == 1);
  CHECK(report["conformance"]["failed"] == faults.size());
  CHECK(report["conformance"]["total"] == report["conformance"]["checks"].size());
  std::map<std::string, json> checks = checks_of(report);
  for (const auto& [name, check] : checks) {
    INFO(check.dump(1));
    CHECK(check["state"] == (faults.contains(name) ? faults.at(name).second : "passed"));
    if (faults.contains(name)) CHECK(done.out.find(": " + name + "\n") != std::string::npos);
  }
  // What is off can be mended elsewhere.
  const json& off = checks["barrier/block_sync"];
  CHECK(off["differing"][0]["differ"] == 1);
  REQUIRE(off["differing"][0]["elements"].size() == 1);
  CHECK(off["differing"][0]["elements"][0].size() == 3);
  CHECK(off["text"].get<std::string>().find("pl::block_sync()") != std::string::npos);
  CHECK(off["log"].get<std::string>().find("registers") != std::string::npos);
  CHECK(checks["barrier/warp_sync"]["detail"].get<std::string>().find("719") == std::string::npos);
  CHECK(checks["barrier/warp_sync"]["detail"].get<std::string>().find("launch failure") !=
        std::string::npos);
}
