#include "runtime/build/weaker.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "codegen/graph/classes.hpp"
#include "runtime/call/signature.hpp"

namespace palladium::runtime {
namespace {

/// What a graph knows, as bits of a mask: one each for offsets, pointers and strides, then symbols.
enum : std::uint32_t { offsets = 1, pointers = 2, strides = 4, first_symbol = 8 };
constexpr std::size_t most_symbols = 3;  // with a bit each

struct Known {
  std::uint32_t bits = 0;
  std::vector<std::vector<std::size_t>> symbols;  // by bit
};

bool has_gaps_to_lose(const BlockMapping& m) { return m.dense && m.array_aval.shape.rank() > 1; }
bool has_wide_rows(const BlockMapping& m) { return m.alignment > m.array_aval.dtype.bytes(); }

Known known_by(const graph::Graph& g) {
  Known known;
  const auto& mappings = g.mapping.block_mappings;
  if (g.short_offsets) known.bits |= offsets;
  if (std::ranges::any_of(mappings, has_wide_rows)) known.bits |= pointers;
  if (std::ranges::any_of(mappings, has_gaps_to_lose)) known.bits |= strides;
  for (std::size_t s = 0; s < g.facts.multiples.size(); ++s)
    if (g.facts.multiples[s] != 1) known.symbols.push_back({s});
  if (known.symbols.size() > most_symbols) {
    std::vector<std::size_t> all;
    for (const auto& one : known.symbols) all.push_back(one.front());
    known.symbols = {std::move(all)};
  }
  for (std::size_t i = 0; i < known.symbols.size(); ++i) known.bits |= first_symbol << i;
  return known;
}

/// Whether short offsets stay short where strides are given that were known before, of which nobody
/// has asked how far they reach.
bool stay_short(const graph::Graph& g) {
  return std::ranges::all_of(g.mapping.block_mappings, [](const BlockMapping& m) {
    if (graph::has_runtime_strides(m)) return true;
    graph::Reach reach;
    for (int d = m.array_aval.shape.rank() - 1; d >= 0; --d) {
      const Dim& extent = m.array_aval.shape[d];
      if (!extent.is_static()) return false;
      reach.add(extent.value(), m.block_shape[static_cast<std::size_t>(d)].size);
    }
    return reach.is_short();
  });
}

graph::Graph without(const graph::Graph& g, const Known& known, std::uint32_t lost) {
  graph::Graph weaker = g;
  std::vector<std::int64_t> multiples = g.facts.multiples;
  for (std::size_t i = 0; i < known.symbols.size(); ++i)
    if ((lost & first_symbol << i) != 0)
      for (const std::size_t s : known.symbols[i]) multiples[s] = 1;
  for (BlockMapping& m : weaker.mapping.block_mappings)
    if ((lost & strides) != 0 && has_gaps_to_lose(m)) m.dense = false;
  graph::set_multiples(weaker, std::move(multiples));
  if ((lost & offsets) != 0 || ((lost & strides) != 0 && !stay_short(g)))
    weaker.short_offsets = false;
  for (BlockMapping& m : weaker.mapping.block_mappings)
    if ((lost & pointers) != 0 || (m.dense && !rows_align(m.array_aval, weaker.facts)))
      m.alignment = m.array_aval.dtype.bytes();
  return weaker;
}

}  // namespace

std::vector<graph::Graph> weaker_graphs(const graph::Graph& g) {
  const Known known = known_by(g);
  std::vector<std::uint32_t> masks;
  for (std::uint32_t lost = 1; lost <= known.bits; ++lost)
    if ((lost & ~known.bits) == 0) masks.push_back(lost);
  // Gaps cost most: an index that is multiplied, at every access.
  std::ranges::stable_sort(masks, {}, [](std::uint32_t lost) {
    return std::pair((lost & strides) != 0, std::popcount(lost));
  });
  std::vector<graph::Graph> result;
  for (const std::uint32_t lost : masks) result.push_back(without(g, known, lost));
  return result;
}

}  // namespace palladium::runtime
