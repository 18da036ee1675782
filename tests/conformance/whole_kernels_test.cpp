// Whole kernels as gpu_check compares them, without a GPU.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "codegen/base/files.hpp"
#include "codegen/graph/transform.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/tracing.hpp"

using namespace palladium;
using pl::_;

TEST_CASE("whole kernels are held against the interpreter where it says what they give") {
  const test::Folder folder, kernels;
  const BlockSpec row{{1, 8}, [](Index i) { return Indices{i, 0}; }};
  const auto graph = [&](auto body, PallasCallOptions options) {
    options.out_type = {{4, 8}, f32};
    options.grid = 4;
    options.in_specs = {row};
    options.out_specs = {options.compiler_params.allow_revisit ? BlockSpec() : row};
    return graph::to_json(test::traced(body, options, {test::array({4, 8}, f32)}));
  };
  const std::pair<const char*, std::string> graphs[] = {
      {"json-fine", graph([](Ref x, Ref o) { o[_] = x[_] * 2.0f; }, {.name = "fine"})},
      {"json-order",
       graph(
           [](Ref x, Ref o) {
             o[_] = full({4, 8}, sum(x[_]), f32);
           },
           {.name = "order",
            .compiler_params = {.dimension_semantics = {parallel}, .allow_revisit = true}})},
      {"json-parts", graph(
                         [](Ref x, Ref o) {
                           o[{0, ds(0, 4)}] = x[{0, ds(0, 4)}];
                         },
                         {.name = "parts"})}};
  for (const auto& [name, json] : graphs) REQUIRE(files::publish(kernels / name, json));
  const auto run = [&](std::vector<std::string> arguments, const std::string& library) {
    const std::string file = folder / "results.json";
    arguments.insert(arguments.begin(), {test::binary_dir() + "/gpu_conformance", "--kernels",
                                         kernels.path(), "--random", "3", "--json", file});
    const test::Finished done = test::run_program(
        arguments, {{"PALLADIUM_LIBCUDA", library}, {"PATH", std::getenv("PATH")}});
    INFO(done.out << done.err);
    std::map<std::string, std::string> states;
    const auto report = nlohmann::json::parse(test::text_of(file));
    for (const auto& check : report["checks"]) states[check["name"]] = check["state"];
    CHECK(states.size() == 6);
    CHECK(states["recorded/order"] == "skipped");
    CHECK(states["recorded/parts"] == "skipped");
    return std::pair(done.status, states["recorded/fine"] + " " + states["random/1"]);
  };
  const std::pair<int, std::string> passed(0, "passed passed"), failed(1, "failed failed");
  CHECK(run({"--interpret"}, "/nonexistent") == passed);
  CHECK(run({"--emulate"}, "/nonexistent") == passed);
  CHECK(run({}, test::binary_dir() + "/tests/fake/libcuda.so.1") == failed);
}
