#include "codegen/graph/classes.hpp"

#include <optional>
#include <set>

#include "codegen/graph/index_maps.hpp"

namespace palladium::graph {
namespace {

// Strides are products of the extents behind a dimension, if there is nothing between the rows; and
// vectors end where the last dimension does, but in slices of a whole array, which end inside.
bool decides_addresses(const BlockMapping& m, int d) {
  const int rank = m.array_aval.shape.rank();
  const bool ends =
      d + 1 == rank && m.block_shape[static_cast<std::size_t>(d)].kind != BlockDim::Kind::whole;
  return ends || (m.dense && d > 0);
}

}  // namespace

std::vector<std::int64_t> class_multiples(const Graph& g) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(g.num_symbols), 1);
  for (const BlockMapping& m : g.mapping.block_mappings) {
    const std::int64_t elements = 8 * wide_alignment / m.array_aval.dtype.bits();
    std::vector<std::uint32_t> symbols;
    for (int d = 0; d < m.array_aval.shape.rank(); ++d)
      if (decides_addresses(m, d)) collect_symbols(m.array_aval.shape[d], symbols);
    for (const std::uint32_t s : symbols) result[s] = std::max(result[s], elements);
  }
  return result;
}

namespace {

bool are_cut_alike(const Graph& g, const BlockMapping& a, std::size_t i, const BlockMapping& b,
                   std::size_t j) {
  const BlockDim &x = a.block_shape[i], &y = b.block_shape[j];
  if (x.kind == BlockDim::Kind::bounded_slice || x.kind == BlockDim::Kind::whole) return false;
  return x == y && have_one_index(g, a.index_map, i, b.index_map, j);
}

std::optional<std::uint32_t> symbol_of(const Dim& d) {
  if (d.is_static()) return std::nullopt;
  const DimNode node = dim_node(d);
  return node.op == palladium::detail::DimOp::symbol ? std::optional(node.symbol) : std::nullopt;
}

}  // namespace

std::vector<SymbolPair> alike_symbols(const Graph& g) {
  if (g.num_symbols < 2) return {};
  struct Cut {
    std::uint32_t symbol;
    const BlockMapping* array;
    std::size_t dimension;
  };
  std::vector<Cut> cuts;
  std::vector<bool> of_input(static_cast<std::size_t>(g.num_symbols));
  const std::vector<BlockMapping>& mappings = g.mapping.block_mappings;
  for (std::size_t m = 0; m < mappings.size(); ++m)
    for (int d = 0; d < mappings[m].array_aval.shape.rank(); ++d)
      if (const auto s = symbol_of(mappings[m].array_aval.shape[d])) {
        cuts.push_back({*s, &mappings[m], static_cast<std::size_t>(d)});
        if (static_cast<int>(m) < g.mapping.num_inputs) of_input[*s] = true;
      }
  std::set<SymbolPair> pairs;
  for (const Cut& a : cuts)
    for (const Cut& b : cuts)
      if (a.symbol < b.symbol && a.array != b.array && of_input[a.symbol] && of_input[b.symbol] &&
          are_cut_alike(g, *a.array, a.dimension, *b.array, b.dimension))
        pairs.emplace(a.symbol, b.symbol);
  return {pairs.begin(), pairs.end()};
}

namespace {

/// Whether it is computed from a program id, and from nothing in memory.
bool differs_by_program(const Graph& g, const BlockMapping& m, std::size_t dimension) {
  if (m.index_map == no_region) return false;
  const Region& map = g[RegionId{m.index_map}];
  std::vector<ValueId> stack{map.yields[dimension]};
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second) continue;
    if (g[v].op == Op::Param && g[v].type.is_value()) return true;
    stack.insert(stack.end(), g[v].args.begin(), g[v].args.end());
  }
  return false;
}

}  // namespace

std::vector<SharedWalk> shared_walks(const Graph& g) {
  std::vector<MappedDimension> cuts;
  const std::vector<BlockMapping>& mappings = g.mapping.block_mappings;
  const auto at = [&](const MappedDimension& d) { return static_cast<std::size_t>(d.dimension); };
  for (std::size_t m = 0; m < mappings.size(); ++m)
    for (int d = 0; d < mappings[m].array_aval.shape.rank(); ++d)
      if (mappings[m].block_shape[at({m, d})].kind != BlockDim::Kind::bounded &&
          differs_by_program(g, mappings[m], at({m, d})))
        cuts.push_back({m, d});
  std::vector<SharedWalk> walks;
  for (std::size_t a = 0; a < cuts.size(); ++a)
    for (std::size_t b = a + 1; b < cuts.size(); ++b)
      if (cuts[a].mapping != cuts[b].mapping &&
          are_cut_alike(g, mappings[cuts[a].mapping], at(cuts[a]), mappings[cuts[b].mapping],
                        at(cuts[b])))
        walks.emplace_back(cuts[a], cuts[b]);
  return walks;
}

