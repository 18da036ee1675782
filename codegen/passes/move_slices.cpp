// Slices of what is loaded are loads of slices: which neighbours of a block are read again and
// again, at several offsets, is then seen where windows are staged, however they are spelled.
//
// Precondition: a canonical graph. What is only converted in between is converted behind the slice.
// Memory that the kernel writes is loaded where it says so, and elements that are apart are loaded
// with those between them.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::MemoryView;
using graph::Op;
using graph::SliceView;

class SliceMoves {
 public:
  explicit SliceMoves(graph::Graph& g) : g_(g), a_(g) {
    for (const ValueId w : a_.writes)
      for (const ValueId root : roots_written(g_, w)) written_.insert(g_.alias_class(root));
  }

  bool run() {
    bool any = false;
    for (const ValueId v : a_.order)
      if (g_[v].op == Op::Slice) any |= move(v);
    return any;
  }

 private:
  bool move(ValueId slice) {
    std::vector<ValueId> converted;  // from the slice to the load
    ValueId v = g_[slice].args[0];
    for (; g_[v].op == Op::Cast; v = g_[v].args[0]) converted.push_back(v);
    const SliceView at = SliceView::of(g_[slice]);
    const bool neighbours = std::ranges::all_of(at.strides, [](std::int64_t s) { return s == 1; });
    if (!neighbours || !is_plain_load(v, slice) || is_multiplied(slice)) return false;
    const ValueId view = before(slice, view_of(g_[v].args[0], at, slice));
    Inst load{Op::Load, of_slice(slice, v), g_[v].attr, {view}, {}};
    if (converted.empty()) {
      g_[slice] = std::move(load);
      return true;
    }
    ValueId made = before(slice, std::move(load));
    for (std::size_t k = converted.size(); k-- > 0;) {
      Inst cast{Op::Cast, of_slice(slice, converted[k]), g_[converted[k]].attr, {made}, {}};
      if (k == 0)
        g_[slice] = std::move(cast);
      else
        made = before(slice, std::move(cast));
    }
    return true;
  }

  // Of memory that nobody writes, where the slice is taken.
  bool is_plain_load(ValueId v, ValueId slice) const {
    return g_[v].op == Op::Load && MemoryView::of(g_[v]).mask == graph::no_value &&
           !g_.chooses(g_[v].args[0]) && a_.region[index(v)] == a_.region[index(slice)] &&
           !written_.contains(g_.alias_class(root_of(g_, v)));
  }

  // Products fetch what they read, the whole and its slices as one.
  bool is_multiplied(ValueId slice) const {
    return std::ranges::any_of(a_.users[index(slice)], [&](ValueId u) {
      return g_[u].op == Op::Dot || g_[u].op == Op::Transpose;
    });
  }

  graph::Type of_slice(ValueId slice, ValueId like) const {
    return graph::Type::value(g_[like].type.dtype, g_[slice].type.shape);
  }

  Inst view_of(ValueId ref, const SliceView& at, ValueId slice) const {
    graph::Subscript s;
    graph::Type type = g_[ref].type;
    type.shape = g_[slice].type.shape;
    for (std::size_t d = 0; d < type.shape.size(); ++d)
      s.dims.push_back({.start = at.starts[d], .size = type.shape[d], .stride = at.strides[d]});
    return {Op::At, std::move(type), {s.encode(), 0}, {ref}, {}};
  }

  ValueId before(ValueId at, Inst inst) {
    const ValueId v = g_.add(std::move(inst), g_.location(at));
    insert_before(g_, v, at);
    return v;
  }

  graph::Graph& g_;
  const Analysis a_;
  std::set<int> written_;
};

}  // namespace

void move_slices(Program& l) {
  if (!graph::overlaps_previous(l.graph) && SliceMoves(l.graph).run()) l.uses = uses_of(l.graph);
}

}  // namespace palladium::passes
