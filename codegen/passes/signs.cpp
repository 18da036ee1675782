#include "codegen/passes/signs.hpp"

#include <algorithm>

#include "codegen/graph/extents.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;

constexpr int deepest = 4;  // chains of operations that are followed

constexpr int any_dim = -3;  // of a map: at some coordinate

/// Elements of a value, at these coordinates of a loop nest.
struct Part {
  ValueId v;
  DimMap map;
};

Part whole(const Graph& g, ValueId v) {
  return {v, identity_map(static_cast<int>(g[v].type.shape.size()))};
}

// The value whose elements a broadcast, reshape or transpose moves.
Part source(const Graph& g, Part e) {
  for (;;) {
    const Inst& i = g[e.v];
    if (i.op != Op::Broadcast && i.op != Op::Reshape && i.op != Op::Transpose) return e;
    e = {i.args[0], map_of_operand(g, e.v, 0, e.map)};
  }
}

Part operand(const Graph& g, const Part& e, std::size_t i) {
  return {g[e.v].args[i], map_of_operand(g, e.v, i, e.map)};
}

// The elements that a reduction folds. What stands in for others where a condition does not hold is
// none of those that are asked about.
Part folded(const Graph& g, const Part& e, const Holding& holds) {
  const Inst& i = g[e.v];
  const auto reduced = graph::dimensions(i);
  DimMap map;
  std::size_t kept = 0;
  for (std::size_t d = 0; d < g[i.args[0]].type.shape.size(); ++d)
    map.push_back(std::ranges::find(reduced, static_cast<std::int64_t>(d)) != reduced.end()
                      ? DimIndex(any_dim)
                      : e.map[kept++]);
  const Inst& of = g[i.args[0]];
  if (of.op == Op::Select && holds && holds(of.args[0])) return {of.args[1], std::move(map)};
  return {i.args[0], std::move(map)};
}

// Whether x is, or is one of, these elements.
bool is_among(const Graph& g, const Part& elements, const Part& x) {
  const Part a = source(g, elements), b = source(g, x);
  if (a.v != b.v) return false;
  for (std::size_t d = 0; d < a.map.size(); ++d) {
    if (g[a.v].type.shape[d] == 1 || a.map[d] == any_dim) continue;
    if (a.map[d] == opaque_dim || a.map[d] != b.map[d]) return false;
  }
  return true;
}

bool is_float_cast(const Graph& g, ValueId v) {
  return g[v].op == Op::Cast && g[v].type.dtype.is_float() && g[g[v].args[0]].type.dtype.is_float();
}

// Whether `high` is one of several of which none is below x. Conversions and maxima keep that.
bool bounds(const Graph& g, const Part& high, const Part& x, const Holding& holds, int depth = 0) {
  if (is_among(g, high, x)) return true;
  if (depth == deepest) return false;
  const Part a = source(g, high), b = source(g, x);
  switch (g[a.v].op) {
  case Op::Max:
    return bounds(g, operand(g, a, 0), b, holds, depth + 1) ||
           bounds(g, operand(g, a, 1), b, holds, depth + 1);
  case Op::ReduceMax: return bounds(g, folded(g, a, holds), b, holds, depth + 1);
  case Op::Cast:
    return is_float_cast(g, a.v) && is_float_cast(g, b.v) &&
           g[a.v].type.dtype == g[b.v].type.dtype &&
           bounds(g, operand(g, a, 0), operand(g, b, 0), holds, depth + 1);
  default: return false;
  }
}

enum class Sign { nonpositive, nonnegative };
Sign other(Sign s) { return s == Sign::nonpositive ? Sign::nonnegative : Sign::nonpositive; }

bool is_positive_constant(const Graph& g, ValueId v) {
  const Inst& i = g[source(g, whole(g, v)).v];
  return i.op == Op::Constant && graph::to_double(i.type.dtype, i.attr.bits) > 0;
}

bool has(const Graph& g, ValueId v, Sign sign, const Holding& holds, int depth);

// By those of the operands.
bool product_has(const Graph& g, const Inst& i, Sign sign, const Holding& holds, int depth) {
  const auto arg = [&](std::size_t k, Sign s) { return has(g, i.args[k], s, holds, depth + 1); };
  for (const Sign first : {Sign::nonnegative, Sign::nonpositive})
    if (arg(0, first) && arg(1, sign == Sign::nonnegative ? first : other(first))) return true;
  return false;
}