std::vector<std::uint32_t> unite_symbols(Graph& g, std::span<const std::uint32_t> group) {
  std::vector<std::uint32_t> from, number(group.size());
  std::vector<Dim> to;
  std::vector<std::int64_t> multiples;
  for (std::uint32_t s = 0; s < group.size(); ++s) {
    const bool is_new = group[s] == s;
    number[s] = is_new ? static_cast<std::uint32_t>(multiples.size()) : number[group[s]];
    if (is_new) multiples.push_back(1);
    // Powers of two.
    multiples[number[s]] = std::max(multiples[number[s]], g.facts.multiple(s));
    from.push_back(s);
    to.push_back(dim_symbol(number[s]));
  }
  for (BlockMapping& m : g.mapping.block_mappings)
    for (int d = 0; d < m.array_aval.shape.rank(); ++d)
      m.array_aval.shape[d] = substitute(m.array_aval.shape[d], from, to);
  for (Dim& d : g.mapping.grid) d = substitute(d, from, to);
  for (Inst& in : g.insts)
    if (in.op == Op::DimValue) in.attr.ints[0] = number[static_cast<std::size_t>(in.attr.ints[0])];
  for (Argument& a : g.arguments)
    if (a.symbol >= 0) a.symbol = static_cast<int>(number[static_cast<std::size_t>(a.symbol)]);
  g.num_symbols = static_cast<int>(multiples.size());
  set_multiples(g, std::move(multiples));
  return number;
}

bool has_runtime_reach(const BlockMapping& m) {
  return !m.dense || !m.array_aval.shape.is_static();
}

bool has_runtime_reach(const Graph& g) {
  return std::ranges::any_of(g.mapping.block_mappings,
                             [](const BlockMapping& m) { return has_runtime_reach(m); });
}

namespace {

/// `extent`: of a dimension, of which it need not fit.
template <class F>
bool is_short(const BlockMapping& m, F&& extent) {
  Reach reach;
  for (int d = m.array_aval.shape.rank() - 1; d >= 0; --d) {
    const Checked n = extent(d);
    if (!n.fits()) return false;
    reach.add(n.value(), m.block_shape[static_cast<std::size_t>(d)].cut());
  }
  return reach.is_short();
}

}  // namespace

bool has_short_reach(const BlockMapping& m) {
  const Shape& shape = m.array_aval.shape;
  return shape.is_static() && is_short(m, [&](int d) { return shape[d].value(); });
}

std::int64_t most_of_short_reach(const BlockMapping& m, int dimension) {
  const auto is_short_at = [&](std::int64_t n) {
    return is_short(m, [&](int d) { return d == dimension ? n : m.array_aval.shape[d].value(); });
  };
  if (is_short_at(INT64_MAX)) return INT64_MAX;  // without elements
  std::int64_t low = -1, high = std::int64_t{1} << 32;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (is_short_at(middle) ? low : high) = middle;
  }
  return low;
}

bool has_short_offsets(const Graph& g, std::span<const DimSizes> symbols) {
  return std::ranges::all_of(g.mapping.block_mappings, [&](const BlockMapping& m) {
    return !m.dense || !has_runtime_reach(m) ||
           is_short(m, [&](int d) { return most(m.array_aval.shape[d], symbols); });
  });
}

bool may_be_box(const BlockMapping& m) {
  return m.array_aval.shape.rank() > 1 && has_runtime_reach(m);
}

bool has_box_extents(const Graph& g, std::span<const DimSizes> symbols) {
  const std::vector<BlockMapping>& mappings = g.mapping.block_mappings;
  if (std::ranges::none_of(mappings, may_be_box)) return false;
  return std::ranges::all_of(mappings, [&](const BlockMapping& m) {
    if (!m.dense || !may_be_box(m)) return true;
    BoxExtents extents(m.array_aval.dtype);
    for (int d = m.array_aval.shape.rank() - 1; d >= 0; --d) {
      const Checked n = most(m.array_aval.shape[d], symbols);
      if (!n.fits()) return false;
      extents.add(n.value());
    }
    return extents.fit();
  });
}

void set_multiples(Graph& g, std::vector<std::int64_t> multiples) {
  const std::vector<std::int64_t> classes = class_multiples(g);
  multiples.resize(classes.size(), 1);
  bool any = false;
  for (std::size_t s = 0; s < classes.size(); ++s) {
    multiples[s] = multiples[s] % classes[s] == 0 ? classes[s] : 1;
    any |= multiples[s] != 1;
  }
  if (!any) multiples.clear();
  g.facts.multiples = std::move(multiples);
}

}  // namespace palladium::graph
