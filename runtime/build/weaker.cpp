#include "runtime/build/weaker.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>

#include "codegen/graph/classes.hpp"
#include "runtime/call/signature.hpp"

namespace palladium::runtime {
namespace {

/// What a graph knows, as bits of a mask: one each for offsets, pointers and strides, then symbols.
enum : std::uint32_t { offsets = 1, pointers = 2, strides = 4, first_symbol = 8 };
constexpr std::size_t most_symbols = 3;  // with a bit each

using Numbers = std::vector<std::uint32_t>;

/// Each by itself, or all at once where there are many.
std::vector<Numbers> in_few(const Numbers& symbols) {
  if (symbols.size() > most_symbols) return {symbols};
  std::vector<Numbers> each;
  for (const std::uint32_t s : symbols) each.push_back({s});
  return each;
}

struct Known {
  std::uint32_t bits = 0;
  std::vector<Numbers> symbols;  // by bit
};

bool has_gaps_to_lose(const BlockMapping& m) { return m.dense && m.array_aval.shape.rank() > 1; }
bool has_wide_rows(const BlockMapping& m) { return m.alignment > m.array_aval.dtype.bytes(); }

Known known_by(const graph::Graph& g) {
  Known known;
  const auto& mappings = g.mapping.block_mappings;
  if (g.short_offsets || g.box_extents) known.bits |= offsets;
  if (std::ranges::any_of(mappings, has_wide_rows)) known.bits |= pointers;
  if (std::ranges::any_of(mappings, has_gaps_to_lose)) known.bits |= strides;
  Numbers multiples;
  for (std::uint32_t s = 0; s < g.facts.multiples.size(); ++s)
    if (g.facts.multiples[s] != 1) multiples.push_back(s);
  known.symbols = in_few(multiples);
  for (std::size_t i = 0; i < known.symbols.size(); ++i) known.bits |= first_symbol << i;
  return known;
}

/// Whether short offsets stay short where strides are given that were known before, of which nobody
/// has asked how far they reach.
bool stay_short(const graph::Graph& g) {
  return std::ranges::all_of(g.mapping.block_mappings, [](const BlockMapping& m) {
    return graph::has_runtime_reach(m) || graph::has_short_reach(m);
  });
}

graph::Graph without(const graph::Graph& g, const Known& known, std::uint32_t lost) {
  graph::Graph weaker = g;
  std::vector<std::int64_t> multiples = g.facts.multiples;
  for (std::size_t i = 0; i < known.symbols.size(); ++i)
    if ((lost & first_symbol << i) != 0)
      for (const std::uint32_t s : known.symbols[i]) multiples[s] = 1;
  for (BlockMapping& m : weaker.mapping.block_mappings)
    if ((lost & strides) != 0 && has_gaps_to_lose(m)) m.dense = false;
  graph::set_multiples(weaker, std::move(multiples));
  if ((lost & offsets) != 0 || ((lost & strides) != 0 && !stay_short(g)))
    weaker.short_offsets = weaker.box_extents = false;
  for (BlockMapping& m : weaker.mapping.block_mappings)
    if ((lost & pointers) != 0)
      m.alignment = m.array_aval.dtype.bytes();
    else if (m.dense)
      m.alignment = std::min(m.alignment, row_alignment(m.array_aval, weaker.facts));
  return weaker;
}

/// The graph in which some of the extents that are equal in the call have symbols of their own.
struct Split {
  Weaker weaker;
  int lost = 0;
};

Split split(const Specialization::Apart& apart, const std::vector<Numbers>& equal,
            std::uint32_t lost) {
  Numbers group(apart.symbols.size());
  for (std::uint32_t s = 0; s < group.size(); ++s)
    group[s] = static_cast<std::uint32_t>(std::ranges::find(apart.symbols, apart.symbols[s]) -
                                          apart.symbols.begin());
  for (std::size_t i = 0; i < equal.size(); ++i)
    if ((lost >> i & 1) != 0)
      for (const std::uint32_t s : equal[i]) group[s] = s;
  Split result{{apart.graph, {}}, std::popcount(lost)};
  graph::Graph& g = result.weaker.graph;
  const Numbers numbers = graph::unite_symbols(g, group);
  for (BlockMapping& m : g.mapping.block_mappings)
    if (m.dense) m.alignment = std::min(m.alignment, row_alignment(m.array_aval, g.facts));
  result.weaker.symbols.resize(static_cast<std::size_t>(g.num_symbols));
  for (std::size_t s = 0; s < numbers.size(); ++s)
    result.weaker.symbols[numbers[s]] = apart.symbols[s];
  return result;
}

/// The call's own graph first.
std::vector<Split> splits(const Specialization& s) {
  Numbers own(static_cast<std::size_t>(s.graph.num_symbols));
  std::iota(own.begin(), own.end(), 0u);
  std::vector<Split> result{{{s.graph, own}}};
  if (!s.apart) return result;
  Numbers followers;
  std::uint32_t next = 0;  // the first symbol of each number has a higher one than those before
  for (std::uint32_t a = 0; a < s.apart->symbols.size(); ++a)
    if (s.apart->symbols[a] == next)
      ++next;
    else
      followers.push_back(a);
  const std::vector<Numbers> equal = in_few(followers);
  for (std::uint32_t lost = 1; lost < 1u << equal.size(); ++lost)
    result.push_back(split(*s.apart, equal, lost));
  return result;
}

}  // namespace

std::vector<Weaker> weaker_graphs(const Specialization& s) {
  struct Candidate {
    Weaker weaker;
    std::pair<bool, int> cost;  // gaps cost most: an index that is multiplied, at every access
  };
  std::vector<Candidate> all;
  bool is_own = true;
  for (const Split& base : splits(s)) {
    const Known known = known_by(base.weaker.graph);
    for (std::uint32_t lost = 0; lost <= known.bits; ++lost)
      if ((lost & ~known.bits) == 0 && !(is_own && lost == 0))
        all.push_back({{without(base.weaker.graph, known, lost), base.weaker.symbols},
                       {(lost & strides) != 0, base.lost + std::popcount(lost)}});
    is_own = false;
  }
  std::ranges::stable_sort(all, {}, &Candidate::cost);
  std::vector<Weaker> result;
  for (Candidate& c : all) result.push_back(std::move(c.weaker));
  return result;
}

namespace {

/// The multiples that no call lacks.
std::vector<std::int64_t> required_multiples(const graph::Graph& g,
                                             const std::vector<Requirement>& requirements) {
  std::vector<std::int64_t> multiples(static_cast<std::size_t>(g.num_symbols), 1);
  for (const Requirement& r : requirements)
    if (const int symbol = r.extent.symbol(); symbol >= 0)
      multiples[static_cast<std::size_t>(symbol)] =
          std::lcm(multiples[static_cast<std::size_t>(symbol)], r.multiple);
  return multiples;
}

}  // namespace

std::shared_ptr<Specialization> weakest(const Specialization& s) {
  const graph::Graph& base = s.apart ? s.apart->graph : s.graph;
  const std::vector<Requirement>& requirements = s.apart ? s.apart->requirements : s.requirements;
  const Known known = known_by(base);
  if (!s.apart && known.bits == 0) return nullptr;
  auto result = std::make_shared<Specialization>(s);
  result->apart = nullptr;
  result->requirements = requirements;
  result->graph = without(base, known, known.bits);
  graph::set_multiples(result->graph, required_multiples(base, requirements));
  std::vector<bool> refs;
  for (const Operand& argument : s.signature.arguments()) refs.push_back(argument.is_ref);
  result->signature = Signature(result->graph, requirements, refs);
  result->grid = CallGrid(result->graph);
  return result;
}

std::vector<graph::Graph> reachable_classes(const Specialization& s) {
  const auto least = s.graph.num_symbols > 0 ? weakest(s) : nullptr;
  if (!least) return {};
  std::vector<std::pair<int, graph::Graph>> of_sizes;
  bool is_own = true;
  for (const Split& base : splits(s)) {
    const Known known = known_by(base.weaker.graph);
    const std::uint32_t sizes = known.bits & ~(first_symbol - 1);
    for (std::uint32_t lost = 0; lost <= sizes; lost += first_symbol)
      if ((lost & ~sizes) == 0 && !(is_own && lost == 0))
        of_sizes.emplace_back(base.lost + std::popcount(lost),
                              without(base.weaker.graph, known, lost));
    is_own = false;
  }
  std::ranges::stable_sort(of_sizes, {}, &std::pair<int, graph::Graph>::first);
  std::vector<graph::Graph> result;
  for (auto& [_, g] : of_sizes)
    if (result.size() + 2 < most_classes) result.push_back(std::move(g));
  result.push_back(least->graph);
  return result;
}

int strength(const graph::Graph& g) {
  constexpr int of_strides = 64, of_offsets = 8;  // an index that is multiplied, at every access
  int all = g.short_offsets ? 2 * of_offsets : g.box_extents ? of_offsets : 0;
  for (const BlockMapping& m : g.mapping.block_mappings)
    all += (m.dense ? of_strides : 0) + has_wide_rows(m);
  for (const std::int64_t n : g.facts.multiples) all += n > 1 ? of_offsets / 2 : 0;
  return all - g.num_symbols;  // of those that are equal there is one
}

}  // namespace palladium::runtime
