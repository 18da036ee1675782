#include "codegen/graph/index_maps.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace palladium::graph {
namespace {

/// None: the index is 0.
std::optional<ValueId> index_of(const Graph& g, RegionIndex map, std::size_t dimension) {
  if (map == no_region) return std::nullopt;
  const ValueId v = g[RegionId{map}].yields[dimension];
  const Inst& i = g[v];
  if (i.op == Op::Constant && i.attr.bits == 0) return std::nullopt;
  return v;
}

std::size_t number_of(const Graph& g, RegionIndex map, ValueId param) {
  const std::vector<ValueId>& params = g[RegionId{map}].params;
  return static_cast<std::size_t>(std::ranges::find(params, param) - params.begin());
}

}  // namespace

bool have_one_index(const Graph& g, RegionIndex a, std::size_t of_a, RegionIndex b,
                    std::size_t of_b) {
  const std::optional<ValueId> x = index_of(g, a, of_a), y = index_of(g, b, of_b);
  if (!x || !y) return !x && !y;
  std::vector<std::pair<ValueId, ValueId>> stack{{*x, *y}};
  std::set<std::pair<ValueId, ValueId>> seen;
  while (!stack.empty()) {
    const auto [v, w] = stack.back();
    stack.pop_back();
    if (v == w || !seen.emplace(v, w).second) continue;
    const Inst &i = g[v], &j = g[w];
    if (i.op != j.op || i.type != j.type || i.attr != j.attr || i.args.size() != j.args.size() ||
        !i.regions.empty() || !is_pure(i.op))
      return false;
    if (i.op == Op::Param && number_of(g, a, v) != number_of(g, b, w)) return false;
    for (std::size_t k = 0; k < i.args.size(); ++k) stack.emplace_back(i.args[k], j.args[k]);
  }
  return true;
}

}  // namespace palladium::graph
