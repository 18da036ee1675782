// Programs that no user can write yet: tests/passes/typed/*.txt, each from its text to what it
// computes, and the faults of each that are refused.
#include <algorithm>
#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "codegen/lowered/verify.hpp"
#include "codegen/nvrtc/nvrtc.hpp"
#include "codegen/passes/passes.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/pass_case.hpp"
#include "tests/support/paths.hpp"

using namespace palladium;
using namespace palladium::test;
using Catch::Matchers::StartsWith;

namespace typed {
namespace {

std::string text(const std::string& name) {
  return text_of(source_dir() + "/tests/passes/typed/" + name + ".txt");
}

/// The text with a place for all that is in shared memory, and the barriers and fences that lack.
std::string ordered(const std::string& text) {
  lowered::Program l = lowered_of(text);
  passes::place_shared_memory(l);
  passes::order_accesses(l);
  return lowered::to_full_text(l);
}

/// As it is behind the last pass.
lowered::Program placed(const std::string& text) {
  lowered::Program l = lowered_of(text);
  lowered::number_statements(l);
  return l;
}

/// What refuses the program, or "".
std::string refusal(const lowered::Program& l) {
  if (std::string what = lowered::defect(l, {.waits = true, .offsets = true, .order = true});
      !what.empty())
    return "verifier: " + what;
  Random random(1);
  test::Call call = random_call(l.graph, {}, random, true), expected = call;
  run_interpreter(l.graph, expected);
  try {
    run_emulator(l, call);
  } catch (const std::exception& e) {
    return e.what();
  }
  const std::string wrong = difference(l.graph, expected, call);
  return wrong.empty() ? "" : "result: " + wrong;
}

// Whether the line is an event of what agents and engines do for one another.
bool is_event(const std::string& line) {
  const std::size_t at = line.find_first_not_of(' ');
  const std::string word = line.substr(at, line.find(' ', at) - at);
  constexpr const char* words[] = {"wait", "arrive", "sync",       "fence",
                                   "copy", "close",  "wait_group", "advance"};
  return std::ranges::find(words, word) != std::end(words);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The program without each of its events, and what refuses it then: "sync: ...".
std::vector<std::string> refusals_without_each(const std::string& name) {
  const std::vector<std::string> lines = lines_of(ordered(text(name)));
  const auto begin = std::ranges::find(lines, "  body");
  std::vector<std::string> all;
  for (auto line = begin; line != lines.end(); ++line) {
    if (!is_event(*line)) continue;
    std::string without;
    for (auto other = lines.begin(); other != lines.end(); ++other)
      if (other != line) without += *other + "\n";
    all.push_back(line->substr(line->find_first_not_of(' ')) + ": " + refusal(placed(without)));
  }
  return all;
}

// Whether it is among these, or a race, a hang or a fault that the emulator reports.
bool is_refused(const std::string& refusal) {
  return refusal.find(": verifier: ") != std::string::npos ||
         refusal.find(": emulator: kernel '") != std::string::npos;
}

// A block that leaves while another still reads its memory: the emulator keeps it.
constexpr const char* unseen[] = {"exchange: sync of=cluster: "};

constexpr const char* names[] = {"by-hand", "turns",     "multicast", "exchange",
                                 "union",   "in-flight", "persistent"};

}  // namespace

TEST_CASE("a typed program is read, is right, and computes what its graph says") {
  for (const char* const name : names) {
    CAPTURE(name);
    const std::string program = text(name);
    CHECK(changes(program.substr(program.find('\n') + 1),
                  lowered::to_full_text(lowered_of(program))) == "unchanged\n");
    CHECK(refusal(placed(ordered(program))) == "");
  }
}

TEST_CASE("ptxas takes typed programs without complaint") {
  if (!nvrtc::toolchain().found) SKIP("no NVRTC");
  for (const char* const name : names) {
    CAPTURE(name);
    CHECK(compile_problem(placed(ordered(text(name))), "sm_90a") == "");
  }
}

TEST_CASE("a typed program that lacks one event is refused") {
  const std::string name = GENERATE(from_range(std::begin(names), std::end(names)));
  int events = 0;
  for (const std::string& refusal : refusals_without_each(name)) {
    CAPTURE(name, refusal);
    ++events;
    CHECK(is_refused(refusal) != (std::ranges::count(unseen, name + ": " + refusal) > 0));
  }
  CHECK(events >= 5);
}

TEST_CASE("a typed program that has an event too many, or another, is refused") {
  const auto changed = [](const std::string& name, const std::string& words,
                          const std::string& others) {
    std::string program = text(name);
    const std::size_t at = program.find(words);
    REQUIRE(at != std::string::npos);
    return refusal(placed(ordered(program.replace(at, words.size(), others))));
  };
  // Both blocks bring what one is to bring.
  CHECK_THAT(changed("multicast", "%7: bool[] = eq", "%7: bool[] = ge"),
             StartsWith("emulator: kernel"));
  // One block alone gets it.
  CHECK_THAT(changed("multicast", " multicast=%8", ""), StartsWith("emulator: kernel"));
  // A slot that the product before reads.
  CHECK_THAT(changed("by-hand", "to=s3[%17]", "to=s3[%14]"), StartsWith("emulator: kernel"));
  // The turn of the group itself.
  CHECK_THAT(changed("turns", "arrive barrier=m0 slot=%13", "arrive barrier=m0 slot=%4"),
             StartsWith("emulator: kernel"));
  // The second of the array, which lies where the first one ends.
  CHECK(changed("union", "shape=[8192] row_stride=8192", "shape=[12288] row_stride=12288") == "");
  CHECK_THAT(changed("union", "shape=[8192] row_stride=8192", "shape=[4096] row_stride=4096"),
             StartsWith("verifier: bytes: "));
  // A of the product that goes on is made anew.
  const std::string program = text("in-flight");
  const std::size_t at = program.find("    nest sink=assign storage=s14");
  const std::string nest = program.substr(at, program.find('\n', at) + 1 - at);
  std::string other = nest;
  other.replace(other.find("s14"), 3, "s8");
  CHECK_THAT(changed("in-flight", nest, nest + other), StartsWith("verifier: over: assign"));
}

}  // namespace typed
