#include "runtime/call/call_grid.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "codegen/graph/limits.hpp"

namespace palladium::runtime {

CallGrid::CallGrid(const graph::Graph& g) {
  for (const Dim& axis : g.mapping.grid) is_empty_ |= axis.same(0);
  if (!g.mapping.static_grid())
    for (const Dim& axis : g.mapping.grid) axes_.emplace_back(axis);
}

bool CallGrid::check(const graph::Graph& g, const Signature::Symbols& symbols, Location at) const {
  if (axes_.empty()) return !is_empty_;
  std::int64_t sizes[detail::max_grid_rank] = {};
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) try {
      sizes[axis] = axes_[axis].evaluate(symbols);
    } catch (const CompileError& error) {
      throw CompileError(at, "kernel '" + g.name + "': grid axis " + std::to_string(axis) + ", " +
                                 to_string(g.mapping.grid[axis]) + ": " + error.what());
    }
  const auto given = std::span(sizes).first(axes_.size());
  graph::check_grid(g, given, at);
  return std::find(given.begin(), given.end(), 0) == given.end();
}

}  // namespace palladium::runtime
