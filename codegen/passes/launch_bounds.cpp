// How many blocks registers are to leave room for.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "codegen/passes/passes.hpp"
#include "codegen/passes/registers.hpp"
#include "codegen/thread/occupancy.hpp"

namespace palladium::passes {
namespace {

constexpr int most_blocks = 4;
constexpr std::int64_t beside_values = 24;  // for addresses, counters and what is under way

bool multiplies(const Statements& list) {
  return std::ranges::any_of(list, [](const Statement& s) {
    bool found = std::holds_alternative<Dot>(s.what);
    for_each_body(s, [&](const Statements& body) { found |= multiplies(body); });
    return found;
  });
}

}  // namespace

// The assembler knows nothing of shared memory, and takes a few registers more than another block
// would leave. What wgmma adds up has its blocks chosen for its registers; other warps than those
// that multiply are there for wgmma alone.
void bound_launch(Program& l) {
  bool is_product = false;
  for_each_list(l, [&](const Statements& list) { is_product |= multiplies(list); });
  const bool has_others =
      std::ranges::any_of(l.bodies, [](const lowered::Body& b) { return b.agents.size() > 1; });
  if (!is_product || l.wgmma_products > 0 || l.written || has_others) return;
  const int threads = l.threads() * l.warpgroups;
  const int cc = l.machine.compute_capability;
  const Resources shared{.registers = 1, .shared_bytes = static_cast<int>(l.shared_bytes)};
  int blocks = std::min({thread::occupancy(cc, threads, shared).blocks,
                         thread::blocks_of_call(l.graph, cc), most_blocks});
  if (getenv("LBD"))
    fprintf(stderr, "LBD %s held %lld threads %d blocks %d cap %lld\n", l.graph.name.c_str(),
            (long long)l.most_held, threads, blocks,
            (long long)registers_of_thread(std::int64_t{threads} * blocks));
  while (blocks > 1 &&
         l.most_held + beside_values > registers_of_thread(std::int64_t{threads} * blocks))
    --blocks;
  l.min_blocks = std::max(1, blocks);
}

}  // namespace palladium::passes
