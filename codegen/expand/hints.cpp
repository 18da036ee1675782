// What the user says of integers: a fact of the thread program, and a check in the emulator.
#include <algorithm>

#include "codegen/expand/nest.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::Op;

namespace {

ExprId as(Exprs& e, DType t, ExprId x) { return e[x].type == t ? x : e.cast(t, x); }

ExprId is_multiple(Exprs& e, ExprId x, std::int64_t n) {
  const DType wide = e[x].type == u64 ? u64 : i64;
  const ExprId rest = e.plain(Operator::rem, as(e, wide, x), e.number(n, wide), wide);
  return e.plain(Operator::equal, rest, e.number(0, wide), bool_);
}

}  // namespace

ExprId Nest::hinted(const Pending& p) {
  const Inst& i = g_[p.v];
  const ExprId x = p.operands[0];
  const Location at = g_.location(p.v);
  const Location outer = b_.at(at == Location{} ? b_.at() : at);
  ExprId value = x;
  if (i.type.shape.empty())
    value = named(p.v, multiple(i, x));
  else if (!beside_ && std::ranges::count(l_.checked_hints, p.v) > 0)
    for (std::size_t d = 0; d < i.type.shape.size(); ++d) check_hint(p, d);
  b_.at(outer);
  return value;
}

// The same number, of which is known what the user says of it.
ExprId Nest::multiple(const Inst& i, ExprId x) {
  const std::int64_t n = graph::hint(i)[0];
  if (e_.facts(x).multiple % n == 0) return x;
  b_.place(e_.depends(x), thread::Check{.condition = is_multiple(e_, x, n),
                                        .message = graph::broken_hint(i, 0),
                                        .value = as(e_, i64, x)});
  return e_.multiple_of(x, n);
}

// Compares an element with the one before it along d.
void Nest::check_hint(const Pending& p, std::size_t d) {
  const Inst& i = g_[p.v];
  const std::int64_t n = graph::hint(i)[d];
  if (n == 1) return;
  const bool runs = i.op == Op::MultipleOf;
  const ExprId along = e_.sum(p.c[d]);
  const ExprId in_group =
      runs ? along
           : e_.plain(Operator::rem, along, e_.number(std::min<std::int64_t>(n, INT32_MAX)));
  const ExprId back = e_.call(Row::min, i32, {in_group, e_.number(1)});
  Coordinates before = p.c;
  before[d] = before[d] + Affine::term(back, -1);
  beside_ = true;
  const ExprId previous = as(e_, i64, evaluate(i.args[0], before, p.map, false));
  beside_ = false;
  const ExprId x = as(e_, i64, p.operands[0]);
  const ExprId step = runs ? e_.number(1, i64) : e_.cast(i64, back);
  ExprId holds = e_.plain(Operator::equal, e_.plain(Operator::sub, x, previous, i64), step, bool_);
  if (runs) holds = e_.plain(Operator::bit_or, holds, is_multiple(e_, p.operands[0], n), bool_);
  Bounds existing = padding(p.map);
  if (p.partial) add_range(existing, p.c, i.type.shape);
  const ExprId test = predicate(existing);
  b_.place(e_.depends(holds) | e_.depends(test),
           thread::Check{holds, graph::broken_hint(i, d), x, test});
}

}  // namespace palladium::expand
