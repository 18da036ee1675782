#include "codegen/passes/layout_costs.hpp"

#include <algorithm>

#include "codegen/base/overloaded.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/layout/transfer.hpp"
#include "codegen/passes/coordinates.hpp"
#include "codegen/passes/layouts.hpp"
#include "codegen/passes/register_slices.hpp"

namespace palladium::passes {

using graph::Inst;
using graph::Op;
using layout::Layout;

int operations(const Program& l, ValueId v, int limit) {
  std::vector<ValueId> stack{v};
  int n = 0, seen = 0;
  // What costs nothing may be shared so often that it cannot all be looked at.
  for (; !stack.empty() && n < limit && seen < 64 * limit; ++seen) {
    const Inst& i = l.graph[stack.back()];
    stack.pop_back();
    n += graph::is_elementwise(i.op) ? 1 + 2 * graph::info(i.op).ulp : 0;
    for (const ValueId a : i.args)
      if (l.graph[a].type.is_value() && !l.storage_of[a]) stack.push_back(a);
  }
  return std::min(n, limit);
}

LayoutCosts::LayoutCosts(const Program& l)
    : l_(l), g_(l.graph), model_(l), nests_(l), halved_(graph::halved_bytes(l.graph)) {}

double LayoutCosts::of_move(const Storage& s, const Layout& source, const Layout& nest,
                            const Read& r, const layout::PlanOptions& options) const {
  const double through_memory = 60 + 8.0 * issued(nest);
  if (is_padded(*r.nest, r.map)) return through_memory;
  const Layout have = s.dropped.empty() ? source : layout::drop(source, s.dropped);
  if (const auto part = layout_of_slice(have, r.map, nest.domain);
      part && *part == project(nest, lowered::without_slices(r.map)) &&
      takes_slices_of_registers(l_, *r.nest, nest))
    return 0;
  if (is_opaque(r.map)) return through_memory;
  const Layout need = project(nest, r.map);
  if (need == have) return 0;
  if (have.registers() > max_whole_registers || need.registers() > max_whole_registers)
    return through_memory;
  return 1 + layout::relayout_cost(have, need, s.dtype.bytes(), options);
}

double LayoutCosts::of_nest(const LoopNest& p, const std::vector<Effect>& elements,
                            const Layout& l) const {
  const double registers = issued(l);
  double cost = registers;
  const DimMap all = identity_map(l.rank());
  model_.enter(p, l);
  const auto memory = [&](ValueId ref, const DimMap& map, bool load) {
    const auto known = is_opaque(map) ? std::nullopt : model_.cost(ref, map, project(l, map));
    if (!known) return 32 * registers;
    return load ? known->load : known->store;
  };
  for (const ValueId v : evaluated(p)) cost += registers * operations(l_, v, 32);
  const std::map<ValueId, int> mixed = widths_of_mixed(p, elements, l);
  for (const Effect& e : elements) {
    if (e.window && halved_.contains(e.leaf) && is_opaque(e.map))
      cost += halves_cost(p, l, e.leaf).value_or(32 * registers);
    else if (e.window && mixed.contains(e.leaf))
      cost += 32 * registers / mixed.at(e.leaf);
    else if (e.window)
      cost += memory(g_[e.leaf].args[0], e.map, true);
    else if (reads_staged(l_, e.leaf))
      cost += 4 * registers * conflicts(e.leaf, e.map) / staged_width(e.leaf, e.map);
    else if (l_.storages[e.storage].in_shared())
      cost += 4 * registers * shared_reads(p, e, l);
  }
  return cost +
         std::visit(
             Overloaded{
                 [&](const Assign& to) { return assign_cost(to, l); },
                 [&](const Stage& to) { return stage_cost(p, to.storage, l) + copy_cost(p, l); },
                 [&](const Store& to) {
                   const ValueId ref = g_[to.inst].args[0];
                   const Window& w = l_.windows[l_.window_of[g_.base(ref)]];
                   return w.is_direct() ? memory(ref, all, false) : 4 * registers;
                 },
                 [&](const Update&) { return 16 * registers; },
                 [&](const Print&) { return 16 * registers; },
                 [&](const Fill& to) { return memory(l_.windows[to.window].root, all, true); },
                 [&](const Flush& to) { return memory(l_.windows[to.window].root, all, false); },
                 [&](const Spill& to) { return stage_cost(p, to.storage, l); },
                 [&](const Clear& to) { return stage_cost(p, to.storage, l); },
                 [&](const auto& fold) { return fold.cost(l_, l); }},
             p.sink);
}

// Of what is read in another order than it stands in, how many elements at a time, where that
// does not depend on layouts of others.
std::map<ValueId, int> LayoutCosts::widths_of_mixed(const LoopNest& p,
                                                    const std::vector<Effect>& elements,
                                                    const Layout& l) const {
  std::map<ValueId, int> widths;
  const auto is_mixed = [&](const Effect& e) { return e.window && is_opaque(e.map); };
  if (!std::holds_alternative<Store>(p.sink) || std::ranges::none_of(elements, is_mixed) ||
      !register_reads(l_, p).empty())
    return widths;
  LoopNest nest = p;
  nest.layout = l;
  nest.rolled.assign(static_cast<std::size_t>(l.rank()), 0);
  const std::map<ValueId, int> all = nests_.look(nest).widths;
  for (const Effect& e : elements)
    if (const auto known = all.find(e.leaf); is_mixed(e) && known != all.end())
      widths.insert(*known);
  return widths;
}

// Of bytes, both halves of which the nest has: what reading them costs the threads that have
// these; nothing where others have one of them.
std::optional<double> LayoutCosts::halves_cost(const LoopNest& p, const Layout& l,
                                               ValueId bytes) const {
  const Extents& shape = g_[bytes].type.shape;
  const int last = l.rank() - 1;
  if (last < 0 || l.reg.empty() || l.reg[0] != 1 || l.domain[last] % 2 != 0) return {};
  const auto halves = layout::split_dim(l, last, 2);
  if (!halves || !layout::separable(*halves, last + 1)) return {};
  const Layout whole = layout::drop(*halves, last + 1);
  if (whole.domain != shape) return {};
  const LoopNest read{.value = bytes, .domain = shape, .valid = shape, .layout = whole};
  model_.enter(read, whole);
  const auto cost = model_.cost(g_[bytes].args[0], identity_map(l.rank()), whole);
  model_.enter(p, l);
  return cost ? std::optional(cost->load) : std::nullopt;
}

// What is evaluated for an element: beside the value a mask, what is compared, index arrays.
std::vector<ValueId> LayoutCosts::evaluated(const LoopNest& p) const {
  if (p.value == graph::no_value) return {};
  std::vector<ValueId> all{p.value};
  if (const ValueId access = accessed_by(p.sink); access != graph::no_value) {
    const graph::MemoryView m = graph::MemoryView::of(g_[access]);
    for (const ValueId v : {m.mask, m.other})
      if (v != graph::no_value) all.push_back(v);
    if (g_.chooses(m.ref)) all.push_back(m.ref);
  }
  return all;
}

// Accesses of an element: of rows what a vector has of one, as often as a bank gives a word for
// one, of columns what a bank waits for.
double LayoutCosts::shared_reads(const LoopNest& p, const Effect& e, const Layout& l) const {
  if (reads_columns(e)) return model_.wavefronts(e.storage, e.map);
  const bool in_rows = is_opaque(e.map) || (!e.map.empty() && e.map.back() == l.rank() - 1);
  if (!in_rows) return 1;
  const double vector = shared_vector(p, e.storage, l);
  const bool as_it_lies = !is_opaque(e.map) && l_.storage_of[e.leaf] == e.storage;
  if (!as_it_lies) return 1 / vector;
  return model_.wavefronts(e.storage, e.map, static_cast<std::int64_t>(vector)) / vector;
}

// Of what lies in rows in shared memory, and is no window.
bool LayoutCosts::reads_columns(const Effect& e) const {
  return !e.window && !reads_staged(l_, e.leaf) && e.storage &&
         l_.storages[e.storage].in_shared() && e.map == DimMap{1, 0};
}

// Of a staged window, how often a bank gives a word for one access.
double LayoutCosts::conflicts(ValueId load, const DimMap& map) const {
  return is_opaque(map) ? 1 : model_.wavefronts(g_[load].args[0], map);
}

int LayoutCosts::staged_width(ValueId load, const DimMap& map) const {
  return is_opaque(map) ? 1 : model_.staged_width(g_[load].args[0], map);
}

double LayoutCosts::assign_cost(const Assign& to, const Layout& l) const {
  return l.registers() * words(l_.storages[to.storage].dtype) > max_whole_registers ? 1e9 : 0;
}

// What is copied as it is threads ask for by pieces that they do not wait for, of 4 bytes or
// more, few of them rather than many.
double LayoutCosts::copy_cost(const LoopNest& p, const Layout& l) const {
  constexpr int least = 4, most = 16;
  constexpr double awaited = 400;
  if (!l_.machine.has_async_copies() || p.value == graph::no_value || g_[p.value].op != Op::Load ||
      !l_.window_loaded(p.value).is_direct())
    return 0;
  const ValueId ref = g_[p.value].args[0];
  const int size = g_[ref].type.dtype.bytes();
  const int bytes = size * model_.whole_width(ref, identity_map(l.rank()));
  if (bytes >= std::min(most, size * model_.widest(ref))) return 0;
  return most / bytes + (bytes < least ? awaited : 0);
}

double LayoutCosts::stage_cost(const LoopNest& p, StorageId storage, const Layout& l) const {
  const double vector = shared_vector(p, storage, l);
  const double waits =
      model_.wavefronts(storage, identity_map(l.rank()), static_cast<std::int64_t>(vector));
  return 4 * static_cast<double>(l.registers()) / vector * waits;
}

// Elements that move at once: no more than the nest has of everything that it moves.
double LayoutCosts::shared_vector(const LoopNest& p, StorageId storage, const Layout& l) const {
  const int most = std::max(1, 16 / l_.storages[storage].dtype.bytes());
  return std::min(most, 1 << vector_bits(l_, p, l));
}

}  // namespace palladium::passes
