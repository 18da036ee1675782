// Rows that end between two vectors of a thread: vectors beyond the end read the thread's first one
// again, which is an address instead of a test, and nothing to fill registers with. What is
// computed of it, element by element, is what the first vector holds; the greatest does not mind.
#include <algorithm>
#include <set>

#include "codegen/expand/nest.hpp"

namespace palladium::expand {

using graph::Op;

// Whether each thread has a vector in the row, and beyond it whole ones, a repetition away.
bool Nest::has_later_vectors() const {
  const int d = layout_.rank() - 1;
  if (nest_ == nullptr || d < 0) return false;
  const auto at = static_cast<std::size_t>(d);
  const bool rolled = at < nest_->rolled.size() && nest_->rolled[at];
  const thread::Depends on = e_.depends(coordinates_[at]);
  return vector_ > 1 && !rolled && layout_.pads(d) && nest_->valid[at] == layout_.domain[at] &&
         layout_.domain[at] % vector_ == 0 && layout_.tile(d) <= layout_.domain[at] &&
         (on & thread::on_group) == 0;
}

bool Nest::reads_first_again(Vector& v) {
  if (!has_later_vectors() || v.place.shared || !v.place.parts.empty()) return false;
  const auto d = static_cast<std::size_t>(layout_.rank() - 1);
  const ExprId iteration = repetitions_[d];
  const thread::Depends on_iteration = thread::on_repetition(static_cast<int>(d));
  const std::int64_t step = v.place.offset.coefficient(iteration);
  const Affine first = v.place.offset.without(iteration);
  if (step == 0 || (e_.depends(first) & on_iteration) != 0) return false;
  const Bound end{coordinates_[d], e_.number(layout_.domain[d])};
  Bounds others;
  for (const Bound& b : v.bounds) {
    if ((e_.depends(b.at) & on_iteration) == 0)
      others.push_back(b);
    else if (b.lower || !(b.at == end.at) || b.limit != end.limit)
      return false;
  }
  const ExprId inside = predicate({end});
  if (inside == no_expr || (e_.depends(inside) & thread::on_element) != 0) return false;
  v.place.offset =
      first + Affine::term(e_.choose(inside, e_.sum(Affine::term(iteration, step)), e_.number(0)));
  v.bounds = std::move(others);
  return true;
}

// Whether the value, where it is beyond the end, is that of the thread's first vector.
bool Nest::repeats_first(ValueId value, bool enter) const {
  if (!has_later_vectors() || asks_coordinates(value, enter)) return false;
  const int d = layout_.rank() - 1;
  bool all = true;
  lowered::for_each_leaf(l_, value, lowered::identity_map(layout_.rank()), enter,
                         [&](ValueId, const DimMap& map, StorageId storage) {
                           const auto along = std::ranges::count(map, d);
                           if (std::ranges::find(map, lowered::opaque_dim) != map.end())
                             all = false;
                           if (along == 0) return;
                           for (const auto& [from, copy] : redirects_)
                             if (from == storage && copy.map == map) all = false;
                           all = all && along == 1 && map.back() == d && storage &&
                                 x_.repeating_[storage];
                         });
  return all;
}

// Whether where an element stands is in the value.
bool Nest::asks_coordinates(ValueId value, bool enter) const {
  std::vector<ValueId> stack{value};
  std::set<ValueId> seen;
  for (bool first = true; !stack.empty(); first = false) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second || (l_.storage_of[v] && !(first && enter))) continue;
    if (g_[v].op == Op::Iota || g_[v].op == Op::Concatenate || g_[v].op == Op::DynamicUpdateSlice)
      return true;
    for (const ValueId a : g_[v].args)
      if (g_[a].type.is_value()) stack.push_back(a);
  }
  return false;
}

}  // namespace palladium::expand
