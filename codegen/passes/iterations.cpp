#include "codegen/passes/iterations.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;
using graph::ValueId;

// A number of an iteration: so many behind the first one, the one that runs, or the one behind the
// last.
struct Number {
  enum class From : std::uint8_t { first, this_one, end } from = From::first;
  std::int64_t offset = 0;
};

std::optional<std::int64_t> constant(const Graph& g, ValueId v) {
  const Inst& i = g[v];
  if (i.op != Op::Constant || i.type.dtype.is_bool()) return {};
  return graph::to_int(i.type.dtype, i.attr.bits);
}

std::optional<Number> number(const Graph& g, ValueId v, int axis) {
  const Inst& i = g[v];
  if (const auto c = constant(g, v)) return Number{.offset = *c};
  if (i.op == Op::ProgramId || i.op == Op::NumPrograms) {
    const bool asks = graph::AxisView::of(i).axis == axis;
    if (!asks) return {};
    return Number{i.op == Op::ProgramId ? Number::From::this_one : Number::From::end};
  }
  if (i.op != Op::Add && i.op != Op::Sub) return {};
  for (const std::size_t addend : {1, 0}) {
    const auto c = constant(g, i.args[addend]);
    if (!c || (i.op == Op::Sub && addend == 0)) continue;
    auto found = number(g, i.args[1 - addend], axis);
    if (found) found->offset += i.op == Op::Sub ? -*c : *c;
    return found;
  }
  return {};
}

// How far in front of the end the iteration is for which the condition asks, or behind the first.
std::optional<Number> asked(const Graph& g, ValueId condition, int axis) {
  const Inst& i = g[condition];
  if (i.op != Op::Eq) return {};
  auto a = number(g, i.args[0], axis), b = number(g, i.args[1], axis);
  if (!a || !b) return {};
  if (b->from == Number::From::this_one) std::swap(a, b);
  if (a->from != Number::From::this_one || b->from == Number::From::this_one) return {};
  return Number{b->from, b->offset - a->offset};
}

}  // namespace

bool asks_first(const Graph& g, ValueId condition, int axis) {
  const std::optional<Number> n = asked(g, condition, axis);
  return n && n->from == Number::From::first && n->offset == 0;
}

bool asks_last(const Graph& g, ValueId condition, int axis) {
  const std::optional<Number> n = asked(g, condition, axis);
  if (!n) return false;
  if (n->from == Number::From::end) return n->offset == -1;
  const auto at = static_cast<std::size_t>(axis);
  return g.mapping.has_static_size(at) && n->offset == g.mapping.grid[at].value() - 1;
}

bool runs_last(const Graph& g, graph::RegionId region, int axis) {
  for (const graph::Body& b : g.bodies)
    for (const ValueId when : g[b.region].insts)
      if (g[when].op == Op::When && g[when].regions[0] == region)
        return asks_last(g, g[when].args[0], axis);
  return false;
}

namespace {

// `enters`: whether a value is one of those that the root is computed of.
template <class F>
bool reaches_axis(const Graph& g, ValueId root, int axis, const F& enters) {
  std::vector<ValueId> stack{root};
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (v == graph::no_value || !seen.insert(v).second) continue;
    const Inst& i = g[v];
    if ((i.op == Op::ProgramId || i.op == Op::AxisIndex) && graph::AxisView::of(i).axis == axis)
      return true;
    for (const ValueId a : i.args)
      if (enters(a)) stack.push_back(a);
  }
  return false;
}

}  // namespace

bool asks_for_axis(const lowered::Program& l, ValueId value, int axis) {
  return reaches_axis(l.graph, value, axis, [&](ValueId a) { return !l.storage_of[a]; });
}

bool asks_for_axis(const Graph& g, ValueId value, int axis) {
  return reaches_axis(g, value, axis, [](ValueId) { return true; });
}

int innermost_sequential_axis(const Graph& g) {
  const auto last =
      std::find(g.semantics.rbegin(), g.semantics.rend(), graph::Semantics::sequential);
  return static_cast<int>(g.semantics.rend() - last) - 1;
}

ValueId end_asked(const Graph& g, ValueId condition, int axis) {
  const Inst& i = g[condition];
  if (i.op != Op::Lt || g[i.args[0]].op != Op::ProgramId ||
      graph::AxisView::of(g[i.args[0]]).axis != axis || asks_for_axis(g, i.args[1], axis))
    return graph::no_value;
  return i.args[1];
}

}  // namespace palladium::passes
