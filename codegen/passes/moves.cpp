// Elements that come from elsewhere in their value: slices, parts put together, elements chosen by
// number. Coordinates follow from coordinates; a value in registers is read through shared memory.
//
// A part is asked for elements that it does not have, where another one's are taken: what it reads
// for them is tested (Pending::partial), and what it makes of them is dropped.
#include "codegen/passes/elements.hpp"

namespace palladium::passes {

using graph::Inst;
using graph::Op;
using thread::Affine;
using thread::Bounds;
using thread::ExprId;
using thread::no_expr;

// The i32 in [0, most], as an index.
Affine Elements::clamped(ExprId x, std::int64_t most) {
  if (most == 0) return {};
  if (e_.facts(x).high > most) x = e_.op(Op::Min, i32, {x, e_.number(most)});
  if (e_.facts(x).low < 0) x = e_.op(Op::Max, i32, {x, e_.number(0)});
  return named_index(x);
}

// Where the part begins that has `part` elements of `whole`, by the starts that are operands.
Coordinates Elements::begin_of_part(std::span<const ExprId> starts, const Extents& whole,
                                    const Extents& part) {
  Coordinates begin;
  for (std::size_t d = 0; d < whole.size(); ++d)
    begin.push_back(clamped(starts[d], whole[d] - part[d]));
  return begin;
}

bool Elements::next_of_move(Pending& p, Pending& operand, ExprId& value) {
  const Inst& i = g_[p.v];
  const auto want = [&](std::size_t arg, Coordinates c, bool partial = false) {
    operand = {.v = i.args[arg],
               .c = std::move(c),
               .map = map_of_operand(g_, p.v, arg, p.map),
               .partial = partial};
    return true;
  };
  switch (i.op) {
  case Op::Concatenate: return next_of_concatenation(p, operand, value);
  case Op::DynamicUpdateSlice: return next_of_update(p, operand, value);
  default: break;
  }
  const Extents& from = g_[i.args[0]].type.shape;
  const bool chooses = i.op == Op::TakeAlong;
  const std::size_t numbers = i.args.size() - 1;  // they come first
  if (p.operands.size() < numbers)
    return want(1 + p.operands.size(), chooses ? p.c : Coordinates());
  if (p.operands.size() > numbers) {
    value = p.operands.back();
    return false;
  }
  Coordinates c = p.c;
  if (chooses) {
    const auto along = static_cast<std::size_t>(graph::taken(i));
    c[along] = clamped(p.operands[0], from[along] - 1);
  } else if (i.op == Op::Slice) {
    const graph::SliceView slice = graph::SliceView::of(i);
    for (std::size_t d = 0; d < c.size(); ++d)
      c[d] = from[d] == 1 ? Affine() : c[d] * slice.strides[d] + Affine(slice.starts[d]);
  } else {
    const Coordinates begin = begin_of_part(p.operands, from, i.type.shape);
    for (std::size_t d = 0; d < c.size(); ++d) c[d] = from[d] == 1 ? Affine() : begin[d] + c[d];
  }
  return want(0, std::move(c));
}

// Of parts of which no element can be asked for, nothing is.
bool Elements::next_of_concatenation(Pending& p, Pending& operand, ExprId& value) {
  const Inst& i = g_[p.v];
  const auto along = static_cast<std::size_t>(graph::concatenated(i));
  const auto extent = [&](std::size_t k) { return g_[i.args[k]].type.shape[along]; };
  const thread::Facts known = e_.facts(e_.sum(p.c[along]));
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < p.operands.size(); ++k) begin += extent(k);
  while (p.operands.size() < i.args.size()) {
    const std::size_t k = p.operands.size();
    const bool is_last = k + 1 == i.args.size();
    const bool is_wanted = known.high >= begin && (known.low < begin + extent(k) || is_last);
    if (is_wanted) {
      Coordinates c = p.c;
      c[along] = extent(k) == 1 ? Affine() : c[along] + Affine(-begin);
      operand = {.v = i.args[k],
                 .c = std::move(c),
                 .map = map_of_operand(g_, p.v, k, p.map),
                 .partial = true};
      return true;
    }
    p.operands.push_back(no_expr);
    begin += extent(k);
  }
  value = no_expr;
  for (std::size_t k = i.args.size(); k-- > 0;) {
    const std::int64_t end = begin;
    begin -= extent(k);
    if (p.operands[k] == no_expr) continue;
    const ExprId before = predicate({{p.c[along], e_.number(end)}});
    value = value == no_expr || before == no_expr ? p.operands[k]
                                                  : e_.choose(before, p.operands[k], value);
  }
  value = named(p.v, value);
  return false;
}

// The starts, then the whole, then the part.
bool Elements::next_of_update(Pending& p, Pending& operand, ExprId& value) {
  const Inst& i = g_[p.v];
  const std::size_t starts = i.args.size() - 2, done = p.operands.size();
  const auto want = [&](std::size_t arg, Coordinates c, bool partial) {
    operand = {.v = i.args[arg],
               .c = std::move(c),
               .map = map_of_operand(g_, p.v, arg, p.map),
               .partial = partial};
    return true;
  };
  if (done < starts) return want(2 + done, {}, false);
  if (done == starts) return want(0, p.c, false);
  const Extents& part = g_[i.args[1]].type.shape;
  const Coordinates begin = begin_of_part(std::span(p.operands).first(starts), i.type.shape, part);
  Coordinates c = p.c;
  Bounds inside;
  for (std::size_t d = 0; d < c.size(); ++d) {
    c[d] = c[d] + begin[d] * -1;
    if (part[d] == i.type.shape[d]) continue;
    inside.push_back({c[d], e_.number(0), true});
    inside.push_back({c[d], e_.number(part[d])});
    if (part[d] == 1) c[d] = {};
  }
  if (done == starts + 1) return want(1, std::move(c), true);
  const ExprId updated = predicate(inside);
  value = updated == no_expr ? p.operands.back()
                             : e_.choose(updated, p.operands.back(), p.operands[starts]);
  value = named(p.v, value);
  return false;
}

}  // namespace palladium::passes
