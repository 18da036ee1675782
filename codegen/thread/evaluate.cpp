#include "codegen/thread/evaluate.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace palladium::thread {
namespace {

using graph::Op;
using Number = std::optional<std::int64_t>;
using Operands = std::span<const std::int64_t>;

Number plain(Operator by, std::int64_t a, std::int64_t b) {
  std::int64_t n = 0;
  switch (by) {
  case Operator::mul: return __builtin_mul_overflow(a, b, &n) ? Number() : n;
  case Operator::div: return b == 0 || (a == INT64_MIN && b == -1) ? Number() : a / b;
  case Operator::rem: return b == 0 || (a == INT64_MIN && b == -1) ? Number() : a % b;
  case Operator::sub: return __builtin_sub_overflow(a, b, &n) ? Number() : n;
  case Operator::bit_or: return a | b;
  case Operator::bit_xor: return a ^ b;
  case Operator::shift_left: return b < 0 || b > 62 ? Number() : a << b;
  case Operator::shift_right: return b < 0 || b > 62 ? Number() : a >> b;
  case Operator::less: return a < b;
  case Operator::at_least: return a >= b;
  case Operator::greater: return a > b;
  case Operator::equal: return a == b;
  case Operator::differs: return a != b;
  }
  return {};
}

Number wrapped(DType t, std::int64_t n) { return graph::to_int(t, graph::to_bits(t, n)); }

Number operation(Op op, DType t, Operands x) {
  const auto natural = [&](std::size_t i) { return static_cast<std::uint64_t>(x[i]); };
  const auto back = [&](std::uint64_t n) { return wrapped(t, static_cast<std::int64_t>(n)); };
  switch (op) {
  case Op::Add: return back(natural(0) + natural(1));
  case Op::Sub: return back(natural(0) - natural(1));
  case Op::Mul: return back(natural(0) * natural(1));
  case Op::Neg: return back(0 - natural(0));
  case Op::Min: return std::min(x[0], x[1]);
  case Op::Max: return std::max(x[0], x[1]);
  case Op::Eq: return x[0] == x[1];
  case Op::Ne: return x[0] != x[1];
  case Op::Lt: return x[0] < x[1];
  case Op::Le: return x[0] <= x[1];
  case Op::Gt: return x[0] > x[1];
  case Op::Ge: return x[0] >= x[1];
  case Op::Select: return x[0] != 0 ? x[1] : x[2];
  case Op::And: return back(natural(0) & natural(1));
  case Op::Or: return back(natural(0) | natural(1));
  case Op::Xor: return back(natural(0) ^ natural(1));
  case Op::Div:
    if (x[1] == 0 || x[1] == -1) return back(x[1] == 0 ? ~std::uint64_t{0} : 0 - natural(0));
    return wrapped(t, x[0] / x[1]);
  case Op::Rem:
    if (x[1] == 0 || x[1] == -1) return x[1] == 0 ? x[0] : 0;
    return x[0] % x[1];
  case Op::ShiftLeft:
    return x[1] < 0 || x[1] >= 8 * t.bytes() ? 0 : back(natural(0) << x[1]);
  case Op::ShiftRight: {
    const bool all = x[1] < 0 || x[1] >= 8 * t.bytes();
    return x[0] >> (all ? 63 : x[1]);
  }
  default: return {};
  }
}

bool is_number(DType t) { return (t.is_integer() && t != u64) || t.is_bool(); }

Number sum(const Expr& e, Operands x) {
  std::int64_t n = e.number, term = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (__builtin_mul_overflow(e.coefficients[i], x[i], &term) ||
        __builtin_add_overflow(n, term, &n))
      return {};
  return n;
}

// Parts that an expression has many times over are evaluated once.
constexpr int most_repeated = 64;  // operations that are not worth remembering

class Evaluation {
 public:
  Evaluation(const Exprs& exprs, const Values& values) : exprs_(exprs), values_(values) {}

  Number operator()(ExprId x) {
    if (exprs_.size(x) <= most_repeated) return value_of(x);
    const auto it = known_.find(x);
    return it != known_.end() ? it->second : known_[x] = value_of(x);
  }

 private:
  Number value_of(ExprId root) {
    const Expr& e = exprs_[root];
    if (e.node == Node::variable) return values_(e.variable);
    if (!is_number(e.type)) return {};
    if (e.args.size() > few) {
      std::vector<std::int64_t> x(e.args.size());
      return value_of(e, x);
    }
    std::int64_t x[few];
    return value_of(e, {x, e.args.size()});
  }

  // Most expressions have no more operands: no memory is asked for.
  static constexpr std::size_t few = 6;

  Number value_of(const Expr& e, std::span<std::int64_t> x) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Number n = (*this)(e.args[i]);
      if (!n) return {};
      x[i] = *n;
    }
    switch (e.node) {
    case Node::literal: return graph::to_int(e.type, static_cast<std::uint64_t>(e.number));
    case Node::number: return e.number;
    case Node::sum: return sum(e, x);
    case Node::bits: return (x[0] & e.number) >> e.shift;
    case Node::plain: return plain(e.by, x[0], x[1]);
    case Node::op: return operation(e.op, e.type, x);
    case Node::cast: return e.type.is_bool() ? x[0] != 0 : wrapped(e.type, x[0]);
    case Node::choose: return x[0] != 0 ? x[1] : x[2];
    case Node::all: return std::ranges::all_of(x, [](std::int64_t n) { return n != 0; });
    default: return {};
    }
  }

  const Exprs& exprs_;
  const Values& values_;
  std::map<ExprId, Number> known_;
};

}  // namespace

std::optional<std::int64_t> evaluate(const Exprs& exprs, ExprId root, const Values& values) {
  return Evaluation(exprs, values)(root);
}

}  // namespace palladium::thread
