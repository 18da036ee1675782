#include "codegen/graph/grid_env.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "codegen/graph/uses.hpp"

namespace palladium::graph {
namespace {

bool is_mapped(const GridMapping& m, std::size_t axis) {
  return std::ranges::find(m.vmapped_dims, static_cast<int>(axis)) != m.vmapped_dims.end();
}

class Binding {
 public:
  explicit Binding(Graph& g) : g_(g), m_(g.mapping) {}

  void run() {
    const RegionIndex indices = std::exchange(m_.get_grid_indices, no_region);
    const RegionIndex env = std::exchange(m_.local_grid_env, no_region);
    for (const RegionId r : root_regions(g_)) bind(r, indices, env);
  }

 private:
  // A grid axis as a kernel sees it.
  struct Axis {
    ValueId index, size;
  };

  void bind(RegionId r, RegionIndex indices, RegionIndex env) {
    const auto first = static_cast<std::uint32_t>(g_.insts.size());
    const bool is_map = std::ranges::none_of(
        g_.bodies, [&](const Body& body) { return body.region == r; });
    front_.clear();
    std::vector<ValueId> ids;
    for (std::size_t axis = 0; axis < m_.grid.size(); ++axis)
      ids.push_back(is_map ? g_[r].params[axis] : query(Op::ProgramId, axis));
    const std::vector<ValueId> at = indices == no_region ? ids : copied(RegionId{indices}, ids);
    const std::vector<Axis> axes = env_of(env, at);
    std::map<ValueId, ValueId> instead;
    if (is_map)
      for (std::size_t axis = 0; axis < ids.size(); ++axis)
        if (ids[axis] != at[axis]) instead[ids[axis]] = at[axis];
    find_queries(r, axes, instead);
    replace(r, instead, first);
    std::vector<ValueId>& list = g_[r].insts;
    list.insert(list.begin(), front_.begin(), front_.end());
  }

  ValueId query(Op op, std::size_t axis) {
    front_.push_back(g_.add(
        {op, Type::value(i32), {{static_cast<std::int64_t>(axis)}, 0}, {}, {}}, g_.at));
    return front_.back();
  }

  std::vector<Axis> env_of(RegionIndex env, const std::vector<ValueId>& at) {
    std::vector<Axis> axes;
    if (env != no_region) {
      const std::vector<ValueId> yields = copied(RegionId{env}, at);
      for (std::size_t i = 0; i + 1 < yields.size(); i += 2)
        axes.push_back({yields[i], yields[i + 1]});
      return axes;
    }
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      if (!is_mapped(m_, axis)) axes.push_back({at[axis], query(Op::NumPrograms, axis)});
    return axes;
  }

  // What a region yields of these parameters, its instructions in front.
  std::vector<ValueId> copied(RegionId from, const std::vector<ValueId>& parameters) {
    std::map<ValueId, ValueId> of;
    for (std::size_t i = 0; i < parameters.size(); ++i) of[g_[from].params[i]] = parameters[i];
    copy(from, of, front_);
    std::vector<ValueId> yields;
    for (const ValueId y : g_[from].yields) yields.push_back(of.at(y));
    return yields;
  }

  void copy(RegionId from, std::map<ValueId, ValueId>& of, std::vector<ValueId>& to) {
    const std::vector<ValueId> list = g_[from].insts;  // copied: regions are added below
    for (const ValueId v : list) {
      Inst in = g_[v];
      for (ValueId& arg : in.args) arg = of.at(arg);
      for (RegionId& inner : in.regions) inner = copy_nested(inner, of);
      to.push_back(of[v] = g_.add(std::move(in), g_.location(v)));
    }
  }

  RegionId copy_nested(RegionId from, std::map<ValueId, ValueId>& of) {
    Region region;
    const std::vector<ValueId> params = g_[from].params;
    for (const ValueId p : params)
      region.params.push_back(of[p] = g_.add(Inst(g_[p]), g_.location(p)));
    copy(from, of, region.insts);
    for (const ValueId y : g_[from].yields) region.yields.push_back(of.at(y));
    const RegionId to = g_.add_region();
    g_[to] = std::move(region);
    return to;
  }

  void find_queries(RegionId r, const std::vector<Axis>& axes,
                    std::map<ValueId, ValueId>& instead) const {
    for (const ValueId v : g_[r].insts) {
      const Inst& in = g_[v];
      const bool of_index = in.op == Op::ProgramId || in.op == Op::AxisIndex;
      const bool of_size = in.op == Op::NumPrograms || in.op == Op::AxisSize;
      if (of_index || of_size)
        if (const AxisView asked = AxisView::of(in); asked.kind == AxisKind::grid) {
          const Axis& axis = axes.at(static_cast<std::size_t>(asked.axis));
          instead[v] = of_index ? axis.index : axis.size;
        }
      for (const RegionId inner : in.regions) find_queries(inner, axes, instead);
    }
  }

  // In a region as it was before anything was added behind `first`.
  void replace(RegionId r, const std::map<ValueId, ValueId>& instead, std::uint32_t first) {
    const auto change = [&](std::vector<ValueId>& list) {
      for (ValueId& v : list)
        if (const auto it = instead.find(v); it != instead.end()) v = it->second;
    };
    for (const ValueId v : g_[r].insts) {
      if (index(v) >= first) continue;
      change(g_[v].args);
      for (const RegionId inner : g_[v].regions) replace(inner, instead, first);
    }
    change(g_[r].yields);
    std::erase_if(g_[r].insts, [&](ValueId v) { return instead.contains(v); });
  }

  Graph& g_;
  GridMapping& m_;
  std::vector<ValueId> front_;  // what a region begins with
};

}  // namespace

bool has_grid_env(const GridMapping& m) {
  return m.get_grid_indices != no_region || m.local_grid_env != no_region;
}

std::size_t num_visible_axes(const Graph& g) {
  const GridMapping& m = g.mapping;
  if (m.local_grid_env != no_region) return g[RegionId{m.local_grid_env}].yields.size() / 2;
  return has_grid_env(m) ? m.grid.size() - m.vmapped_dims.size() : m.grid.size();
}

void bind_grid(Graph& g) {
  if (has_grid_env(g.mapping)) Binding(g).run();
}

}  // namespace palladium::graph
