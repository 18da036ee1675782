#include "codegen/graph/limits.hpp"

#include <algorithm>
#include <string>

#include "codegen/base/checked.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

// "axis 1 ('j')"
std::string axis_name(const GridMapping& m, std::size_t axis) {
  const bool named = axis < m.grid_names.size() && !m.grid_names[axis].empty();
  return "axis " + std::to_string(axis) + (named ? " ('" + m.grid_names[axis] + "')" : "");
}

void check_axis(const Graph& g, std::size_t axis, std::int64_t size, Location at) {
  if (size >= 0 && size <= most_programs) return;
  const Dim& d = g.mapping.grid[axis];
  throw CompileError(at, "kernel '" + g.name + "': grid " + axis_name(g.mapping, axis) + " has " +
                             (d.is_static() ? "" : to_string(d) + " = ") + std::to_string(size) +
                             " programs; an axis can have 0 to " + std::to_string(most_programs));
}

bool is_sequential(const Graph& g, std::size_t axis) {
  return axis < g.semantics.size() && g.semantics[axis] == Semantics::sequential;
}

}  // namespace

std::int64_t cluster_blocks(const Graph& g) {
  return checked_product(g.cluster).value_or(INT64_MAX);
}

void check_grid(const Graph& g, std::span<const std::int64_t> sizes, Location at) {
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) check_axis(g, axis, sizes[axis], at);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  const std::int64_t in_cluster = std::max<std::int64_t>(cluster_blocks(g), g.split_k);
  Checked blocks = in_cluster;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (!is_sequential(g, axis)) blocks *= sizes[axis];
  if (blocks.within(0, most_blocks)) return;
  std::string axes;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (!is_sequential(g, axis)) axes += (axes.empty() ? "" : " * ") + std::to_string(sizes[axis]);
  throw CompileError(
      at, "kernel '" + g.name + "': the parallel axes of the grid have " + axes + " programs" +
              (in_cluster > 1 ? " of " + std::to_string(in_cluster) + " blocks" : "") + ", " +
              (blocks.fits() ? std::to_string(blocks.value()) : "more than 2^63") +
              " blocks; a launch can have " + std::to_string(most_blocks));
}

void check_static_axes(const Graph& g, Location at) {
  for (std::size_t axis = 0; axis < g.mapping.grid.size(); ++axis)
    if (const Dim& d = g.mapping.grid[axis]; d.is_static()) check_axis(g, axis, d.value(), at);
}

void check_static_grid(const Graph& g, Location at) {
  check_static_axes(g, at);
  if (!g.mapping.static_grid()) return;
  std::vector<std::int64_t> sizes;
  for (const Dim& d : g.mapping.grid) sizes.push_back(d.value());
  check_grid(g, sizes, at);
}

std::string too_large(const ShapeDtype& type, std::span<const BlockDim> block) {
  // A block may be larger than its array: all places that it spans are counted.
  Checked places = 1;
  for (std::size_t d = 0; d < block.size(); ++d) {
    const BlockDim& b = block[d];
    if (std::max({b.size, b.pad_lo, b.pad_hi}) > most_extent)
      return "a block has at most " + std::to_string(most_extent) +
             " elements, and as much padding, in each dimension";
    const Dim& extent = type.shape.begin()[d];
    places *= std::max(b.cut(), extent.is_static() ? extent.value() : 1);
  }
  if (places.within(0, most_elements)) return "";
  return "array and block together span at most 2^47 elements";
}

}  // namespace palladium::graph
