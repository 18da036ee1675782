// Passes one at a time: tests/passes/cases/<pass>/*.txt, whose form tests/support/pass_case.hpp
// says. PALLADIUM_TEST_REFRESH=1 build/test_passes "each pass does*" writes anew what they expect;
// build/pass_case prints a new case.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/graph/transform.hpp"
#include "codegen/passes/manifest.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/passes/lowering.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/pass_case.hpp"
#include "tests/support/random_graph.hpp"
#include "tests/support/seeds.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

// Every program that passes make of the kernel is read back as what it is, and what the others make
// of it then is what they make of the program itself.
void check_read_back(const graph::Graph& g, int compute_capability) {
  struct Behind {
    std::string attempt, pass, text;
  };
  std::vector<Behind> all;
  (void)cuda::lower(g, {.compute_capability = compute_capability},
                    [&](const passes::PassRun& run, const lowered::Program& l) {
                      all.push_back({run.attempt, run.pass, lowered::to_full_text(l)});
                    });
  const auto is_last = [](const std::string& pass) {
    return pass == passes::attempt_passes().back().name ||
           pass == passes::chosen_passes().back().name;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].attempt, all[i].pass);
    lowered::Program l = lowered_of(all[i].text);
    REQUIRE(changes(all[i].text, lowered::to_full_text(l)) == "unchanged\n");
    if (is_last(all[i].pass)) continue;
    bool behind = false;
    for (const auto& passes : {passes::attempt_passes(), passes::chosen_passes()})
      for (const passes::Pass& p : passes) {
        if (behind) p.run(l);
        behind = (behind || p.name == all[i].pass) && !is_last(p.name);
      }
    const auto end = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i), all.end(),
                                  [&](const Behind& b) { return is_last(b.pass); });
    REQUIRE(changes(end->text, lowered::to_full_text(l)) == "unchanged\n");
  }
}

/// Texts in which characters, words or lines are others than they were.
class Mutation {
 public:
  explicit Mutation(std::uint64_t seed) : random_(seed) {}

  std::string of(const std::vector<std::string>& texts) {
    std::string text = texts[below(texts.size())];
    for (std::size_t n = 1 + below(2); n > 0; --n) change(text, texts[below(texts.size())]);
    return text;
  }

 private:
  struct Part {
    std::size_t at = 0, size = 0;
  };

  void change(std::string& text, const std::string& other) {
    constexpr std::string_view ends[] = {"", " =:[],\n", "\n"};
    const std::string_view end = ends[below(std::size(ends))];
    const Part part = part_of(text, end), from = part_of(other, end);
    switch (below(5)) {
    case 0: text.erase(part.at, part.size); return;
    case 1: text.insert(part.at, text.substr(part.at, part.size)); return;
    case 2: text.replace(part.at, part.size, number()); return;
    case 3: {
      const std::string taken = text.substr(part.at, part.size);
      text.erase(part.at, part.size);
      text.insert(part_of(text, end).at, taken);
      return;
    }
    default: text.replace(part.at, part.size, other, from.at, from.size);
    }
  }

  // What stands somewhere between two of the characters, with the one at its end; one character if
  // there are none.
  Part part_of(const std::string& text, std::string_view ends) {
    if (text.empty()) return {};
    const std::size_t at = below(text.size());
    if (ends.empty()) return {at, 1};
    const std::size_t before = text.find_last_of(ends, at);
    const std::size_t begin = before == std::string::npos || before == at ? at : before + 1;
    return {begin, std::min(text.find_first_of(ends, begin), text.size() - 1) + 1 - begin};
  }

  std::string number() {
    constexpr const char* numbers[] = {"0", "-1", "7", "99", "4294967296", "x", "-"};
    return numbers[below(std::size(numbers))];
  }

