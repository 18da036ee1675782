#include "codegen/graph/classes.hpp"

namespace palladium::graph {
namespace {

// Strides are products of the extents behind a dimension, if there is nothing between the rows; and
// vectors end where the last dimension does.
bool decides_addresses(const BlockMapping& m, int d) {
  const int rank = m.array_aval.shape.rank();
  return d + 1 == rank || (m.dense && d > 0);
}

}  // namespace

std::vector<std::int64_t> class_multiples(const Graph& g) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(g.num_symbols), 1);
  for (const BlockMapping& m : g.mapping.block_mappings) {
    const std::int64_t elements = wide_alignment / m.array_aval.dtype.bytes();
    std::vector<std::uint32_t> symbols;
    for (int d = 0; d < m.array_aval.shape.rank(); ++d)
      if (decides_addresses(m, d)) collect_symbols(m.array_aval.shape[d], symbols);
    for (const std::uint32_t s : symbols) result[s] = std::max(result[s], elements);
  }
  return result;
}

bool has_runtime_strides(const BlockMapping& m) {
  const Shape& shape = m.array_aval.shape;
  if (!m.dense) return true;
  return std::any_of(shape.begin() + std::min(shape.rank(), 1), shape.end(),
                     [](const Dim& d) { return !d.is_static(); });
}

bool has_runtime_strides(const Graph& g) {
  return std::ranges::any_of(g.mapping.block_mappings,
                             [](const BlockMapping& m) { return has_runtime_strides(m); });
}

bool has_short_offsets(const Graph& g, std::span<const DimSizes> symbols) {
  for (const BlockMapping& m : g.mapping.block_mappings) {
    if (!m.dense || !has_runtime_strides(m)) continue;
    Reach reach;
    for (int d = m.array_aval.shape.rank() - 1; d >= 0; --d) {
      const Checked extent = most(m.array_aval.shape[d], symbols);
      if (!extent.fits()) return false;
      reach.add(extent.value(), m.block_shape[static_cast<std::size_t>(d)].size);
    }
    if (!reach.is_short()) return false;
  }
  return true;
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
