// effects() by mutation: of a kind of statement one answer is left out wherever somebody asks, and
// a case of tests/passes/cases fails; so for each answer of each kind. Those that no pass asks for
// stand here, and change no kernel: whoever asks for one takes it out, and adds a case.
#include <unistd.h>

#include <algorithm>
#include <compare>
#include <csignal>
#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/cuda/emit.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "palladium/error.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/support/effect_words.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/full.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/pass_case.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::test;

namespace effect_mutants {
namespace {

using lowered::Effect;
using lowered::Effects;
using lowered::testing::Heard;
using lowered::testing::Kind;

/// An answer of a kind; or, of any, a member of all of its answers.
struct Answer {
  std::string kind, words;
  auto operator<=>(const Answer&) const = default;
};

struct Unasked {
  const char *kind, *words;
};

// What semaphores and index maps touch in global memory: the emulator sees it (observed_test.cpp).
constexpr Unasked of_global_memory[] = {{"semaphore", "reads result window elected"},
                                        {"semaphore", "updates result window elected"},
                                        {"window", "reads control window"}};

// Where a loop ends its own statement says, too.
constexpr Unasked of_loops[] = {{"ahead", "reads control storage"},
                                {"lead", "reads control storage"}};

/// The answers that no pass asks for.
std::set<Answer> unasked() {
  std::set<Answer> all;
  for (const Unasked& u : of_global_memory) all.insert({u.kind, u.words});
  for (const Unasked& u : of_loops) all.insert({u.kind, u.words});
  return all;
}

constexpr const char* members[] = {"role",  "replaces", "leaf",       "map",
                                   "proxy", "elected",  "completion", "barrier"};

std::vector<Answer> all_answers() {
  std::vector<Answer> answers;
  for (const char* member : members) answers.push_back({"any", member});
  std::string kind, line;
  for (const char c : std::string_view(effects_by_kind)) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line.starts_with("  "))
      answers.push_back({kind, line.substr(2)});
    else
      kind = line;
    line.clear();
  }
  return answers;
}

void blank_member(const std::string& member, Effect& e) {
  constexpr Effect blank{};
  if (member == "role") e.role = blank.role;
  if (member == "replaces") e.storage = e.own_storage(), e.replaces = blank.replaces;
  if (member == "leaf") e.leaf = blank.leaf;
  if (member == "map") e.map = blank.map;
  if (member == "proxy") e.proxy = blank.proxy;
  if (member == "elected") e.elected = blank.elected;
  if (member == "completion") e.on = blank.on, e.completion = blank.completion;
  if (member == "barrier") e.barrier = blank.barrier;
}

/// Blanks the answer among those of a statement of some kind.
void blank(const Answer& answer, const Kind& kind, Effects& effects) {
  if (answer.kind == "any")
    for (Effect& e : effects.all) blank_member(answer.words, e);
  if (answer.kind != kind_of(kind)) return;
  std::erase_if(effects.all, [&](const Effect& e) { return words_of(e) == answer.words; });
  if (answer.words == "syncs") effects.syncs = false;
  if (answer.words == "fences") effects.fences = false;
  if (answer.words == "tells") effects.tells = false;
}

/// A case, and what its pass hears of effects().
struct HeardCase {
  PassCase passing;
  std::set<Answer> heard = {};

  bool hears(const Answer& answer) const { return answer.kind == "any" || heard.contains(answer); }
};

std::vector<HeardCase> all_cases() {
  std::vector<HeardCase> cases;
  for (const std::string& file : pass_case_files()) {
    HeardCase c{PassCase::parse(text_of(file))};
    const Heard listening([&](const Kind& kind, Effects& effects) {
      for (const std::string& words : words_of(effects)) c.heard.insert({kind_of(kind), words});
    });
    (void)c.passing.result();
    cases.push_back(std::move(c));
  }
  return cases;
}

