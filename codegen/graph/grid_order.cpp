#include "codegen/graph/grid_order.hpp"

#include <algorithm>
#include <string>

#include "palladium/error.hpp"

namespace palladium::graph {

namespace {

bool depends(const Graph& g, std::vector<ValueId> stack, ValueId id, int axis) {
  std::vector<bool> seen(g.insts.size());
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (seen[index(v)]) continue;
    seen[index(v)] = true;
    const Inst& in = g[v];
    if (v == id) return true;
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

// Whether the indices by which bodies get what an Indirect dimension chooses do.
bool is_chosen_by_axis(const Graph& g, int mapping, int axis) {
  const std::vector<BlockDim>& block = g.mapping.block_mappings[mapping].block_shape;
  if (std::ranges::find(block, BlockDim::Kind::indirect, &BlockDim::kind) == block.end())
    return false;
  return std::ranges::any_of(g.insts, [&](const Inst& in) {
    return in.op == Op::At && g.mapping_of(g.root(in.args[0])) == mapping &&
           depends(g, {in.args.begin() + 1, in.args.end()}, no_value, axis);
  });
}

}  // namespace

bool depends_on_axis(const Graph& g, int mapping, int axis) {
  const RegionIndex map = g.mapping.block_mappings[mapping].index_map;
  if (map == no_region) return false;
  const Region& region = g[RegionId{map}];
  return depends(g, region.yields, region.params[axis], axis) ||
         is_chosen_by_axis(g, mapping, axis);
}

bool is_only_updated(const Graph& g, int output) {
  bool updated = false;
  for (const Body& body : g.bodies) {
    const ValueId ref =
        g[body.region].params[g.arguments.size() + static_cast<std::size_t>(output)];
    const int memory = g.alias_class(ref);
    for (const Inst& in : g.insts) {
      const auto is_written = [&](const Effect& e) {
        return e.writes() && g.alias_class(g.root(in.args[e.operand])) == memory;
      };
      if (std::ranges::none_of(effects(in).on_memory(), is_written)) continue;
      if (in.op != Op::Atomic) return false;
      updated = true;
    }
  }
  return updated;
}

void check_updated(const Graph& g) {
  const auto aliased = [&](int input) {
    return std::ranges::any_of(g.aliases, [&](const Alias& a) { return a.input == input; });
  };
  for (const Body& body : g.bodies)
    for (std::size_t i = 0; i < g.arguments.size(); ++i) {
      const Argument& argument = g.arguments[i];
      if (argument.kind != Argument::Kind::input || aliased(argument.index)) continue;
      for (std::size_t v = 0; v < g.insts.size(); ++v)
        if (const Inst& in = g.insts[v];
            in.op == Op::Atomic && g.root(in.args[0]) == g[body.region].params[i])
          throw CompileError(g.location(ValueId{static_cast<std::uint32_t>(v)}),
                             std::string(name_of(update_of(in))) + ": " +
                                 g.mapping.block_mappings[argument.index].origin +
                                 " is an input to which no output is aliased: other programs would "
                                 "not see the update; input_output_aliases says to which");
    }
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
      if (!depends_on_axis(g, m.num_inputs + i, static_cast<int>(axis)) && !is_only_updated(g, i))
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
