#include "runtime/call/class_words.hpp"

#include <algorithm>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/graph/classes.hpp"
#include "runtime/call/extent.hpp"

namespace palladium::runtime {
namespace {

/// Whose extent it is: "args[0].shape[1]".
std::string extent_of(const graph::Graph& g, std::uint32_t symbol) {
  for (const BlockMapping& m : g.mapping.block_mappings)
    for (int d = 0; d < m.array_aval.shape.rank(); ++d)
      if (Extent(m.array_aval.shape[d]).symbol() == static_cast<int>(symbol))
        return fmt::format("{}.shape[{}]", m.origin, d);
  return symbol_name(symbol);
}

}  // namespace

std::string open_classes(const graph::Graph& g) {
  std::vector<std::string> found;
  const std::vector<std::int64_t> multiples = graph::class_multiples(g);
  for (std::uint32_t s = 0; s < multiples.size(); ++s)
    if (multiples[s] > 1 && g.facts.multiple(s) % multiples[s] != 0)
      found.push_back(fmt::format("{} a multiple of {} or not", extent_of(g, s), multiples[s]));
  for (const auto& [a, b] : graph::alike_symbols(g))
    found.push_back(fmt::format("{} and {} equal or not", extent_of(g, a), extent_of(g, b)));
  if (graph::has_runtime_reach(g) && !g.short_offsets) {
    found.emplace_back("arrays below 2^31 elements or not");
    if (!g.box_extents && std::ranges::any_of(g.mapping.block_mappings, graph::may_be_box))
      found.emplace_back("extents below 2^31 and strides below 2^40 bytes or not");
  }
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace palladium::runtime
