// A manifest on the command line: warmed, shown, and what is wrong with it said.
#include "tests/cli/npy_file.hpp"
#include "tests/cli/tool.hpp"

using namespace palladium::test;

namespace {

struct Recorded {
  Recorded() {
    for (const char* kernel : {"softmax", "matmul"})
      REQUIRE(machine({"show", kernel, "--ptx", "--arch", "sm_90a"}, {{"PALLADIUM_RECORD", path()}})
                  .status == 0);
    REQUIRE(machine({"show", "matmul", "--ptx", "--arch", "sm_80"}, {{"PALLADIUM_RECORD", path()}})
                .status == 0);
  }
  std::string path() const { return machine.folder / "kernels.json"; }

  const Tool machine;
};

}  // namespace

TEST_CASE_METHOD(Recorded, "what one machine recorded another compiles, and a second time finds") {
  const Tool other;
  const Json first = other.json({"warm", path(), "--arch", "sm_90a,sm_100a"});
  CHECK(first.at("compiled") == 4);
  CHECK(first.at("kernels")[0].at("name") == path() + "#1");
  CHECK(first.at("kernels")[0].at("kernel") == "softmax");
  // Nothing to compile: no helper is asked for, and NVRTC is not loaded.
  const Finished second = other({"warm", path(), "--arch", "sm_90a,sm_100a"},
                                {{"PALLADIUM_COMPILE", "in-process"}, {"LD_DEBUG", "files"}});
  CHECK(second.status == 0);
  CHECK_THAT(second.out, StartsWith("0 compiled, 4 hits, 0 failed"));
  CHECK_THAT(second.err, ContainsSubstring("libpalladium.so"));
  CHECK_THAT(second.err, !ContainsSubstring("nvrtc"));
}

TEST_CASE_METHOD(Recorded, "the keys of a manifest are the same on every machine") {
  const Tool other;
  const Json here = machine.json({"warm", path()});
  const Json there = other.json({"warm", path()});
  CHECK(here.at("hits") == 3);
  CHECK(there.at("compiled") == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(here.at("kernels")[i].at("arch") == there.at("kernels")[i].at("arch"));
    CHECK(here.at("kernels")[i].at("key") == there.at("kernels")[i].at("key"));
  }
}

TEST_CASE_METHOD(Recorded, "a program whose manifest was warmed compiles nothing") {
  const Tool other;
  REQUIRE(other({"warm", path()}).status == 0);
  for (const char* kernel : {"softmax", "matmul"})
    CHECK(other({"show", kernel, "--ptx", "--arch", "sm_90a"}, {{"PALLADIUM_JIT", "off"}}).status ==
          0);
  // With one entry gone, that kernel is named, and only that.
  const Json entries = other.json({"cache", "list"}).at("entries");
  for (const Json& entry : entries)
    if (entry.at("kernel") == "softmax")
      REQUIRE(palladium::files::remove(entry.at("path").get<std::string>()));
  const Json lacking = other.json({"warm", path()}, {{"PALLADIUM_JIT", "off"}}, 1);
  CHECK(lacking.at("failed") == 1);
  CHECK(lacking.at("hits") == 2);
  CHECK_THAT(lacking.at("kernels")[0].at("error").get<std::string>(),
             ContainsSubstring("'softmax' for sm_90a") && ContainsSubstring("PALLADIUM_JIT=off"));
  check_error(other({"show", "blur", "--ptx"}, {{"PALLADIUM_JIT", "off"}}), 1, "'blur' for sm_90a");
}

TEST_CASE(
    "a manifest has the classes that were called and those that other sizes are of, counted") {
  const Tool machine, other;
  const auto run = [](const Tool& tool, std::size_t n, std::vector<Variable> environment) {
    const std::string x = tool.folder / "x.npy", o = tool.folder / "o.npy";
    write_npy(x, "<f4", "(" + std::to_string(n) + ",)", std::vector<float>(n, 1));
    environment.push_back({"FAKE_CUDA_ARCH", "90"});
    return tool({"run", "add", "--in", x, "--in", x, "--out", o}, environment);
  };
  const std::string path = machine.folder / "kernels.json";
  REQUIRE(run(machine, 8, {{"PALLADIUM_RECORD", path}}).status == 0);
  const Json report = other.json({"warm", path, "--arch", "sm_90a"});
  CHECK(report.at("reached") == 1);
  CHECK(report.at("reachable") == 2);  // of lengths that are no multiples of 4, and of all
  CHECK(report.at("compiled") == 3);
  CHECK_THAT(other({"warm", path, "--arch", "sm_90a"}).out,
             ContainsSubstring("1 kernel was called, 2 can be by arrays of other sizes"));
  for (const std::size_t n : {8, 1000, 1, 1001}) {
    INFO(n << " elements");
    const Finished ran = run(other, n, {{"PALLADIUM_JIT", "off"}, fake_gpu()});
    INFO(ran.err);
    CHECK(ran.status == 0);
    CHECK_THAT(ran.err, !ContainsSubstring("serves this call"));
  }
}

TEST_CASE_METHOD(Recorded, "a manifest is listed and each of its kernels shown") {
  const Json all = machine.json({"show", path()});
  REQUIRE(all.at("kernels").size() == 2);
  CHECK(all.at("kernels")[1].at("archs") == Json{"sm_90a", "sm_80"});
  const Finished text = machine({"show", path()});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, ContainsSubstring("kernels.json#1  softmax(f32["));
  CHECK_THAT(text.out, ContainsSubstring("sm_90a, sm_80  matmul.cpp:"));

  const Finished graph = machine({"show", path() + "#2"});
  CHECK(graph.status == 0);
  CHECK(graph.out == machine({"show", "matmul"}).out);
  CHECK(machine({"show", path() + "#1", "--cuda", "--ptx", "--resources"}).out ==
        machine({"show", "softmax", "--cuda", "--ptx", "--resources"}).out);
  CHECK(machine.json({"show", path() + "#1"}).at("kernel") == "softmax");
  for (const char* number : {"#0", "#3", "#x", "#"})
    check_error(machine({"show", path() + number}), 1, "has kernels #1 to #2");
  check_error(machine({"show", "none.json"}), 1, "the manifest 'none.json' cannot be read");
}

TEST_CASE_METHOD(Recorded, "a damaged line of a manifest fails, and the others are warmed") {
  REQUIRE(palladium::files::append(path(), "{\"palladium_manifest\":1,\"id\":\"0"));
  const Tool other;
  const Json report = other.json({"warm", path(), "--arch", "sm_90a"}, {}, 1);
  CHECK(report.at("compiled") == 2);
  CHECK(report.at("failed") == 1);
  CHECK(report.at("kernels")[0].at("name") == path() + ":4");
  CHECK_THAT(other({"warm", path()}).err,
             ContainsSubstring("kernels.json:4: failed: it is cut short"));
  check_error(Finished{.status = 1, .out = "", .err = machine({"show", path()}).err}, 1,
              "kernels.json:4: it is cut short");
}