  // std::uniform_int_distribution is another one in each library.
  std::size_t below(std::size_t n) { return random_() % n; }

  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("each pass does to a program what its cases say") {
  std::map<std::string, int> cases;
  for (const std::string& path : pass_case_files()) {
    CAPTURE(path);
    PassCase c = PassCase::parse(text_of(path));
    CHECK(c.pass == std::filesystem::path(path).parent_path().filename());
    CHECK(changes(c.input, lowered::to_full_text(lowered_of(c.input))) == "unchanged\n");
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

TEST_CASE("passes of which the manifest says so edit the graph in their cases, no others do") {
  std::map<std::string, bool> edits;
  for (const std::string& path : pass_case_files()) {
    const PassCase c = PassCase::parse(text_of(path));
    edits[c.pass] |= c.edits_graph();
  }
  for (const auto& passes : {passes::attempt_passes(), passes::chosen_passes()})
    for (const passes::Pass& p : passes) {
      CAPTURE(p.name);
      CHECK(edits[p.name] == (p.edits == passes::Edits::graph));
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

TEST_CASE("whatever is done to the text of a program, it is refused or read") {
  std::vector<std::string> texts;
  for (const std::string& path : pass_case_files())
    texts.push_back(PassCase::parse(text_of(path)).input);
  int read = 0, refused = 0;
  for_seeds(0, 2000, [&](std::uint64_t seed) {
    const std::string text = Mutation(seed).of(texts);
    CAPTURE(text);
    std::string again;
    try {
      again = lowered::to_full_text(lowered_of(text));
    } catch (const std::exception& e) {
      CHECK(std::string(e.what()) != "");
      ++refused;
      return;
    }
    ++read;
    CHECK(lowered::to_full_text(lowered_of(again)) == again);
  });
  CHECK(read > 0);
  CHECK(refused > 0);
}

TEST_CASE("what a program has not is refused with the line that names it") {
  const std::string graph =
      whole({"f32[32]"}, {"f32[32]"}, "  %2: f32[32] = load %0\n  store %1, %2");
  const auto refusal = [&](const std::string& lines) -> std::string {
    try {
      lowered_of(graph + "lowered\n" + lines);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "";
  };
  const std::string storages = "storage 0 dtype=f32 shape=[32]\nstorage 1\n";
  CHECK(refusal(storages + "body\nagent all 1 {\nsync\n}\n") == "");
  const std::pair<const char*, const char*> lines[] = {
      {"body\nagent all 1 {\nspill from=s2\n}", "'spill' is no statement in 'spill from=s2'"},
      {"body\nagent all 1 {\ncopy_storage from=s0 to=s2\n}",
       "there is no s2 in 'copy_storage from=s0 to=s2'"},
      {"body\nagent all 1 {\ncopy_storage from=s0 to=s-2\n}", "there is no s-2"},
      {"body\nagent all 1 {\nwait_group storages=[s0,s7]\n}", "there is no s7"},
      {"body\nagent all 1 {\nnest sink=assign storage=s9\n}", "there is no s9"},
      {"body\nagent all 1 {\nnest redirects=[s0:[0]:s4]\n}", "there is no s4"},
      {"body\nagent all 1 {\nnest variable=v3\n}", "there is no v3"},
      {"body\nagent all 1 {\nnest layout=\"dom(32) x\"\n}", "layout text: expected"},
      {"body\nagent all 1 {\nwindow window=w0\n}", "there is no w0"},
      {"body\nagent all 1 {\nadvance ring=r1\n}", "there is no r1"},
      {"body\nagent all 1 {\ncopy from=%2 to=s0 box=b5\n}", "%2 is no view"},
      {"body\nagent all 1 {\ncopy from=s0 to=s0 box=b5\n}", "there is no b5"},
      {"body\nagent all 1 {\ncopy from=w3 to=s0\n}", "there is no w3"},
      {"body\nagent all 1 {\ncopy from=s0[%2 to=s1\n}", "expected a slot"},
      {"body\nagent all 1 {\ncopy from=s0[-] to=s1\n}", "expected a value"},
      {"body\nagent all 1 {\ncopy from=s0 to=s1:%7\n}", "%7 is not in the graph"},
      {"body\nagent all 1 {\nwait barrier=m0\n}", "there is no m0"},
      {"body\nagent all 1 {\nrelayout from=s0 to=s1\n}",
       "these storages have no layouts of one domain"},
      {"body\nagent all 1 {\nrelayout from=s0 to=s8\n}",
       "these storages have no layouts of one domain"},
      {"agent all 1 {\n}", "no body stands in front of it"},
      {"body\nagent all 0 {\n}", "an agent is of one warpgroup at least"},
      {"storage_of %2:2", "there is no s2"},
      {"storage_of -:0", "expected a value"},
      {"around %9:0", "%9 is not in the graph"}};
  for (const auto& [text, words] : lines) {
    CAPTURE(text);
    CHECK_THAT(refusal(storages + text), Shows({"line 1", words}));
  }
  CHECK_THAT(refusal("window 0 mapping=0"), Shows({"a window has no root"}));
}
