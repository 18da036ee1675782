// Programs that lack an event, or have two of them in the other order, are refused.
#include <cstddef>
#include <cstdio>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/verify.hpp"
#include "palladium/error.hpp"
#include "palladium/ops/registry.hpp"
#include "tests/support/full.hpp"
#include "tests/support/pass_case.hpp"
#include "tests/support/random_graph.hpp"

using namespace palladium;
using namespace palladium::test;

namespace event_mutants {
namespace {

using lowered::Statement;
using lowered::Statements;

constexpr lowered::Behind last{.waits = true, .offsets = true, .order = true};

// "" of what is no event.
std::string event_of(const Statement& s) {
  const auto is = [&]<class T>(const T*) { return std::holds_alternative<T>(s.what); };
  if (is((lowered::Sync*)nullptr)) return "sync";
  if (is((lowered::Fence*)nullptr)) return "fence";
  if (is((lowered::Wait*)nullptr)) return "wait";
  if (is((lowered::WaitGroup*)nullptr)) return "wait_group";
  if (is((lowered::Close*)nullptr)) return "close";
  if (is((lowered::Advance*)nullptr)) return "advance";
  if (const auto* const a = std::get_if<lowered::Arrive>(&s.what))
    return a->bytes > 0 ? "expect" : "release";
  return "";
}

struct Count {
  int tried = 0, survived = 0;
  std::string first = {};
};

/// Leaves each event out of a program, and changes places of each with what follows.
class Mutants {
 public:
  void add(const lowered::Program& program, const std::string& name) {
    lowered::Program l = program;
    REQUIRE(lowered::defect(l, last) == "");
    lowered::for_each_list(l, [&](Statements& list) { visit(l, list, name); });
  }

  std::map<std::string, Count> counts = {};

 private:
  void visit(lowered::Program& l, Statements& list, const std::string& name) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (const std::string event = event_of(list[i]); !event.empty()) {
        const Statement s = list[i];
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        judge(l, event + " left out", name, i);
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), s);
        if (i + 1 < list.size()) {
          std::swap(list[i], list[i + 1]);
          judge(l, event + " behind " + word_of(list[i]), name, i);
          std::swap(list[i], list[i + 1]);
        }
      }
      lowered::for_each_body(list[i], [&](Statements& body) { visit(l, body, name); });
    }
  }

  static std::string word_of(const Statement& s) {
    const std::string event = event_of(s);
    return event.empty() ? "others" : event;
  }

  void judge(const lowered::Program& l, const std::string& what, const std::string& name,
             std::size_t at) {
    Count& c = counts[what];
    ++c.tried;
    if (!lowered::defect(l, last).empty()) return;
    if (c.survived++ == 0) c.first = fmt::format("{} at {}\n{}", name, at, lowered::to_text(l));
  }
};

}  // namespace

TEST_CASE("a program that lacks an event is refused") {
  Mutants mutants;
  for (const ops::Entry& entry : ops::registry()) {
    const std::vector<ArgType> types(entry.inputs.begin(), entry.inputs.end());
    const graph::Graph g = graph::from_json(entry.factory().lower(types).json());
    for (const int cc : {75, 80, 90})
      mutants.add(cuda::lower(g, {.compute_capability = cc}), entry.name);
  }
  for (std::uint64_t seed = 0; seed < (is_full() ? 400 : 40); ++seed)
    mutants.add(cuda::lower(random_kernel(seed).graph,
                            {.compute_capability = seed % 3 == 0 ? 80 : 90}),
                fmt::format("random {}", seed));
  for (const auto& [what, c] : mutants.counts) {
    std::printf("%-28s %5d %5d\n", what.c_str(), c.tried, c.survived);
    if (c.survived > 0) std::printf("   %s\n", c.first.c_str());
  }
}

}  // namespace event_mutants
