#include "codegen/passes/guards.hpp"

#include <algorithm>

namespace palladium::passes {

using graph::Inst;
using graph::Op;
using thread::Affine;
using thread::ExprId;

bool Guards::is_zero(ValueId v) const {
  while (g_[v].op == Op::Broadcast || g_[v].op == Op::Reshape) v = g_[v].args[0];
  return g_[v].op == Op::Constant && g_[v].attr.bits == 0;
}

bool Guards::guards(const Window& w, ValueId select, ValueId x, ValueId view) {
  const Inst& i = g_[select];
  return i.op == Op::Select && i.args[1] == x && i.args[0] != x && is_zero(i.args[2]) &&
         asks_bounds(w, view, i.args[0]);
}

bool Guards::asks_bounds(const Window& w, ValueId view, ValueId condition) {
  Coordinates c;
  const Extents& shape = g_[view].type.shape;
  if (g_[condition].type.shape != shape) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) c.push_back(Affine::term(coordinate(d, shape[d])));
  const auto asked = sums_.of_condition(condition, c);
  if (!asked) return false;
  // Of dimensions whose extents are expressions nothing follows.
  Sums::Conditions bounds;
  for (std::size_t d = 0; d < w.in_bounds.size(); ++d) {
    Window along = w;
    along.in_bounds.assign(w.in_bounds.size(), true);
    along.in_bounds[d] = false;
    if (const auto found = sums_.of_bounds(along, view, c))
      bounds.insert(bounds.end(), found->begin(), found->end());
  }
  return std::ranges::all_of(*asked, [&](const Affine& sum) { return sums_.follows(sum, bounds); });
}

ExprId Guards::program_id(int axis) {
  const auto [it, is_new] = program_ids_.try_emplace(axis, thread::no_expr);
  if (is_new) {
    const Dim& d = g_.mapping.grid[static_cast<std::size_t>(axis)];
    it->second = variable(d.is_static() ? d.value() : INT32_MAX);
  }
  return it->second;
}

ExprId Guards::symbol(std::uint32_t number) {
  const auto [it, is_new] = symbols_.try_emplace(number, thread::no_expr);
  if (is_new) it->second = variable(INT32_MAX);
  return it->second;
}

ExprId Guards::coordinate(std::size_t d, std::int64_t extent) {
  const auto [it, is_new] = coordinates_.try_emplace({d, extent}, thread::no_expr);
  if (is_new) it->second = variable(extent);
  return it->second;
}

ExprId Guards::variable(std::int64_t count) {
  return exprs_.variable(
      exprs_.declare({.name = "",
                      .type = i32,
                      .facts = {.low = 0, .high = std::max<std::int64_t>(0, count - 1)}}));
}

}  // namespace palladium::passes
