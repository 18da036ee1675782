// What is known of operations before they are computed: of constants, of intervals, and of blocks
// that are wholly inside of their arrays.
#include <algorithm>

#include "codegen/graph/fold.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/ends.hpp"

namespace palladium::passes {

using graph::Inst;
using graph::Op;
using thread::Affine;
using thread::ExprId;
using thread::no_expr;

namespace {

bool is_comparison(Op op) { return op == Op::Ge || op == Op::Gt || op == Op::Le || op == Op::Lt; }

// What a comparison of integers gives for all their values; nothing where that differs.
std::optional<bool> compared(Op op, const thread::Facts& a, const thread::Facts& b) {
  switch (op) {
  case Op::Gt: return compared(Op::Lt, b, a);
  case Op::Le: return compared(Op::Ge, b, a);
  case Op::Lt:
    if (a.high < b.low) return true;
    if (a.low >= b.high) return false;
    return {};
  case Op::Ge:
    if (a.low >= b.high) return true;
    if (a.high < b.low) return false;
    return {};
  default: return {};
  }
}

}  // namespace

bool Elements::holds_before_end(ValueId v, const Coordinates& c) {
  if (nest_ == nullptr || nest_->ends.empty()) return false;
  const auto asked = before_end(g_, v);
  const auto number = asked ? sums_.of(asked->number, c) : std::nullopt;
  return number && is_before_end(*number, asked->extent);
}

// Conditions of staged windows alone: others are read at one offset, by accesses with tests.
bool Elements::holds_if_whole(ValueId v, const Coordinates& c) {
  const Inst& i = g_[v];
  if (nest_ == nullptr || !is_comparison(i.op) || !g_[i.args[0]].type.dtype.is_integer())
    return false;
  if (!if_whole_) {
    if_whole_.emplace();
    for (const WindowId w : accessed_windows(l_, *nest_)) {
      if (!l_.windows[w].is_staged()) continue;
      const auto whole = sums_.of_whole_block(l_.windows[w]);
      if (whole) if_whole_->insert(if_whole_->end(), whole->begin(), whole->end());
    }
  }
  if (if_whole_->empty()) return false;
  const auto conditions = sums_.of_condition(v, c);
  return conditions && std::ranges::all_of(*conditions, [&](const Affine& sum) {
           return sums_.follows(sum, *if_whole_);
         });
}

// Where a vector is below a limit as a whole or not at all, the first of its elements is asked.
ExprId Elements::compared_first(Op op, const std::vector<ExprId>& operands) {
  const bool turned = op == Op::Gt || op == Op::Le;
  const Affine at = e_.affine(operands[turned ? 1 : 0]), first = at.without(element_);
  const ExprId limit = operands[turned ? 0 : 1];
  constexpr thread::Depends on_elements = thread::on_element | thread::in_element;
  if (vector_ == 1 || at.coefficient(element_) != 1 ||
      ((e_.depends(first) | e_.depends(limit)) & on_elements) != 0 ||
      e_.multiple(first) % vector_ != 0 || e_.facts(limit).multiple % vector_ != 0)
    return no_expr;
  return e_.op(op == Op::Lt || op == Op::Gt ? Op::Lt : Op::Ge, bool_, {e_.sum(first), limit});
}

// no_expr: it has to be computed.
ExprId Elements::folded(const Inst& i, const std::vector<ExprId>& operands) {
  const auto literal = [&](ExprId x) -> const thread::Expr* {
    return e_[x].node == thread::Node::literal ? &e_[x] : nullptr;
  };
  if (is_comparison(i.op) && e_[operands[0]].type.is_integer() && e_[operands[0]].type != u64) {
    const auto known = compared(i.op, e_.facts(operands[0]), e_.facts(operands[1]));
    if (known) return e_.literal(bool_, *known ? 1 : 0);
  }
  if (is_comparison(i.op) && e_[operands[0]].type == i32)
    if (const ExprId first = compared_first(i.op, operands); first != no_expr) return first;
  if ((i.op == Op::And || i.op == Op::Or) && i.type.dtype.is_bool())
    for (std::size_t k = 0; k < 2; ++k)
      if (const thread::Expr* x = literal(operands[k]))
        return (x->number != 0) == (i.op == Op::And) ? operands[1 - k] : operands[k];
  if (i.op == Op::Select)
    if (const thread::Expr* x = literal(operands[0])) return operands[x->number != 0 ? 1 : 2];
  std::vector<std::uint64_t> bits;
  for (const ExprId o : operands) {
    const thread::Expr* const x = literal(o);
    if (x == nullptr || i.op == Op::Select) return no_expr;
    bits.push_back(static_cast<std::uint64_t>(x->number));
  }
  if (!i.type.dtype.is_integer() || !e_[operands[0]].type.is_integer()) return no_expr;
  const auto result = graph::fold(i.op, e_[operands.back()].type, i.type.dtype, bits);
  return result ? e_.literal(i.type.dtype, *result) : no_expr;
}

}  // namespace palladium::passes
