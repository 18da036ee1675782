// A store of values that stand beside each other becomes a store of each: what they are made of is
// then read once, where all parts of one element need it, and no element asks which part it is in.
//
// Precondition: none. Parts begin where 16 bytes do, so that they are stored as wide as the whole.
#include <utility>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::MemoryView;
using graph::Op;
using graph::ValueId;

constexpr std::int64_t widest_access = 16;

class StoreDivision {
 public:
  explicit StoreDivision(graph::Graph& g) : g_(g), a_(g) {}

  bool run() {
    bool any = false;
    for (const ValueId v : a_.order)
      if (g_[v].op == Op::Store) any |= divide(v);
    return any;
  }

 private:
  // Casts of a concatenation are those of its parts.
  bool divide(ValueId store) {
    const MemoryView m = MemoryView::of(g_[store]);
    if (m.mask != graph::no_value || g_.chooses(m.ref)) return false;
    std::vector<ValueId> casts;
    ValueId v = m.value;
    for (; g_[v].op == Op::Cast && is_private(v, store); v = g_[v].args[0]) casts.push_back(v);
    if (g_[v].op != Op::Concatenate || !is_private(v, store) || !is_wide(v, m.ref)) return false;
    const std::vector<ValueId> parts = g_[v].args;
    const auto along = static_cast<std::size_t>(graph::concatenated(g_[v]));
    const Inst whole = g_[store];
    std::int64_t start = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const ValueId part = parts[k];
      const Extents shape = g_[part].type.shape;
      ValueId value = part;
      for (auto cast = casts.rbegin(); cast != casts.rend(); ++cast)
        value = before(store, {Op::Cast,
                               graph::Type::value(g_[*cast].type.dtype, shape),
                               g_[*cast].attr,
                               {value},
                               {}});
      const ValueId view = before(store, view_of(m.ref, shape, along, start));
      start += shape[along];
      Inst one = whole;
      one.args = {view, value};
      if (k + 1 == parts.size())  // one value may be several parts
        g_[store] = std::move(one);
      else
        before(store, std::move(one));
    }
    return true;
  }

  // Whether nobody else reads it, in another iteration.
  bool is_private(ValueId v, ValueId store) const {
    return a_.uses(v) == 1 && a_.region[index(v)] == a_.region[index(store)];
  }

  bool is_wide(ValueId concatenate, ValueId ref) const {
    const auto along = static_cast<std::size_t>(graph::concatenated(g_[concatenate]));
    if (g_[concatenate].args.size() < 2) return false;
    const graph::Type& type = g_[ref].type;
    if (along + 1 < type.shape.size()) return true;
    for (const ValueId part : g_[concatenate].args)
      if (g_[part].type.shape[along] * type.dtype.bits() / 8 % widest_access != 0) return false;
    return true;
  }

  Inst view_of(ValueId ref, const Extents& shape, std::size_t along, std::int64_t start) const {
    graph::Subscript s;
    for (std::size_t d = 0; d < shape.size(); ++d)
      s.dims.push_back({.start = d == along ? start : 0, .size = shape[d]});
    graph::Type type = g_[ref].type;
    type.shape = shape;
    return {Op::At, std::move(type), {s.encode(), 0}, {ref}, {}};
  }

  ValueId before(ValueId store, Inst inst) {
    const ValueId v = g_.add(std::move(inst), g_.location(store));
    insert_before(g_, v, store);
    return v;
  }

  graph::Graph& g_;
  const Analysis a_;
};

}  // namespace

void divide_stores(Program& l) {
  if (StoreDivision(l.graph).run()) l.uses = uses_of(l.graph);
}

}  // namespace palladium::passes
