#include "codegen/passes/reads.hpp"

namespace palladium::passes {

std::vector<Read> register_reads(const Lowered& l, const LoopNest& p) {
  std::vector<Read> found;
  const DimMap all = identity_map(static_cast<int>(p.domain.size()));
  const auto add = [&](ValueId, const DimMap& map, int s) {
    if (s >= 0 && l.storages[s].place == Place::registers) found.push_back({&p, s, map});
  };
  if (const int moved = storage_moved(p.sink); moved >= 0) add(graph::no_value, all, moved);
  for_each_value(l, p, [&](ValueId v, bool enter) { for_each_leaf(l, v, all, enter, add); });
  return found;
}

}  // namespace palladium::passes
