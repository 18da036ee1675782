#include "codegen/passes/factors.hpp"

#include "codegen/graph/uses.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Op;
using graph::ValueId;

// What a broadcast repeats; no_value of others.
ValueId repeated(const Graph& g, ValueId v) {
  return g[v].op == Op::Broadcast ? g[v].args[0] : graph::no_value;
}

// Whether the two, repeated, are repeated from one product.
bool makes_one(const Graph& g, ValueId a, ValueId b) {
  const ValueId x = repeated(g, a), y = repeated(g, b);
  if (x == graph::no_value || y == graph::no_value) return false;
  return g[x].type.is_scalar() || g[y].type.is_scalar() ||
         (g[x].type == g[y].type && g[a].attr == g[b].attr);
}

// The result of dot that v multiplies by one number after another, as graph/regroup.cpp would do
// at once.
ValueId multiplied_twice(const Graph& g, const graph::Uses& uses, ValueId v) {
  if (g[v].op != Op::Mul && g[v].op != Op::Fma) return graph::no_value;
  if (g[v].type.dtype != f32) return graph::no_value;
  for (const std::size_t k : {1, 0}) {
    const ValueId then = g[v].args[k], first = g[v].args[1 - k];
    if (g[first].op != Op::Mul || uses.count(first) > 1 || uses.region(first) != uses.region(v))
      continue;
    for (const std::size_t j : {1, 0})
      if (makes_one(g, g[first].args[j], then) && g[g[first].args[1 - j]].op == Op::Dot)
        return g[first].args[1 - j];
  }
  return graph::no_value;
}

}  // namespace

void tell_factors(Program& l) {
  const Graph& g = l.graph;
  if (g.approx_math) return;
  const graph::Uses uses(g);
  for (std::uint32_t number = 0; number < g.insts.size(); ++number) {
    const ValueId v{number}, product = multiplied_twice(g, uses, v);
    if (product == graph::no_value) continue;
    l.remarks.push_back(
        {g.location(v),
         "the result of dot: each element is multiplied twice, by numbers of its row, its "
         "column or all: x * (a * b) multiplies it once, as .approx_math = true does with "
         "(x * a) * b"});
  }
}

}  // namespace palladium::passes
