#include "codegen/passes/analysis.hpp"

#include <algorithm>

namespace palladium::passes {

using graph::Graph;
using graph::Inst;
using graph::Op;
using graph::ValueId;

Analysis::Analysis(const Graph& g)
    : position(g.insts.size(), -1),
      last(g.insts.size(), -1),
      loop(g.insts.size(), -1),
      region(g.insts.size()),
      users(g.insts.size()),
      yielded(g.insts.size()) {
  for (const graph::Body& b : g.bodies) visit(g, b.region, -1);
}

void Analysis::visit(const Graph& g, graph::RegionId region, int loop_inst) {
  const auto number = [&](ValueId v) {
    position[index(v)] = last[index(v)] = positions_++;
    loop[index(v)] = loop_inst;
    this->region[index(v)] = region;
    order.push_back(v);
  };
  for (ValueId p : g[region].params) number(p);
  for (ValueId v : g[region].insts) {
    number(v);
    const Inst& inst = g[v];
    for (ValueId a : inst.args) users[index(a)].push_back(v);
    const graph::Effects all = graph::effects(inst);
    if (std::ranges::any_of(all.on_memory(), &graph::Effect::writes)) writes.push_back(v);
    if (graph::effects(inst.op).syncs) syncs.push_back(position[index(v)]);
    for (graph::RegionId r : inst.regions) {
      const int around = graph::repeats(inst.op) ? static_cast<int>(index(v)) : loop_inst;
      visit(g, r, around);
      const int end = positions_++;
      for (ValueId y : g[r].yields) yielded[index(y)].push_back({v, end, around});
    }
    last[index(v)] = positions_ - 1;
  }
}

bool Analysis::inside(ValueId inner, ValueId loop_inst) const {
  const int p = position[index(inner)];
  return p > position[index(loop_inst)] && p <= last[index(loop_inst)];
}

ValueId Analysis::loop_between(ValueId value, ValueId user) const {
  ValueId found = graph::no_value;
  for (int l = loop[index(user)]; l >= 0 && !inside(value, ValueId(l)); l = loop[l])
    found = ValueId(l);
  return found;
}

void insert_before(Graph& g, ValueId v, ValueId before) {
  for (graph::Region& r : g.regions)
    if (const auto at = std::ranges::find(r.insts, before); at != r.insts.end()) {
      r.insts.insert(at, v);
      return;
    }
}

ValueId root_of(const Graph& g, ValueId memory_op) {
  const Inst& inst = g[memory_op];
  return g.root(inst.args[graph::effects(inst.op).on_memory()[0].operand]);
}

std::vector<ValueId> roots_written(const Graph& g, ValueId v) {
  std::vector<ValueId> roots;
  const graph::Effects all = graph::effects(g[v]);
  for (const graph::Effect& e : all.on_memory())
    if (e.writes()) roots.push_back(g.root(g[v].args[e.operand]));
  return roots;
}

bool reads_unwritten(const Graph& g, const Analysis& a, ValueId load) {
  if (graph::MemoryView::of(g[load]).mask != graph::no_value) return false;
  const int memory = g.alias_class(root_of(g, load));
  return std::ranges::none_of(a.writes, [&](ValueId w) {
    return std::ranges::any_of(roots_written(g, w),
                               [&](ValueId root) { return g.alias_class(root) == memory; });
  });
}

bool is_whole_access(const Graph& g, ValueId memory_op) {
  const Inst& inst = g[memory_op];
  if (inst.op == Op::InlineCuda) return false;
  const graph::MemoryView m = graph::MemoryView::of(inst);
  return g[inst.args[0]].op == Op::Param && m.mask == graph::no_value && inst.op != Op::Atomic;
}

}  // namespace palladium::passes