bool has(const Graph& g, ValueId v, Sign sign, const Holding& holds, int depth) {
  v = source(g, whole(g, v)).v;
  const Inst& i = g[v];
  if (!i.type.dtype.is_float() || depth == deepest) return false;
  const bool up = sign == Sign::nonnegative;
  const auto arg = [&](std::size_t k) { return has(g, i.args[k], sign, holds, depth + 1); };
  switch (i.op) {
  case Op::Constant: {
    const double x = graph::to_double(i.type.dtype, i.attr.bits);
    return up ? x >= 0 : x <= 0;
  }
  case Op::Abs:
  case Op::Exp:
  case Op::Exp2:
  case Op::Sqrt:
  case Op::Logistic: return up;
  case Op::Neg: return has(g, i.args[0], other(sign), holds, depth + 1);
  case Op::Cast: return is_float_cast(g, v) && arg(0);
  case Op::Add: return arg(0) && arg(1);
  case Op::Sub:
    return up ? bounds(g, whole(g, i.args[0]), whole(g, i.args[1]), holds)
              : bounds(g, whole(g, i.args[1]), whole(g, i.args[0]), holds);
  case Op::Mul:
    if (i.args[0] == i.args[1]) return up;
    return product_has(g, i, sign, holds, depth);
  case Op::Div: return is_positive_constant(g, i.args[1]) && arg(0);  // 1 / -0 is below 0
  case Op::Max: return up ? arg(0) || arg(1) : arg(0) && arg(1);
  case Op::Min: return up ? arg(0) && arg(1) : arg(0) || arg(1);
  case Op::Select: return arg(1) && arg(2);
  case Op::ReduceSum:
  case Op::ReduceMax:
  case Op::ReduceMin: return arg(0);
  default: return false;
  }
}

}  // namespace

bool is_nonpositive(const Graph& g, ValueId v, const Holding& holds) {
  return has(g, v, Sign::nonpositive, holds, 0);
}
bool is_nonnegative(const Graph& g, ValueId v) { return has(g, v, Sign::nonnegative, {}, 0); }

namespace {

bool is_natural(const Graph& g, ValueId v, int depth = 0) {
  const Inst& i = g[source(g, whole(g, v)).v];
  if (!i.type.dtype.is_integer() || depth == deepest) return false;
  if (!i.type.dtype.is_signed() || i.op == Op::DimValue) return true;
  if (i.op == Op::Constant) return graph::to_int(i.type.dtype, i.attr.bits) >= 0;
  const auto arg = [&](std::size_t k) { return is_natural(g, i.args[k], depth + 1); };
  if (i.op == Op::Max) return arg(0) || arg(1);
  return i.op == Op::Min && arg(0) && arg(1);
}

}  // namespace

bool is_count(const Graph& g, ValueId v) {
  const Inst& i = g[source(g, whole(g, v)).v];
  return i.op == Op::Cast && i.type.dtype.is_float() && is_natural(g, i.args[0]);
}

bool divides_by_count(const Graph& g, const Inst& i) {
  return i.op == Op::Div && i.type.dtype == f32 && !g.approx_math && is_count(g, i.args[1]);
}

std::optional<std::uint32_t> symbol_counted(const Graph& g, ValueId v) {
  const Inst& i = g[source(g, whole(g, v)).v];
  if (i.op != Op::Cast || i.type.dtype != f32) return {};
  const Inst& of = g[source(g, whole(g, i.args[0])).v];
  return of.op == Op::DimValue ? std::optional(graph::symbol_of(of)) : std::nullopt;
}

bool is_part_of(const Graph& g, ValueId part, ValueId v, const Holding& holds) {
  const Part sum = source(g, whole(g, v));
  if (g[sum.v].op != Op::ReduceSum && g[sum.v].op != Op::ReduceMax) return false;
  const Part all = folded(g, sum, holds), x = whole(g, part);
  if (g[all.v].op == Op::Abs && is_among(g, operand(g, all, 0), x)) return true;
  return is_nonnegative(g, part) && is_among(g, all, x);
}

}  // namespace palladium::passes
