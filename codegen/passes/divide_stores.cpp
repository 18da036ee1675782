// A store of values that stand beside each other, or of what is computed of such and others element
// by element, becomes a store of each part: what they are made of is then read once, where all
// parts of one element need it, and no element asks which part it is in.
//
// Precondition: none. Parts begin where 16 bytes do, so that they are stored as wide as the whole.
// What others want, too, is not computed by parts; of what a loop or a product leaves, slices are.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"

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
  /// Where values are cut: along a dimension, into parts of so many elements.
  struct Cut {
    std::size_t along = 0;
    Extents extents = {};
    bool operator==(const Cut&) const = default;
  };

  bool divide(ValueId store) {
    const MemoryView m = MemoryView::of(g_[store]);
    if (m.mask != graph::no_value || g_.chooses(m.ref)) return false;
    const std::optional<Cut> cut = cut_of(m.value, store);
    if (!cut || !is_wide(*cut, m.ref) || !has_parts(m.value, *cut, store)) return false;
    const Inst whole = g_[store];
    std::int64_t start = 0;
    for (std::size_t k = 0; k < cut->extents.size(); ++k) {
      parts_.clear();
      const ValueId value = part(m.value, *cut, k, start, store);
      const ValueId view = before(store, view_of(m.ref, g_[value].type.shape, cut->along, start));
      start += cut->extents[k];
      Inst one = whole;
      one.args = {view, value};
      if (k + 1 == cut->extents.size())  // one value may be several parts
        g_[store] = std::move(one);
      else
        before(store, std::move(one));
    }
    return true;
  }

  // Of the first concatenation of which an element is computed.
  std::optional<Cut> cut_of(ValueId value, ValueId store) const {
    std::vector<ValueId> stack{value};
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      const Inst& i = g_[v];
      if (i.type.shape != g_[value].type.shape) continue;
      if (const auto cut = is_private(v, store) ? cut_of(v) : std::nullopt) return cut;
      if (graph::is_elementwise(i.op) && is_private(v, store))
        stack.insert(stack.end(), i.args.begin(), i.args.end());
    }
    return {};
  }

  // Of a concatenation, or of one whose dimension is joined with what is behind it.
  std::optional<Cut> cut_of(ValueId v) const {
    const bool joined = g_[v].op == Op::Reshape;
    const Inst& i = joined ? g_[g_[v].args[0]] : g_[v];
    if (i.op != Op::Concatenate || i.args.size() < 2) return {};
    Cut cut{.along = static_cast<std::size_t>(graph::concatenated(i))};
    std::int64_t behind = 1;
    if (joined) {
      Extents shape = i.type.shape;
      if (cut.along + 1 >= shape.size()) return {};
      behind = shape[cut.along + 1];
      shape[cut.along] *= behind;
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(cut.along) + 1);
      if (shape != g_[v].type.shape) return {};
    }
    for (const ValueId a : i.args) cut.extents.push_back(g_[a].type.shape[cut.along] * behind);
    return cut;
  }

  // Whether parts of a value are made by less than the value is.
  bool has_parts(ValueId v, const Cut& cut, ValueId store) const {
    const Inst& i = g_[v];
    if (const auto own = cut_of(v)) return *own == cut;
    if (graph::is_elementwise(i.op))
      return is_private(v, store) &&
             std::ranges::all_of(i.args, [&](ValueId a) { return has_parts(a, cut, store); });
    return i.op == Op::Constant || is_left_by_products(v) || repeats_along(i, cut) ||
           is_plain_load(i);
  }

  bool is_left_by_products(ValueId v) const {
    return (g_[v].op == Op::Get || g_[v].op == Op::Dot) && is_of_products(g_, v);
  }

  // A broadcast that has the same for all elements along the cut.
  bool repeats_along(const Inst& i, const Cut& cut) const {
    if (i.op != Op::Broadcast) return false;
    const std::span<const std::int64_t> to = graph::dimensions(i);
    for (std::size_t d = 0; d < to.size(); ++d)
      if (to[d] == static_cast<std::int64_t>(cut.along) && g_[i.args[0]].type.shape[d] > 1)
        return false;
    return true;
  }

  bool is_plain_load(const Inst& i) const {
    return i.op == Op::Load && MemoryView::of(i).mask == graph::no_value && !g_.chooses(i.args[0]);
  }

  // The k-th part of a value, which begins at `start`.
  ValueId part(ValueId v, const Cut& cut, std::size_t k, std::int64_t start, ValueId store) {
    if (const auto known = parts_.find(v); known != parts_.end()) return known->second;
    const Inst i = g_[v];
    if (i.op == Op::Concatenate) return i.args[k];
    graph::Type type = i.type;
    type.shape[cut.along] = cut.extents[k];
    if (cut_of(v))
      return parts_[v] =
                 before(store, {Op::Reshape, std::move(type), {}, {g_[i.args[0]].args[k]}, {}});
    if (is_plain_load(i)) {
      const ValueId view = before(v, view_of(i.args[0], type.shape, cut.along, start));
      return parts_[v] = before(v, {Op::Load, std::move(type), i.attr, {view}, {}});
    }
    if (is_left_by_products(v)) {
      graph::SliceView at{.starts = Extents(type.shape.size()),
                          .strides = Extents(type.shape.size(), 1)};
      at.starts[cut.along] = start;
      return parts_[v] = before(store, {Op::Slice, std::move(type), {at.encode(), 0}, {v}, {}});
    }
    Inst made{i.op, std::move(type), i.attr, i.args, {}};
    if (graph::is_elementwise(i.op))
      for (ValueId& a : made.args) a = part(a, cut, k, start, store);
    return parts_[v] = before(store, std::move(made));
  }

  // Whether nobody else reads it, in another iteration.
  bool is_private(ValueId v, ValueId store) const {
    return a_.uses(v) == 1 && a_.region[index(v)] == a_.region[index(store)];
  }

  bool is_wide(const Cut& cut, ValueId ref) const {
    const graph::Type& type = g_[ref].type;
    if (cut.along + 1 < type.shape.size()) return true;
    return std::ranges::all_of(cut.extents, [&](std::int64_t extent) {
      return extent * type.dtype.bits() / 8 % widest_access == 0;
    });
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
  std::map<ValueId, ValueId> parts_;  // of one store
};

}  // namespace

void divide_stores(Program& l) {
  if (StoreDivision(l.graph).run()) l.uses = uses_of(l.graph);
}

}  // namespace palladium::passes
