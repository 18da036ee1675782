#include "codegen/passes/reads.hpp"

namespace palladium::passes {
namespace {

// The storage that goes as it is to where the sink says, or -1.
int storage_moved(const Sink& sink) {
  return std::visit(Overloaded{[](const Assign&) { return -1; },  //
                               [](const Stage&) { return -1; }, [](const Store&) { return -1; },
                               [](const Reduce&) { return -1; }, [](const Fill&) { return -1; },
                               [](const Flush& to) { return to.storage; },
                               [](const Spill& to) { return to.from; }},
                    sink);
}

}  // namespace

std::vector<Read> register_reads(const Lowered& l, const Pass& p) {
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
