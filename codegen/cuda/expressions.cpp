#include "codegen/cuda/expressions.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::cuda {

using enum Binding;
using thread::Expr;
using thread::ExprId;
using thread::Node;
using thread::Operator;

namespace {

struct Spelt {
  const char* text;
  Binding binding;
};

Binding tighter(Binding b) { return static_cast<Binding>(static_cast<int>(b) + 1); }

Spelt spelt(Operator by) {
  switch (by) {
  case Operator::mul: return {" * ", multiplicative};
  case Operator::div: return {" / ", multiplicative};
  case Operator::rem: return {" % ", multiplicative};
  case Operator::sub: return {" - ", additive};
  case Operator::bit_or: return {" | ", bitwise_or};
  case Operator::bit_xor: return {" ^ ", bitwise_xor};
  case Operator::shift_left: return {" << ", shifts};
  case Operator::shift_right: return {" >> ", shifts};
  case Operator::less: return {" < ", relation};
  case Operator::at_least: return {" >= ", relation};
  case Operator::greater: return {" > ", relation};
  case Operator::equal: return {" == ", equality};
  case Operator::differs: return {" != ", equality};
  }
  throw InternalError("print: an operator without spelling");
}

}  // namespace

OpForm Expressions::form(const Expr& e) const {
  const ExprId operand = e.args[e.op == graph::Op::Select ? 1 : 0];
  return form_of(e.op, e_[operand].type, e.type, p_.approx_math);
}

Binding Expressions::binding(ExprId id) const {
  const Expr& e = e_[id];
  switch (e.node) {
  case Node::number: return e.number < 0 ? unary : primary;
  case Node::literal:
    return starts_with_sign(e.type, static_cast<std::uint64_t>(e.number)) ? unary : primary;
  case Node::sum:
    return e.args.size() == 1 && e.number == 0 ? (e.coefficients[0] == -1 ? unary : multiplicative)
                                               : additive;
  case Node::plain: return spelt(e.by).binding;
  case Node::op: return form(e).is_primary() ? primary : conditional;
  case Node::address: return e.args.empty() ? unary : additive;
  case Node::choose: return conditional;
  case Node::all: return conjunction;
  default: return primary;
  }
}

std::string Expressions::text(ExprId id, Binding within) const {
  const std::string inner = text(id);
  return binding(id) < within ? "(" + inner + ")" : inner;
}

std::string Expressions::sum(const Expr& e) const {
  std::string out;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    const std::int64_t c = e.coefficients[i];
    std::string term = text(e.args[i], c == 1 ? additive : multiplicative);
    if (c == -1)
      term = "-" + term;
    else if (c != 1)
      term += " * " + std::to_string(c);
    out += (out.empty() ? "" : " + ") + term;
  }
  if (e.number > 0) out += " + " + std::to_string(e.number);
  if (e.number < 0) out += " - " + std::to_string(-e.number);
  return out;
}

std::string Expressions::text_behind_pointer(ExprId offset) const {
  const Expr& e = e_[offset];
  const auto is_signed = [&](ExprId x) { return e_[x].type == i32 || e_[x].type == i64; };
  if (e.node != Node::sum || !is_signed(offset) || !std::ranges::all_of(e.args, is_signed))
    return text(offset, multiplicative);
  Expr first = e, last = e;
  for (Expr* part : {&first, &last}) part->args.clear(), part->coefficients.clear();
  first.number = 0;
  const bool is_short = e_[offset].type == i32;
  for (std::size_t i = 0; i < e.args.size(); ++i) {
    const thread::Depends moving = e_.depends(e.args[i]) & ~(is_short ? thread::on_thread : 0);
    Expr& part = moving == 0 ? first : last;
    part.args.push_back(e.args[i]);
    part.coefficients.push_back(e.coefficients[i]);
  }
  std::string front = sum(first), behind = sum(last);
  if (behind.empty()) return front;
  if (is_short && first.args.size() > 1) front = "(" + front + ")";
  return front + (front.empty() || last.args.empty() ? "" : " + ") + behind;
}

std::string Expressions::joined(const std::vector<ExprId>& args) const {
  std::string out;
  for (const ExprId a : args) {
    const Expr& e = e_[a];
    const bool sized = e.node == Node::number && e.type != i32;  // overloads look at the type
    const std::string one = sized ? fmt::format("{}({})", type_name(e.type), e.number) : text(a);
    out += (out.empty() ? "" : ", ") + one;
  }
  return out;
}

std::string Expressions::call(const Expr& e) const {
  const std::string of = e.templated ? "<" + type_name(e.type) + ">" : "";
  return fmt::format("pl::{}{}({})", device::info(e.function).name, of, joined(e.args));
}

std::string Expressions::operation(const Expr& e) const {
  const OpForm form = this->form(e);
  std::vector<std::string> args;
  for (const ExprId a : e.args) args.push_back(form.is_call ? text(a) : text(a, primary));
  return spell(form, e.type, args);
}

std::string Expressions::address(const Expr& e) const {
  const thread::Variable& v = e_[e.variable];
  if (v.form == thread::Form::value) return "&" + v.name;
  return e.args.empty() ? v.name : v.name + " + " + text(e.args[0], additive);
}

bool Expressions::is_writable(ExprId pointer) const {
  const Expr& e = e_[pointer];
  return e.node == Node::reinterpret ? is_writable(e.args[0]) : e_[e.variable].writable;
}

std::string Expressions::text(ExprId id) const {
  const Expr& e = e_[id];
  switch (e.node) {
  case Node::literal: return literal(e.type, static_cast<std::uint64_t>(e.number));
  case Node::number: return std::to_string(e.number);
  case Node::variable: return name(e.variable);
  case Node::sum: return sum(e);
  case Node::bits: {
    const std::string of = text(e.args[0], primary);
    return e.shift == 0 ? fmt::format("({} & {})", of, e.number)
                        : fmt::format("({} >> {} & {})", of, e.shift, e.number >> e.shift);
  }
  case Node::plain: {
    // Left to right: the right operand needs parentheses where it binds alike.
    const Spelt by = spelt(e.by);
    return text(e.args[0], by.binding) + by.text + text(e.args[1], tighter(by.binding));
  }
  case Node::op: return operation(e);
  case Node::element: return fmt::format("{}[{}]", name(e.variable), text(e.args[0]));
  case Node::address: return address(e);
  case Node::cast: return fmt::format("{}({})", type_name(e.type), text(e.args[0]));
  case Node::reinterpret:
    return fmt::format("reinterpret_cast<{}{}*>({})", is_writable(e.args[0]) ? "" : "const ",
                       type_name(e.type), text(e.args[0]));
  case Node::bitcast: return fmt::format("pl::bitcast<{}>({})", type_name(e.type), text(e.args[0]));
  case Node::fold:
    switch (e.how) {
    case thread::Fold::sum: return "pl::Sum()";
    case thread::Fold::product: return "pl::Prod()";
    case thread::Fold::max: return "pl::Max()";
    case thread::Fold::min: return "pl::Min()";
    }
    break;
  case Node::call: return call(e);
  case Node::choose:
    return fmt::format("{} ? {} : {}", text(e.args[0], conjunction), text(e.args[1], primary),
                       text(e.args[2], primary));
  case Node::all: {
    std::string out;
    for (const ExprId a : e.args) out += (out.empty() ? "" : " && ") + text(a, conjunction);
    return out;
  }
  }
  throw InternalError("print: an expression without spelling");
}

}  // namespace palladium::cuda