/// The lines that a pass takes away and adds, but what it says of them; or its refusal.
std::string decided(const std::string& changes) {
  std::string decisions, line;
  for (const char c : changes) {
    line += c;
    if (c != '\n') continue;
    const bool is_remark = line.substr(1).starts_with("  remark:");
    if (!is_remark && !line.starts_with('@') && line != "unchanged\n") decisions += line;
    line.clear();
  }
  return decisions;
}

bool fails(const PassCase& c) {
  try {
    return decided(c.result()) != decided(c.expected);
  } catch (const std::exception&) {
    return true;
  }
}

// A pass that lacks an answer may do anything: it runs in a process of its own, whose signals are
// not the test's.
bool is_missed(const Answer& answer, const std::vector<HeardCase>& cases) {
  const int status = status_of_fork([&] {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL})
      std::signal(signal, SIG_DFL);
    ::alarm(60);
    const Heard without([&](const Kind& kind, Effects& e) { blank(answer, kind, e); });
    return std::ranges::any_of(
               cases, [&](const HeardCase& c) { return c.hears(answer) && fails(c.passing); })
               ? 1
               : 0;
  });
  return status != 0;
}

/// What becomes of a kernel, or why it is refused: its text; or what that is made of, where the
/// graph of a case has semaphores, but not the arrays that count them.
std::string lowered_for(const graph::Graph& g, int compute_capability) {
  const cuda::Options options{.compute_capability = compute_capability};
  try {
    return graph::has_semaphores(g) ? lowered::to_full_text(cuda::lower(g, options))
                                    : cuda::emit(g, options).text;
  } catch (const CompileError& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("each answer of each kind is one that a case of a pass misses") {
  const std::vector<HeardCase> cases = all_cases();
  std::set<Answer> listed = unasked();
  for (const Answer& answer : all_answers()) {
    CAPTURE(answer.kind, answer.words);
    const bool is_unasked = listed.erase(answer) > 0;
    CHECK(is_missed(answer, cases) != is_unasked);
  }
  for (const Answer& gone : listed)
    FAIL_CHECK(gone.kind << " never answers '" << gone.words << "'");
}

TEST_CASE("an answer that no pass asks for changes no kernel, and none has others") {
  const std::set<Answer> answers = unasked();
  std::set<Answer> heard;
  const auto lowered_without = [&](const graph::Graph& g, int cc, const std::set<Answer>& some) {
    // Members last: without them answers have other words.
    const Heard without([&](const Kind& kind, Effects& effects) {
      for (const bool of_any : {false, true})
        for (const Answer& a : some)
          if ((a.kind == "any") == of_any) blank(a, kind, effects);
    });
    return lowered_for(g, cc);
  };
  const auto check = [&](const graph::Graph& g, int compute_capability) {
    const std::string text = [&] {
      const Heard listening([&](const Kind& kind, const Effects& effects) {
        for (const std::string& words : words_of(effects)) heard.insert({kind_of(kind), words});
      });
      return lowered_for(g, compute_capability);
    }();
    CHECK(lowered_without(g, compute_capability, answers) == text);
  };
  for (const ops::Entry& entry : ops::registry()) {
    CAPTURE(entry.name);
    const std::vector<ArgType> types(entry.inputs.begin(), entry.inputs.end());
    for (const int compute_capability : {75, 80, 90})
      check(graph::from_json(entry.factory().lower(types).json()), compute_capability);
  }
  for (std::uint64_t seed = 0; seed < (is_full() ? 200 : 20); ++seed) {
    CAPTURE(seed);
    check(random_kernel(seed, {.aliases = seed % 2 == 1}).graph, seed % 3 == 0 ? 75 : 90);
  }
  const std::vector<std::string> files = pass_case_files();
  for (std::size_t i = 0; i < files.size(); i += is_full() ? 1 : 5) {
    CAPTURE(files[i]);
    const lowered::Program l = lowered_of(PassCase::parse(text_of(files[i])).input);
    check(l.graph, l.machine.compute_capability);
  }
  for (const Answer& a : all_answers()) heard.erase(a);
  for (const Answer& more : heard)
    FAIL_CHECK(more.kind << " has no row '" << more.words << "', of which cases know nothing");
}

}  // namespace effect_mutants
