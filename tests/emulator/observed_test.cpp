// effects() held against what happens: an answer that is left out is an access that the emulator
// sees, and that no statement owns up to.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "codegen/graph/cost.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/lowered/effects_for_tests.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/effect_words.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/full.hpp"
#include "tests/support/lowered_text.hpp"
#include "tests/support/pass_case.hpp"

using namespace palladium;
using namespace palladium::test;

namespace observed_effects {
namespace {

using lowered::testing::Kind;
using Answer = std::pair<std::string, std::string>;  // a kind, its words

struct Kernel {
  graph::Graph graph;
  int compute_capability = 90;
};

// "" if every access is among what its statement touches, without that answer.
std::string problem(const Kernel& k, const Answer& without, std::set<Answer>* heard) {
  Random random(3);
  test::Call call = random_call(k.graph, {}, random, true);
  const auto blank = [&](const Kind& kind, lowered::Effects& effects) {
    if (heard != nullptr)
      for (const std::string& words : words_of(effects)) heard->insert({kind_of(kind), words});
    if (kind_of(kind) != without.first) return;
    std::erase_if(effects.all, [&](const auto& e) { return words_of(e) == without.second; });
  };
  try {
    run_emulator(k.graph, {.compute_capability = k.compute_capability}, call, true, blank);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

// Cases of several passes have the same ones; some are of sizes that no test runs.
std::vector<Kernel> kernels() {
  constexpr double most_flops = 1 << 28;
  std::vector<Kernel> all;
  std::set<std::pair<std::string, int>> known;
  for (const std::string& file : pass_case_files()) {
    const lowered::Program l = lowered_of(PassCase::parse(text_of(file)).input);
    const int compute_capability = l.machine.compute_capability;
    if (l.graph.num_symbols == 0 &&
        static_cast<double>(graph::estimate_cost(l.graph).flops) < most_flops &&
        known.insert({graph::to_text(l.graph), compute_capability}).second)
      all.push_back({l.graph, compute_capability});
  }
  return all;
}

// Answers that are no accesses of memory: of registers and scalars, of barriers, which the emulator
// has beside memory, of who waits for what and which slot is next.
const std::set<Answer> not_memory = {
    {"advance", "updates block ring"},
    {"ahead", "reads control storage"},
    {"ahead", "updates block ring"},
    {"ahead", "writes block storage"},
    {"arrive", "updates barrier storage elected completes mbarrier"},
    {"arrive", "updates barrier storage elected mbarrier"},
    {"arrive", "reads control storage"},
    {"assign", "reads subscript storage"},
    {"assign", "writes result storage"},
    {"clear", "reads value storage"},
    {"close", "awaits closes cp_async_group"},
    {"close", "awaits elected closes bulk_group"},
    {"copy", "reads control storage"},
    {"copy", "reads subscript storage"},
    {"copy_storage", "writes result storage"},
    {"dot", "reads control storage"},
    {"dot", "reads value storage completes wgmma_group"},
    {"dot", "updates result storage"},
    {"dot", "updates result storage completes wgmma_group"},
    {"dot", "writes result storage"},
    {"dot", "writes result storage completes wgmma_group"},
    {"fence", "fences"},
    {"grid_loop", "reads control storage"},
    {"if_whole", "reads block window"},
    {"inline", "reads control storage"},
    {"inline", "reads subscript storage"},
    {"inline", "reads value storage"},
    {"inline", "writes result storage"},
    {"lead", "reads control storage"},
    {"lead", "updates block ring"},
    {"lead", "writes block storage"},
    {"loop", "reads control storage"},
    {"loop", "writes result storage"},
    {"reduce", "reads subscript storage"},
    {"reduce", "reads value storage in place of another"},
    {"reduce", "syncs"},
    {"relayout", "reads value storage"},
    {"relayout", "syncs"},
    {"relayout", "writes result storage"},
    {"scalar", "reads subscript storage"},
    {"scalar", "writes result storage"},
    {"scan", "reads subscript storage"},
    {"scan", "reads value storage"},
    {"scan", "syncs"},
    {"spill", "reads value storage"},
    {"semaphore", "syncs"},
    {"semaphore", "writes result storage"},
    {"stage", "reads subscript storage"},
    {"store", "reads mask storage"},
    {"store", "reads mask storage in place of another"},
    {"store", "reads subscript storage"},
    {"switch", "reads control storage"},
    {"switch", "writes result storage"},
    {"sync", "syncs"},
    {"update", "reads subscript storage"},
    {"update", "reads value storage"},
    {"wait", "reads barrier storage awaits mbarrier"},
    {"wait", "reads control storage"},
    {"wait", "syncs"},
    {"wait", "writes result storage"},
    {"wait_group", "awaits awaits cp_async_group"},
    {"wait_group", "awaits elected awaits bulk_group"},
    {"wait_group", "updates result storage awaits wgmma_group"},
    {"when", "reads control storage"},
    {"while", "reads control storage"},
    {"window", "writes block window"}};

// Of a user's CUDA C++, which the emulator runs as it stands.
const std::set<Answer> unobserved = {{"inline", "reads value window"},
                                     {"inline", "updates result window"}};

// Answers for which no pass asks, and no verifier.
const std::set<Answer> seen_here_alone = {{"scalar", "reads value window"},
                                          {"semaphore", "reads result window elected"},
                                          {"window", "reads control window"}};

std::string text_of(const std::set<Answer>& answers) {
  std::string text;
  for (const auto& [kind, words] : answers) text += kind + " " + words + "\n";
  return text;
}

}  // namespace

TEST_CASE("an access of memory that no statement says it makes is seen, of each kind") {
  const std::vector<Kernel> all = kernels();
  std::set<Answer> unseen, seen;
  // What touches no memory that is observed would be tried with each kernel.
  constexpr int most_tries = 4;
  std::map<Answer, int> tries;
  for (std::size_t i = 0; i < all.size(); i += is_full() ? 1 : 12) {
    std::set<Answer> heard;
    if (!problem(all[i], {}, &heard).empty()) continue;
    for (const Answer& a : heard) {
      const bool is_expected = not_memory.contains(a) || unobserved.contains(a);
      if (seen.contains(a) || (is_expected && ++tries[a] > most_tries)) continue;
      (problem(all[i], a, nullptr).empty() ? unseen : seen).insert(a);
    }
  }
  for (const Answer& a : seen) unseen.erase(a);
  for (const Answer& a : unobserved) unseen.erase(a);
  CHECK(seen.size() >= (is_full() ? 48 : 12));
  for (const Answer& a : not_memory) {
    CAPTURE(a.first, a.second);
    unseen.erase(a);
    CHECK_FALSE(seen.contains(a));
  }
  if (!is_full()) return;
  CHECK(text_of(unseen) == "");
  for (const Answer& a : seen_here_alone) {
    CAPTURE(a.first, a.second);
    CHECK(seen.contains(a));
  }
}

}  // namespace observed_effects
