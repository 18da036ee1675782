// Whether indices lie where they may.
#include "codegen/base/format.hpp"
#include "codegen/expand/nest.hpp"
#include "codegen/graph/extents.hpp"

namespace palladium::expand {

using graph::Op;

bool Nest::may_leave(ValueId ref) const {
  for (ValueId v = ref; !g_.is_base(v); v = g_[v].args[0]) {
    if (g_[v].op != Op::At) continue;
    const Extents& from = g_[g_[v].args[0]].type.shape;
    const std::vector<graph::SubscriptDim> dims = graph::Subscript::of(g_[v]).dims;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d].dynamic || graph::Subscript::leaves(dims[d], from[d]) ||
          (from[d] == unknown_extent && dims[d].size != unknown_extent))
        return true;
  }
  return false;
}

// A slice may leave its block and stay inside the array: a GPU then takes what it finds there.
void Nest::check_indices(ValueId access, const Coordinates& c, const DimMap& map, ExprId mask) {
  const ValueId ref = g_[access].args[0];
  if (!may_leave(ref)) return;
  const bool whole = mask == no_expr && is_plain(ref);
  Coordinates end;
  for (const std::int64_t extent : g_[ref].type.shape) end.emplace_back(extent - 1);
  const std::vector<Index> first = find_indices(ref, whole ? Coordinates(end.size()) : c, map);
  const std::vector<Index> last = whole ? find_indices(ref, end, map) : first;
  std::vector<ExprId> tests{mask, predicate(padding(map))};
  // Of index arrays the others have nothing.
  if (g_.chooses(ref)) tests.insert(tests.end(), thread_mask_.begin(), thread_mask_.end());
  const ExprId test = whole ? no_expr : e_.all(std::move(tests));
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Index& x = first[i];
    const ExprId low = e_.sum(x.coordinate, i64), high = e_.sum(last[i].coordinate, i64);
    const Dim extent =
        graph::extent_of(g_, g_[x.at].args[0], static_cast<std::size_t>(x.dimension));
    const ExprId of_call = extent.is_static() ? no_expr : x_.dim(extent);
    if (of_call == no_expr && e_.facts(low).low >= 0 && e_.facts(high).high < x.extent) continue;
    if (!checked_.insert({low, high, x.extent, test}).second) continue;
    const Location at = g_.location(x.at);
    const Location outer = b_.at(at == Location{} ? b_.at() : at);
    b_.place(
        e_.depends(low) | e_.depends(high) | e_.depends(test),
        thread::CheckRange{low, high, x.extent,
                           fmt::format("{}: dimension {} of {}", graph::info(g_[access].op).name,
                                       x.dimension, graph::to_string(g_[g_[x.at].args[0]].type)),
                           test, of_call});
    b_.at(outer);
  }
}

}  // namespace palladium::expand
