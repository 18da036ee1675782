#include "codegen/graph/uses.hpp"

#include <algorithm>

namespace palladium::graph {

std::vector<RegionId> root_regions(const Graph& g) {
  std::vector<RegionId> roots;
  const auto add = [&](RegionIndex r) {
    if (r != no_region && std::find(roots.begin(), roots.end(), RegionId{r}) == roots.end())
      roots.push_back(RegionId{r});
  };
  for (const Body& body : g.bodies) add(index(body.region));
  for (const BlockMapping& m : g.mapping.block_mappings) add(m.index_map);
  add(g.mapping.get_grid_indices);
  add(g.mapping.local_grid_env);
  return roots;
}

Uses::Uses(const Graph& g)
    : first_(g.insts.size() + 1),
      counts_(g.insts.size()),
      region_(g.insts.size(), no_region_id),
      owner_(g.regions.size(), no_value) {
  std::vector<RegionId> stack = root_regions(g);
  std::reverse(stack.begin(), stack.end());
  std::vector<ValueId> order;
  while (!stack.empty()) {
    const RegionId r = stack.back();
    stack.pop_back();
    for (const ValueId v : g[r].params) region_[index(v)] = r;
    for (const ValueId v : g[r].yields) ++counts_[index(v)];
    std::vector<RegionId> nested;
    for (const ValueId v : g[r].insts) {
      region_[index(v)] = r;
      order.push_back(v);
      for (const ValueId arg : g[v].args) {
        ++counts_[index(arg)];
        ++first_[index(arg) + 1];
      }
      for (const RegionId inner : g[v].regions) {
        owner_[index(inner)] = v;
        nested.push_back(inner);
      }
    }
    stack.insert(stack.end(), nested.rbegin(), nested.rend());
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  list_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const ValueId v : order)
    for (const ValueId arg : g[v].args) list_[next[index(arg)]++] = v;
}

std::span<const ValueId> Uses::users(ValueId v) const {
  const std::uint32_t begin = first_[index(v)];
  return {list_.data() + begin, first_[index(v) + 1] - begin};
}

bool Uses::encloses(RegionId outer, RegionId inner) const {
  while (inner != outer) {
    const ValueId owning = owner(inner);
    if (owning == no_value) return false;
    inner = region(owning);
  }
  return true;
}

bool is_body(const Graph& g, RegionId r) {
  return std::any_of(g.bodies.begin(), g.bodies.end(),
                     [&](const Body& b) { return b.region == r; });
}

}  // namespace palladium::graph
