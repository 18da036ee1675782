#include "codegen/passes/accumulators.hpp"

#include <algorithm>
#include <set>

namespace palladium::passes {

using graph::Graph;
using graph::Inst;
using graph::Op;

namespace {

// What the sum takes the place of: the carry whose next value it is, or what was loaded from where
// it is stored.
std::vector<ValueId> replaced(const Graph& g, const Analysis& a, ValueId sum) {
  if (!a.yielded[index(sum)].empty()) {
    const ValueId owner = a.yielded[index(sum)][0].owner;
    if (!graph::repeats(g[owner].op)) return {};
    const graph::Repeated repeated = graph::Repeated::of(g[owner]);
    const graph::Region& r = g[repeated.region];
    for (std::size_t c = 0; c < r.yields.size(); ++c)
      if (r.yields[c] == sum) return {r.params[repeated.first + c]};
    return {};
  }
  const ValueId store = a.users[index(sum)][0];
  const graph::RegionId here = a.region[index(sum)];
  if (g[store].op != Op::Store || a.region[index(store)] != here) return {};
  std::vector<ValueId> loads;
  for (const ValueId v : a.order)
    if (g[v].op == Op::Load && a.region[index(v)] == here && root_of(g, v) == root_of(g, store))
      loads.push_back(v);
  return loads;
}

// The values between `old` and `sum`; nothing if there are other ways from it.
std::optional<std::vector<ValueId>> way(const Graph& g, const Analysis& a, ValueId old, ValueId sum,
                                        ValueId product) {
  std::vector<ValueId> between;
  for (ValueId v = old;;) {
    if (a.uses(v) != 1 || a.users[index(v)].size() != 1) return {};
    v = a.users[index(v)][0];
    if (v == sum) return between;
    const Inst& i = g[v];
    const auto known = [&](ValueId x) {
      return a.position[index(x)] < a.position[index(product)] ||
             (!between.empty() && x == between.back());
    };
    if (v == product || !graph::is_elementwise(i.op) || i.type != g[old].type ||
        a.region[index(v)] != a.region[index(product)] || !std::ranges::all_of(i.args, known))
      return {};
    between.push_back(v);
  }
}

}  // namespace

std::optional<Accumulation> accumulation(const Graph& g, const Analysis& a, ValueId product) {
  const auto& users = a.users[index(product)];
  if (a.uses(product) != 1 || users.size() != 1) return {};
  const ValueId sum = users[0];
  const Inst& i = g[sum];
  const bool adds = i.op == Op::Add || (i.op == Op::Fma && i.args[2] == product);
  if (!adds || a.uses(sum) != 1 || a.region[index(sum)] != a.region[index(product)]) return {};
  for (const ValueId old : replaced(g, a, sum))
    if (auto between = way(g, a, old, sum, product))
      return Accumulation{.sum = sum, .old = old, .scaled = std::move(*between)};
  return {};
}

namespace {

// Whether what is read there is wanted in front of so far a position alone: where it is inlined,
// by all that is computed of it.
bool is_wanted_before(const Program& l, const Analysis& a, ValueId read, int position) {
  std::vector<ValueId> stack{read};
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (a.position[index(v)] >= position) return false;
    if (l.storage_of[v] || !seen.insert(v).second) continue;
    for (const End& e : a.yielded[index(v)])
      if (e.position >= position) return false;
    stack.insert(stack.end(), a.users[index(v)].begin(), a.users[index(v)].end());
  }
  return true;
}

// Of the load of a window that the store puts back. Others may read it before, or what it is then.
StorageId accumulating_window(const Program& l, const Analysis& a, ValueId load, ValueId store) {
  const ValueId root = root_of(l.graph, load);
  const Window& w = l.windows[l.window_of[root]];
  if (w.residency() != Residency::registers || !l.storages[w.storage()].in_registers() ||
      l.storage_of[load])
    return {};
  const int first = a.position[index(load)], last = a.position[index(store)];
  for (const ValueId v : a.order) {
    const graph::Inst& inst = l.graph[v];
    const bool writes = l.graph.writes(inst, root), reads = l.graph.reads(inst, root);
    if ((!reads && !writes) || v == load || v == store || a.position[index(v)] > last) continue;
    if (a.position[index(v)] > first || (reads && !is_wanted_before(l, a, v, first))) return {};
  }
  return w.storage();
}

}  // namespace

StorageId accumulator(const Program& l, const Analysis& a, const Accumulation& added) {
  const auto is_kept = [&](ValueId v) { return bool(l.storage_of[v]); };
  if (is_kept(added.sum) || std::ranges::any_of(added.scaled, is_kept)) return {};
  if (l.graph[added.old].op == Op::Param) return l.storage_of[added.old];
  return accumulating_window(l, a, added.old, a.users[index(added.sum)][0]);
}

// acc * f + product was made one operation: the product is added by what computes it, so that only
// the factor is left.
void split_scaled_sums(Program& l) {
  Graph& g = l.graph;
  std::vector<std::pair<ValueId, ValueId>> sums;  // each with its product
  const Analysis a(g);
  for (const ValueId product : a.order) {
    if (g[product].op != Op::Dot) continue;
    const std::optional<Accumulation> found = accumulation(g, a, product);
    if (found && g[found->sum].op == Op::Fma) sums.emplace_back(found->sum, product);
  }
  for (const auto& [sum, product] : sums) {
    const std::vector<ValueId> args = g[sum].args;
    const ValueId scaled =
        g.add({Op::Mul, g[sum].type, {}, {args[0], args[1]}, {}}, g.location(sum));
    insert_before(g, scaled, sum);
    g[sum].op = Op::Add;
    g[sum].args = {scaled, product};
  }
  if (!sums.empty()) l.uses = uses_of(g);
}

}  // namespace palladium::passes
