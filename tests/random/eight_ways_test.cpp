// Random kernels in eight ways that must agree: interpreter, emulator, the graph and the lowered
// program by way of their texts, symbols against numbers, stages against none, other orders of
// blocks and threads, and the cache of another process.
//
// PALLADIUM_TEST_CALLS=10000 tries 1000, a tenth, 500-600 those from 500 to 599;
// PALLADIUM_TEST_WAYS=17 tries kernel 17 again, and shows its graph and text.
#include <array>
#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "cache/store.hpp"
#include "codegen/base/format.hpp"
#include "tests/random/eight_ways.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/hidden.hpp"

using namespace palladium;
using namespace palladium::test;

namespace eight_ways_of_random_kernels {
namespace {

constexpr const char* storing = "HIDDEN random kernels are stored by a process of their own";

struct Seeds {
  std::uint64_t first, end;
  int size() const { return static_cast<int>(end - first); }
};

Seeds parsed(const char* text, std::uint64_t part) {
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(text, &end, 10);
  return *end == '-' ? Seeds{n, std::strtoull(end + 1, nullptr, 10)} : Seeds{1, n / part + 1};
}

Seeds asked() {
  if (const char* one = std::getenv("PALLADIUM_TEST_WAYS")) {
    const std::uint64_t seed = std::strtoull(one, nullptr, 10);
    return {seed, seed + 1};
  }
  const char* many = std::getenv("PALLADIUM_TEST_CALLS");
  return many ? parsed(many, 10) : Seeds{1, 41};
}

/// How often each way was taken, and of what the kernels were made.
struct Counts {
  std::array<std::map<Verdict::Kind, int>, num_ways> ways;
  std::map<std::string, int> why_not, families;
  int refused = 0, producers = 0, sends = 0, stages = 0, persistent = 0, several_blocks = 0;

  int agreed(Way way) { return ways[static_cast<std::size_t>(way)][Verdict::Kind::agrees]; }
  void add(const Made& m) {
    producers += m.producer;
    sends += m.sends;
    stages += m.stages;
    persistent += m.persists;
    several_blocks += m.several_blocks;
  }
  std::string text() {
    std::string text;
    for (int w = 0; w < num_ways; ++w) {
      auto& counts = ways[static_cast<std::size_t>(w)];
      text += fmt::format("\n  {}: {} agree, {} differ, to {} it does not apply", name_of(Way(w)),
                          counts[Verdict::Kind::agrees], counts[Verdict::Kind::differs],
                          counts[Verdict::Kind::does_not_apply]);
    }
    for (const auto& [why, count] : why_not) text += fmt::format("\n    {}: {}", count, why);
    for (const auto& [family, count] : families) text += fmt::format("\n  {}: {}", family, count);
    return text + fmt::format(
                      "\n  {} of several blocks, {} persistent, {} with stages, {} with a "
                      "producer, {} that send; {} refused",
                      several_blocks, persistent, stages, producers, sends, refused);
  }
};

std::string description(std::uint64_t seed, const EightWays& kernel) {
  return fmt::format("PALLADIUM_TEST_WAYS={}: {}\n{}", seed, kernel.words(), kernel.graph_text());
}

void try_kernel(std::uint64_t seed, const cache::Store& entries, Counts& counts) {
  EightWays kernel(seed);
  if (!kernel.refusal().empty()) {
    ++counts.refused;
    return;
  }
  if (std::getenv("PALLADIUM_TEST_WAYS"))  // before it can crash
    std::fprintf(stderr, "%s\n%s\n", description(seed, kernel).c_str(), kernel.text().c_str());
  ++counts.families[kernel.family()];
  counts.add(kernel.made());
  const std::array<Verdict, num_ways> verdicts = kernel.run(entries);
  for (std::size_t w = 0; w < verdicts.size(); ++w) {
    const Verdict& v = verdicts[w];
    ++counts.ways[w][v.kind];
    if (v.kind == Verdict::Kind::does_not_apply)
      ++counts.why_not[fmt::format("{}: {}", name_of(Way(w)), v.why.substr(0, v.why.find('\n')))];
    if (v.kind == Verdict::Kind::differs)
      FAIL_CHECK(name_of(Way(w)) << ": " << v.why << "\n" << description(seed, kernel));
  }
}

/// Each way was taken by the share of kernels to which it applies, and such kernels are drawn.
void check_shares(Counts& counts, int kernels) {
  const auto is_share = [&](int count, int percent) { return count * 100 >= kernels * percent; };
  for (const Way way : {Way::interpreter, Way::emulator, Way::graph_text, Way::lowered_text,
                        Way::order, Way::cache})
    CHECK(is_share(counts.agreed(way), 90));
  CHECK(is_share(counts.agreed(Way::sizes), 60));
  CHECK(is_share(counts.agreed(Way::stages), 20));
  CHECK(counts.families.size() == 5);
  CHECK(is_share(counts.several_blocks, 50));
  CHECK(is_share(counts.persistent, 20));
  CHECK(is_share(counts.stages, 20));
  CHECK(is_share(counts.producers, 5));
  CHECK(is_share(counts.sends, 5));
}

TEST_CASE("random kernels agree eight ways") {
  const Seeds seeds = asked();
  // Kernels of tests run for less than their compilers do.
  const Environment compiler("PALLADIUM_CXX", "c++ -O0");
  const Folder folder;
  const Finished stored =
      run_hidden(storing, {{"PALLADIUM_CACHE_DIR", folder.path()},
                           {"PALLADIUM_TEST_STORE", fmt::format("{}-{}", seeds.first, seeds.end)}});
  INFO(stored.out << stored.err);
  REQUIRE(stored.status == 0);
  const cache::Store entries(folder.path());
  Counts counts;
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    INFO("PALLADIUM_TEST_WAYS=" << seed);  // for what crashes
    try {
      try_kernel(seed, entries, counts);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
  WARN(seeds.size() << " kernels" << counts.text());
  if (seeds.size() >= 40) check_shares(counts, seeds.size());
}

TEST_CASE("HIDDEN random kernels are stored by a process of their own", "[.]") {
  const Seeds seeds = parsed(std::getenv("PALLADIUM_TEST_STORE"), 1);
  const cache::Store entries(cache::default_root());
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    INFO("PALLADIUM_TEST_WAYS=" << seed);
    const EightWays kernel(seed);
    if (kernel.refusal().empty()) CHECK(entries.publish(kernel.entry()));
  }
}

}  // namespace
}  // namespace eight_ways_of_random_kernels
