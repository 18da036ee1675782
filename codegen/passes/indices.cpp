#include "codegen/passes/indices.hpp"

#include "codegen/graph/extents.hpp"
#include "codegen/passes/addresses.hpp"

namespace palladium::passes {

using graph::Inst;
using graph::Op;
using graph::ValueId;
using thread::ExprId;

namespace {

constexpr int deepest = 32;  // operations between an index and what it is computed from

}  // namespace

Indices::Indices(const graph::Graph& g, thread::Exprs& exprs) : g_(g), exprs_(exprs) {
  for (std::size_t v = 0; v < g.insts.size(); ++v)
    if (g.insts[v].op == Op::Loop)
      loop_of_[graph::index(g[g.insts[v].regions[0]].params[0])] =
          ValueId{static_cast<std::uint32_t>(v)};
}

ExprId Indices::leaf(ValueId v) {
  const Inst& i = g_[v];
  if (i.op == Op::Constant) return exprs_.literal(i.type.dtype, i.attr.bits);
  thread::Facts facts;
  if (i.op == Op::ProgramId) {
    const Dim& d = g_.mapping.grid[static_cast<std::size_t>(graph::AxisView::of(i).axis)];
    facts = {.low = 0, .high = d.is_static() ? d.value() - 1 : INT32_MAX - 1};
  } else if (i.op == Op::DimValue) {
    facts = facts_of_symbol(g_, static_cast<int>(graph::symbol_of(i)));
    facts.high = INT32_MAX;
  } else if (const auto it = loop_of_.find(graph::index(v)); it != loop_of_.end()) {
    const graph::LoopView loop = graph::LoopView::of(g_[it->second]);
    const ExprId low = expr(loop.low, deepest), high = expr(loop.high, deepest);
    facts = thread::facts_of_counter(exprs_.facts(low), exprs_.facts(high), loop.step);
  }
  return exprs_.variable(exprs_.declare({.name = "", .type = i.type.dtype, .facts = facts}));
}

ExprId Indices::expr(ValueId v, int depth) {
  if (const auto it = known_.find(graph::index(v)); it != known_.end()) return it->second;
  const Inst& i = g_[v];
  ExprId e;
  if (depth < deepest && graph::is_elementwise(i.op) && i.type.is_scalar()) {
    std::vector<ExprId> args;
    for (const ValueId a : i.args) args.push_back(expr(a, depth + 1));
    e = i.op == Op::MultipleOf ? exprs_.multiple_of(args[0], graph::hint(i)[0])
                               : exprs_.op(i.op, i.type.dtype, std::move(args));
  } else {
    e = leaf(v);
  }
  return known_[graph::index(v)] = e;
}

}  // namespace palladium::passes
