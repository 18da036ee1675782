#include "runtime/call_grid.hpp"

#include <span>
#include <string>

#include "codegen/graph/limits.hpp"

namespace palladium::runtime {

CallGrid::CallGrid(const graph::Graph& g) {
  if (!g.mapping.static_grid())
    for (const Dim& axis : g.mapping.grid) axes_.emplace_back(axis);
}

void CallGrid::check(const graph::Graph& g, const Signature::Symbols& symbols, Location at) const {
  if (axes_.empty()) return;
  std::int64_t sizes[detail::max_grid_rank] = {};
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) try {
      sizes[axis] = axes_[axis].evaluate(symbols);
    } catch (const CompileError& error) {
      throw CompileError(at, "kernel '" + g.name + "': grid axis " + std::to_string(axis) + ", " +
                                 to_string(g.mapping.grid[axis]) + ": " + error.what());
    }
  graph::check_grid(g, std::span(sizes).first(axes_.size()), at);
}

}  // namespace palladium::runtime
