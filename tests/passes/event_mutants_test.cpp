// Programs that lack an event of those that agents and engines wait for each other by, or have it
// in another place, are refused by the verifier; or they are right all the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/protocol.hpp"
#include "codegen/lowered/verify.hpp"
#include "palladium/error.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/passes/protocol_subjects.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/full.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::test;

namespace event_mutants {
namespace {

using lowered::Statement;
using lowered::Statements;

// "" of what is no event.
std::string event_of(const Statement& s) {
  const auto* const arrive = std::get_if<lowered::Arrive>(&s.what);
  if (arrive != nullptr) return arrive->bytes > 0 ? "expect" : "release";
  if (std::holds_alternative<lowered::Sync>(s.what)) return "sync";
  if (std::holds_alternative<lowered::Fence>(s.what)) return "fence";
  if (std::holds_alternative<lowered::Wait>(s.what)) return "wait";
  if (std::holds_alternative<lowered::WaitGroup>(s.what)) return "wait for a group";
  if (std::holds_alternative<lowered::Close>(s.what)) return "close";
  if (std::holds_alternative<lowered::Advance>(s.what)) return "advance";
  return "";
}

bool is_refused(const lowered::Program& l) {
  constexpr lowered::Behind last{.waits = true, .offsets = true, .order = true};
  return !lowered::defect(l, last).empty() || !lowered::protocol_defect(l).empty();
}

/// What a mutant computes that the program does not, or what is reported of it; "": nothing.
std::string fault_of(const lowered::Program& mutant, const lowered::Program& program) {
  Random random(1);
  test::Call call = random_call(program.graph, {}, random, true), expected = call;
  run_emulator(program, expected);
  try {
    run_emulator(mutant, call);
  } catch (const std::exception& e) {
    return e.what();
  }
  return call.arrays == expected.arrays ? "" : "another result";
}

struct Mutant {
  std::string what;
  lowered::Program program, original;
};

class Mutants {
 public:
  /// The program without each of its events, and with each behind what follows it.
  void add(const lowered::Program& program, const std::string& name, bool moves = true) {
    CAPTURE(name, lowered::to_text(program));
    REQUIRE(!is_refused(program));
    original_ = &program;
    lowered::Program l = program;
    lowered::for_each_list(l, [&](Statements& list) { visit(l, list, name, moves); });
  }

  std::map<std::string, int> left_out = {};      // how many, by event
  std::vector<Mutant> without = {}, moved = {};  // that nobody refuses
  int moves = 0;

 private:
  void visit(lowered::Program& l, Statements& list, const std::string& name, bool moves) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (const std::string event = event_of(list[i]); !event.empty()) {
        leave_out(l, list, i, event, name);
        if (moves && i + 1 < list.size()) move(l, list, i, event, name);
      }
      lowered::for_each_body(list[i], [&](Statements& body) { visit(l, body, name, moves); });
    }
  }

  void leave_out(lowered::Program& l, Statements& list, std::size_t i, const std::string& event,
                 const std::string& name) {
    const Statement s = list[i];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    ++left_out[event];
    if (!is_refused(l)) without.push_back({fmt::format("{}: no {}", name, event), l, *original_});
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), s);
  }

  void move(lowered::Program& l, Statements& list, std::size_t i, const std::string& event,
            const std::string& name) {
    std::swap(list[i], list[i + 1]);
    ++moves;
    if (!is_refused(l)) moved.push_back({fmt::format("{}: {} moved", name, event), l, *original_});
    std::swap(list[i], list[i + 1]);
  }

  const lowered::Program* original_ = nullptr;
};

lowered::Program lowered_of_random(std::uint64_t seed) {
  return cuda::lower(random_kernel(seed).graph, {.compute_capability = seed % 3 == 0 ? 80 : 90});
}

}  // namespace

TEST_CASE("a program that lacks a wait, a barrier, an arrival or a group's end is refused") {
  Mutants mutants;
  for (const ops::Entry& entry : ops::registry()) {
    const std::vector<ArgType> types(entry.inputs.begin(), entry.inputs.end());
    const graph::Graph g = graph::from_json(entry.factory().lower(types).json());
    for (const int compute_capability : {75, 80, 90, 100})
      mutants.add(cuda::lower(g, {.compute_capability = compute_capability}), entry.name, false);
  }
  for (const waiting::Subject& s : waiting::subjects())
    mutants.add(waiting::on(s.graph, s.compute_capability), s.name, false);
  for (std::uint64_t seed = 0; seed < (is_full() ? 2000 : 100); ++seed)
    mutants.add(lowered_of_random(seed), fmt::format("random {}", seed), false);
  for (const Mutant& m : mutants.without) {
    CAPTURE(m.what, lowered::to_text(m.program));
    FAIL_CHECK("nobody misses it");
  }
  for (const char* event :
       {"sync", "fence", "wait", "wait for a group", "close", "advance", "expect", "release"}) {
    CAPTURE(event);
    CHECK(mutants.left_out[event] >= 5);
  }
}

TEST_CASE("a program whose events stand in other places is refused, or right all the same") {
  Mutants mutants;
  for (const waiting::Subject& s : waiting::subjects())
    mutants.add(waiting::on(s.graph, s.compute_capability), s.name);
  for (std::uint64_t seed = 0; seed < (is_full() ? 400 : 60); ++seed)
    if (const lowered::Program l = lowered_of_random(seed); l.graph.num_symbols == 0)
      mutants.add(l, fmt::format("random {}", seed));
  CHECK(mutants.moves > 200);
  for (const Mutant& m : mutants.moved) {
    CAPTURE(m.what, lowered::to_text(m.program));
    CHECK(fault_of(m.program, m.original) == "");
  }
}

}  // namespace event_mutants
