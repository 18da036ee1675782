// Passes one at a time: tests/passes/cases/<pass>/*.txt, whose form tests/support/pass_case.hpp
// says. PALLADIUM_TEST_REFRESH=1 build/test_passes "each pass does*" writes anew what they expect;
// build/pass_case prints a new case.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/graph/transform.hpp"
#include "codegen/passes/manifest.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/passes/lowering.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/pass_case.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_dir() + "/tests/passes/cases"))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// Every program that passes make of the kernel is read back as what it is, and what the others make
// of it then is what they make of the program itself.
void check_read_back(const graph::Graph& g, int compute_capability) {
  struct Behind {
    std::string attempt, pass, text;
  };
  std::vector<Behind> all;
  (void)cuda::lower(g, {.compute_capability = compute_capability},
                    [&](const passes::PassRun& run, const passes::Lowered& l) {
                      all.push_back({run.attempt, run.pass, passes::to_full_text(l)});
                    });
  const auto is_last = [](const std::string& pass) {
    return pass == passes::attempt_passes().back().name ||
           pass == passes::chosen_passes().back().name;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].attempt, all[i].pass);
    passes::Lowered l = lowered_of(all[i].text);
    REQUIRE(changes(all[i].text, passes::to_full_text(l)) == "unchanged\n");
    if (is_last(all[i].pass)) continue;
    bool behind = false;
    for (const auto& passes : {passes::attempt_passes(), passes::chosen_passes()})
      for (const passes::Pass& p : passes) {
        if (behind) p.run(l);
        behind = (behind || p.name == all[i].pass) && !is_last(p.name);
      }
    const auto end = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i), all.end(),
                                  [&](const Behind& b) { return is_last(b.pass); });
    REQUIRE(changes(end->text, passes::to_full_text(l)) == "unchanged\n");
  }
}

}  // namespace

TEST_CASE("each pass does to a program what its cases say") {
  std::map<std::string, int> cases;
  for (const std::filesystem::path& path : case_files()) {
    CAPTURE(path);
    PassCase c = PassCase::parse(text_of(path.string()));
    CHECK(c.pass == path.parent_path().filename());
    CHECK(changes(c.input, passes::to_full_text(lowered_of(c.input))) == "unchanged\n");
    ++cases[c.pass];
    const std::string result = c.result();
    CHECK(result == c.expected);
    if (std::getenv("PALLADIUM_TEST_REFRESH") == nullptr || result == c.expected) continue;
    c.expected = result;
    std::ofstream(path) << c.text();
  }
  for (const auto& passes : {passes::attempt_passes(), passes::chosen_passes()})
    for (const passes::Pass& p : passes) {
      CAPTURE(p.name);
      CHECK(cases[p.name] >= 5);
    }
}

TEST_CASE("a program is read back from its text behind each pass, of the kernels that we ship") {
  for (const ops::Entry& entry : ops::registry()) {
    CAPTURE(entry.name);
    const std::vector<ArgType> types(entry.inputs.begin(), entry.inputs.end());
    check_read_back(graph::from_json(entry.factory().lower(types).json()), 90);
  }
}

TEST_CASE("a program is read back from its text behind each pass, of random kernels") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    check_read_back(random_kernel(seed, {.aliases = seed % 2 == 1}).graph, seed % 3 == 0 ? 75 : 90);
  }
}
