#include "codegen/graph/grid_order.hpp"

#include <algorithm>
#include <string>

#include "palladium/error.hpp"

namespace palladium::graph {

bool depends_on_axis(const Graph& g, int mapping, int axis) {
  const RegionIndex map = g.mapping.block_mappings[mapping].index_map;
  if (map == no_region) return false;
  const Region& region = g[RegionId{map}];
  std::vector<bool> seen(g.insts.size());
  std::vector<ValueId> stack = region.yields;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (seen[index(v)]) continue;
    seen[index(v)] = true;
    const Inst& in = g[v];
    if (v == region.params[axis]) return true;
    if (in.op == Op::ProgramId || in.op == Op::AxisIndex)
      if (const AxisView asked = AxisView::of(in);
          asked.kind == AxisKind::grid && asked.axis == axis)
        return true;
    stack.insert(stack.end(), in.args.begin(), in.args.end());
    for (const RegionId inner : in.regions)
      stack.insert(stack.end(), g[inner].yields.begin(), g[inner].yields.end());
  }
  return false;
}

std::vector<Semantics> grid_order(const Graph& g,
                                  std::span<const std::optional<Semantics>> wanted) {
  const GridMapping& m = g.mapping;
  if (!wanted.empty() && wanted.size() != m.grid.size())
    throw CompileError(g.at, "dimension_semantics: expected one entry per grid axis (" +
                                 std::to_string(m.grid.size()) + "), given " +
                                 std::to_string(wanted.size()));
  std::vector<Semantics> order;
  for (std::size_t axis = 0; axis < m.grid.size(); ++axis) {
    int revisited = -1;
    const bool single = m.grid[axis].is_static() && m.grid[axis].value() == 1;
    for (int i = 0; i < m.num_outputs && revisited < 0 && !single && !g.whole_arrays; ++i)
      if (!depends_on_axis(g, m.num_inputs + i, static_cast<int>(axis)))
        revisited = m.num_inputs + i;
    const auto asked = [&](Semantics s) { return !wanted.empty() && wanted[axis] == s; };
    if (revisited >= 0 && asked(Semantics::parallel) && !g.allow_revisit) {
      std::string name = std::to_string(axis);
      if (!m.grid_names.empty() && !m.grid_names[axis].empty())
        name += " ('" + m.grid_names[axis] + "')";
      throw CompileError(
          g.at, "dimension_semantics: grid axis " + name +
                    " cannot be parallel: the index map of " + m.block_mappings[revisited].origin +
                    " does not depend on it, so several programs along the axis write one block; "
                    "say sequential, or allow_revisit if every write may come in any order");
    }
    const bool in_order =
        asked(Semantics::sequential) || (revisited >= 0 && !asked(Semantics::parallel));
    order.push_back(in_order ? Semantics::sequential : Semantics::parallel);
  }
  return order;
}

}  // namespace palladium::graph
