// Sums, products and extremes of 16-bit floats: two neighbours take one instruction, where each by
// itself is widened, combined and rounded.
#include <optional>

#include "codegen/expand/nest.hpp"

namespace palladium::expand {
namespace {

std::optional<Row> of_all(const thread::Expr& x) {
  using graph::Op;
  if (x.node != thread::Node::op) return {};
  switch (x.op) {
  case Op::Add: return Row::add_all;
  case Op::Sub: return Row::sub_all;
  case Op::Mul: return Row::mul_all;
  case Op::Max: return Row::max_all;
  case Op::Min: return Row::min_all;
  default: return {};
  }
}

}  // namespace

// The elements of a vector, behind the loop over e, which is open; nothing where the value is none
// of these.
VariableId Nest::combined(DType type, ExprId value) {
  if ((type != f16 && type != bf16) || vector_ % 2 != 0 || !of_all(e_[unnamed(value)]))
    return thread::no_variable;
  if ((e_.depends(value) & (thread::on_element | thread::in_element)) == 0)
    return thread::no_variable;
  std::vector<thread::Call> calls;
  (void)together(type, value, calls);
  b_.close();
  const VariableId all = e_[calls.back().args[0]].variable;
  for (thread::Call& call : calls) b_.add(std::move(call));
  return all;
}

// What no function computes of all is put, element by element, where one finds it.
Nest::Together Nest::together(DType type, ExprId value, std::vector<thread::Call>& calls) {
  const thread::Expr x = e_[unnamed(value)];
  const bool is_each = (e_.depends(value) & (thread::on_element | thread::in_element)) != 0;
  if (x.node == thread::Node::element && e_[x.variable].type == type) {
    const Affine at = e_.affine(x.args[0]);
    const std::int64_t step = at.coefficient(element_);
    const Affine first = at.without(element_);
    const bool is_named = (e_.depends(first) & (thread::on_element | thread::in_element)) != 0;
    if (!is_named && (step == 0 || step == 1))
      return {first == Affine() ? e_.address(x.variable) : e_.address(x.variable, e_.sum(first)),
              step};
  }
  if (!is_each) {
    const ExprId name = x.node == thread::Node::variable ? value : temporary("x", value);
    return {e_.address(e_[name].variable), 0};
  }
  const VariableId all = unfilled("y", type, vector_);
  b_.declare_around(all);
  const std::optional<Row> function = of_all(x);
  if (!function) {
    b_.add(thread::Assign{e_.element(all, element_), value});
    return {e_.address(all), 1};
  }
  const Together a = together(type, x.args[0], calls), b = together(type, x.args[1], calls);
  calls.push_back({.function = *function,
                   .templates = {std::int64_t{vector_}},
                   .args = {e_.address(all), a.address, b.address}});
  if (a.step == 0 || b.step == 0)
    calls.back().templates.insert(calls.back().templates.end(), {a.step, b.step});
  return {e_.address(all), 1};
}

}  // namespace palladium::expand
