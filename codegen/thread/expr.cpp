#include "codegen/thread/expr.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace palladium::thread {
namespace {

using graph::Op;

// Expressions that share parts with themselves double at each step: a size is told up to this.
constexpr int most_size = 1 << 20;
constexpr std::int64_t unbounded_low = INT64_MIN, unbounded_high = INT64_MAX;

std::int64_t saturated(__int128 n) {
  return n <= unbounded_low    ? unbounded_low
         : n >= unbounded_high ? unbounded_high
                               : static_cast<std::int64_t>(n);
}

// Interval bounds that are infinite stay so.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  for (const std::int64_t infinite : {unbounded_low, unbounded_high})
    if (a == infinite || b == infinite) return infinite;
  return saturated(__int128{a} + b);
}
std::int64_t times(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == unbounded_low || a == unbounded_high)
    return (a > 0) == (b > 0) ? unbounded_high : unbounded_low;
  return saturated(__int128{a} * b);
}

// What a product is a multiple of; 1 where 64 bits do not hold it.
std::int64_t product_of_multiples(std::int64_t a, std::int64_t b) {
  const __int128 product = __int128{a} * b;
  const __int128 size = product < 0 ? -product : product;
  return size <= INT64_MAX ? static_cast<std::int64_t>(size) : 1;
}

Facts scaled(const Facts& f, std::int64_t by) {
  Facts out = f;
  out.multiple = product_of_multiples(f.multiple, by);
  out.low = times(by < 0 ? f.high : f.low, by);
  out.high = times(by < 0 ? f.low : f.high, by);
  return out;
}

Facts added(const Facts& a, const Facts& b) {
  return {.multiple = std::gcd(a.multiple, b.multiple),
          .low = plus(a.low, b.low),
          .high = plus(a.high, b.high),
          .depends = a.depends | b.depends};
}

Facts constant(std::int64_t n) {
  return {.multiple = n == INT64_MIN ? 1 : std::abs(n), .low = n, .high = n};
}

// Of what is a multiple of `n` > 0 besides.
Facts known_multiple(Facts f, std::int64_t n) {
  if (f.multiple == 0 || f.multiple % n == 0) return f;
  const std::int64_t both = product_of_multiples(f.multiple / std::gcd(f.multiple, n), n);
  f.multiple = std::max({both, f.multiple, n});
  return f;
}

// Which powers of two divide a number: arithmetic that wraps keeps them.
std::int64_t power_of_two(std::int64_t multiple) {
  return multiple == 0 ? 0 : multiple & -multiple;
}

bool fits(DType t, const Facts& f) {
  if (t == i32) return f.low >= INT32_MIN && f.high <= INT32_MAX;
  if (t == u32) return f.low >= 0 && f.high <= UINT32_MAX;
  return t == i64 || (t == u64 && f.low >= 0);
}

std::int64_t least(DType t) { return t == i32 ? INT32_MIN : t == i64 ? INT64_MIN : 0; }
std::int64_t greatest(DType t) {
  return t == i32 ? INT32_MAX : t == u32 ? std::int64_t{UINT32_MAX} : INT64_MAX;
}

// What is left where a value may have wrapped.
Facts within(DType t, Facts f) {
  if (fits(t, f)) return f;
  f.multiple = power_of_two(f.multiple);
  f.low = least(t);
  f.high = greatest(t);
  return f;
}

// Of a number of the type of which nothing more is known than what is said here.
Facts of_type(DType t, Facts f) {
  f.low = std::max(f.low, least(t));
  f.high = std::min(f.high, greatest(t));
  return f;
}

}  // namespace

Facts facts_of_counter(const Facts& low, const Facts& high, std::int64_t step) {
  return {.multiple = std::gcd(low.multiple, step),
          .low = low.low,
          .high = high.high == INT64_MAX ? high.high : high.high - 1};
}

// ---- Affine

Affine Affine::term(ExprId of, std::int64_t coefficient) {
  Affine a;
  if (coefficient != 0) a.terms_.push_back({of, coefficient});
  return a;
}

Affine Affine::operator+(const Affine& o) const {
  Affine sum = *this;
  sum.constant_ += o.constant_;
  for (const Term& t : o.terms_) {
    const auto same = std::ranges::find(sum.terms_, t.of, &Term::of);
    if (same != sum.terms_.end())
      same->coefficient += t.coefficient;
    else
      sum.terms_.push_back(t);
  }
  std::erase_if(sum.terms_, [](const Term& t) { return t.coefficient == 0; });
  return sum;
}

Affine Affine::operator*(std::int64_t factor) const {
  Affine product = *this;
  product.constant_ *= factor;
  for (Term& t : product.terms_) t.coefficient *= factor;
  if (factor == 0) product.terms_.clear();
  return product;
}

Affine Affine::without(ExprId term) const {
  Affine rest = *this;
  std::erase_if(rest.terms_, [&](const Term& t) { return t.of == term; });
  return rest;
}

std::int64_t Affine::coefficient(ExprId term) const {
  for (const Term& t : terms_)
    if (t.of == term) return t.coefficient;
  return 0;
}

bool Affine::divides(std::int64_t n) const {
  return constant_ % n == 0 &&
         std::ranges::all_of(terms_, [&](const Term& t) { return t.coefficient % n == 0; });
}

Affine Affine::quotient(std::int64_t n) const {
  Affine result(constant_ / n);
  for (const Term& t : terms_) result = result + term(t.of, t.coefficient / n);
  return result;
}

// ---- Exprs

std::size_t Exprs::Hash::operator()(const Expr& e) const {
  std::size_t h = 1469598103934665603ull;
  const auto mix = [&](std::uint64_t x) { h = (h ^ x) * 1099511628211ull; };
  mix(static_cast<std::uint64_t>(e.node));
  mix(static_cast<std::uint64_t>(e.type.kind()));
  mix(static_cast<std::uint64_t>(e.number));
  mix(static_cast<std::uint64_t>(e.shift));
  mix(thread::index(e.variable));
  mix(static_cast<std::uint64_t>(e.op) << 8 | static_cast<std::uint64_t>(e.by));
  mix(static_cast<std::uint64_t>(e.function) << 2 | static_cast<std::uint64_t>(e.how));
  for (const ExprId a : e.args) mix(thread::index(a));
  for (const std::int64_t c : e.coefficients) mix(static_cast<std::uint64_t>(c));
  return h;
}

VariableId Exprs::declare(Variable v) {
  variables_.push_back(std::move(v));
  return VariableId{static_cast<std::uint32_t>(variables_.size() - 1)};
}

ExprId Exprs::make(Expr e, Facts facts) {
  const auto [it, is_new] = ids_.try_emplace(e, ExprId{static_cast<std::uint32_t>(exprs_.size())});
  if (!is_new) return it->second;
  int size = 1;
  if (e.node != Node::element && e.node != Node::address)
    for (const ExprId a : e.args) size = std::min(most_size, size + this->size(a));
  exprs_.push_back(std::move(e));
  facts_.push_back(facts);
  sizes_.push_back(size);
  return it->second;
}

Depends Exprs::depends_of(const std::vector<ExprId>& args) const {
  Depends d = 0;
  for (const ExprId a : args) d |= facts(a).depends;
  return d;
}

ExprId Exprs::literal(DType t, std::uint64_t bits) {
  Facts f;
  if (t.is_integer()) f = constant(graph::to_int(t, bits));
  return make({.node = Node::literal, .type = t, .number = static_cast<std::int64_t>(bits)}, f);
}

ExprId Exprs::number(std::int64_t n, DType t) {
  return make({.node = Node::number, .type = t, .number = n}, constant(n));
}

ExprId Exprs::variable(VariableId v) {
  const Variable& x = (*this)[v];
  return make({.node = Node::variable, .type = x.type, .variable = v}, x.facts);
}

Facts Exprs::facts(const Affine& a) const {
  Facts f = constant(a.constant());
  for (const Affine::Term& t : a.terms()) f = added(f, scaled(facts(t.of), t.coefficient));
  return f;
}

Affine Exprs::affine(ExprId e) const {
  const Expr& x = (*this)[e];
  if (x.node == Node::number) return Affine(x.number);
  if (x.node == Node::literal && x.type == i32)
    return Affine(graph::to_int(i32, static_cast<std::uint64_t>(x.number)));
  if (x.node != Node::sum || x.type != i32) return Affine::term(e);
  Affine a(x.number);
  for (std::size_t i = 0; i < x.args.size(); ++i)
    a = a + Affine::term(x.args[i], x.coefficients[i]);
  return a;
}

ExprId Exprs::sum(const Affine& a, DType type) {
  Expr e{.node = Node::sum, .type = type, .number = a.constant()};
  for (const Affine::Term& t : a.terms()) {
    e.args.push_back((*this)[t.of].type == type ? t.of : cast(type, t.of));
    e.coefficients.push_back(t.coefficient);
  }
  if (e.args.empty()) return number(a.constant(), type);
  if (e.args.size() == 1 && e.coefficients[0] == 1 && a.constant() == 0) return e.args[0];
  return make(std::move(e), facts(a));
}

ExprId Exprs::bits(ExprId of, std::int64_t mask, int shift) {
  Facts f = facts(of);
  const bool whole = f.low >= 0 && f.high <= mask && ((mask + 1) & mask) == 0;
  const bool exact = whole && f.multiple % (std::int64_t{1} << shift) == 0;
  const std::int64_t low_zeros = std::max(power_of_two(mask), power_of_two(f.multiple));
  f.multiple = std::max(
      {std::int64_t{1}, low_zeros >> shift, exact ? f.multiple >> shift : std::int64_t{1}});
  f.high = f.low < 0 ? mask >> shift : std::min(mask, f.high) >> shift;
  f.low = 0;
  return make(
      {.node = Node::bits, .type = (*this)[of].type, .number = mask, .shift = shift, .args = {of}},
      f);
}

Facts Exprs::facts_of_plain(Operator by, const Facts& a, const Facts& b) const {
  Facts f{.depends = a.depends | b.depends};
  const bool natural = a.low >= 0 && b.low >= 0;
  switch (by) {
  case Operator::mul:
    f.multiple = product_of_multiples(a.multiple, b.multiple);
    if (natural) f.low = times(a.low, b.low), f.high = times(a.high, b.high);
    return f;
  case Operator::div:
    if (b.low == b.high && b.low > 0) {
      if (a.multiple % b.low == 0) f.multiple = a.multiple / b.low;
      if (natural) f.low = a.low / b.low, f.high = a.high / b.low;
    } else if (natural) {
      f.low = 0, f.high = a.high;
    }
    return f;
  case Operator::rem:
    if (natural) f.low = 0, f.high = std::min(a.high, b.high == INT64_MAX ? b.high : b.high - 1);
    f.multiple = std::gcd(a.multiple, b.multiple);
    return f;
  case Operator::sub: return added(a, scaled(b, -1));
  case Operator::shift_left:
    if (b.low == b.high && b.low >= 0 && b.low < 32)
      return scaled({a.multiple, a.low, a.high, f.depends}, std::int64_t{1} << b.low);
    return f;
  case Operator::bit_or:
  case Operator::bit_xor:
    f.multiple = std::gcd(power_of_two(a.multiple), power_of_two(b.multiple));
    if (natural && a.high != INT64_MAX && b.high != INT64_MAX) {
      f.low = 0;
      f.high = static_cast<std::int64_t>(
                   std::bit_ceil(static_cast<std::uint64_t>(std::max(a.high, b.high)) + 1)) -
               1;
    }
    return f;
  default: return f;
  }
}

// What is not negative is divided by a power of two as bits are: NVRTC does not know it is not.
ExprId Exprs::plain(Operator by, ExprId a, ExprId b, DType type) {
  const Facts divisor = facts(b);
  if (by == Operator::div && facts(a).low >= 0 && divisor.low == divisor.high && divisor.low > 1 &&
      std::has_single_bit(static_cast<std::uint64_t>(divisor.low))) {
    const Facts f = facts_of_plain(by, facts(a), divisor);
    const ExprId shift = number(std::countr_zero(static_cast<std::uint64_t>(divisor.low)), i32);
    return make(
        {.node = Node::plain, .type = type, .by = Operator::shift_right, .args = {a, shift}}, f);
  }
  const Facts f = facts_of_plain(by, facts(a), facts(b));
  return make({.node = Node::plain, .type = type, .by = by, .args = {a, b}}, f);
}

// Integers wrap: what of a multiple is a power of two survives it.
Facts Exprs::facts_of_op(Op op, DType type, const std::vector<ExprId>& args) const {
  Facts f{.depends = depends_of(args)};
  if (!type.is_integer()) return f;
  const auto arg = [&](std::size_t i) { return facts(args[i]); };
  switch (op) {
  case Op::Add: f = added(arg(0), arg(1)); break;
  case Op::Sub: f = added(arg(0), scaled(arg(1), -1)); break;
  case Op::Mul: f = facts_of_plain(Operator::mul, arg(0), arg(1)); break;
  case Op::Neg: f = scaled(arg(0), -1); break;
  case Op::Div:
    if (arg(1).low <= 0) return f;  // by 0 it is -1
    f = facts_of_plain(Operator::div, arg(0), arg(1));
    break;
  case Op::Cast:
    if (!(*this)[args[0]].type.is_integer()) return f;
    f = arg(0);
    break;
  case Op::ShiftLeft: f = facts_of_plain(Operator::shift_left, arg(0), arg(1)); break;
  case Op::And:
    f.multiple = std::max(power_of_two(arg(0).multiple), power_of_two(arg(1).multiple));
    if (arg(0).multiple == 0 || arg(1).multiple == 0) f.multiple = 0;
    break;
  case Op::MultipleOf: f = known_multiple(arg(0), arg(1).multiple); break;  // and the number
  case Op::Select:
    f.multiple = std::gcd(arg(1).multiple, arg(2).multiple);
    f.low = std::min(arg(1).low, arg(2).low);
    f.high = std::max(arg(1).high, arg(2).high);
    break;
  case Op::Min:
  case Op::Max: {
    const bool is_min = op == Op::Min;
    f.multiple = std::gcd(arg(0).multiple, arg(1).multiple);
    f.low = is_min ? std::min(arg(0).low, arg(1).low) : std::max(arg(0).low, arg(1).low);
    f.high = is_min ? std::min(arg(0).high, arg(1).high) : std::max(arg(0).high, arg(1).high);
    f = of_type(type, f);
    break;
  }
  default: return f;
  }
  f.depends = depends_of(args);
  return within(type, f);
}

ExprId Exprs::op(Op op, DType type, std::vector<ExprId> args) {
  const Facts f = facts_of_op(op, type, args);
  return make({.node = Node::op, .type = type, .op = op, .args = std::move(args)}, f);
}

ExprId Exprs::multiple_of(ExprId x, std::int64_t n) {
  return op(Op::MultipleOf, (*this)[x].type, {x, number(n, i64)});
}

ExprId Exprs::element(VariableId array, ExprId at) {
  const Variable& v = (*this)[array];
  return make({.node = Node::element, .type = v.type, .variable = array, .args = {at}},
              {.depends = v.facts.depends | facts(at).depends});
}

ExprId Exprs::address(VariableId of, ExprId at) {
  Expr e{.node = Node::address, .type = (*this)[of].type, .variable = of};
  Facts f{.depends = (*this)[of].facts.depends};
  if (at != no_expr) {
    f.depends |= facts(at).depends;
    e.args.push_back(at);
  }
  return make(std::move(e), f);
}

ExprId Exprs::cast(DType t, ExprId e) {
  if ((*this)[e].node == Node::number) return number((*this)[e].number, t);
  return make({.node = Node::cast, .type = t, .args = {e}}, within(t, facts(e)));
}

ExprId Exprs::reinterpret(DType t, ExprId pointer) {
  return make({.node = Node::reinterpret, .type = t, .args = {pointer}},
              {.depends = facts(pointer).depends});
}

ExprId Exprs::bitcast(DType t, ExprId e) {
  return make({.node = Node::bitcast, .type = t, .args = {e}}, {.depends = facts(e).depends});
}

ExprId Exprs::fold(Fold how) { return make({.node = Node::fold, .how = how}, {}); }

ExprId Exprs::call(device::Row function, DType type, std::vector<ExprId> args, bool templated,
                   Facts known) {
  known.depends |= depends_of(args);
  return make({.node = Node::call,
               .type = type,
               .function = function,
               .templated = templated,
               .args = std::move(args)},
              known);
}

ExprId Exprs::choose(ExprId condition, ExprId a, ExprId b) {
  Facts f = facts(a);
  const Facts& g = facts(b);
  f.multiple = std::gcd(f.multiple, g.multiple);
  f.low = std::min(f.low, g.low);
  f.high = std::max(f.high, g.high);
  f.depends |= g.depends | facts(condition).depends;
  return make({.node = Node::choose, .type = (*this)[a].type, .args = {condition, a, b}}, f);
}

ExprId Exprs::all(std::vector<ExprId> conditions) {
  std::erase(conditions, no_expr);
  if (conditions.empty()) return no_expr;
  if (conditions.size() == 1) return conditions[0];
  const Facts f{.depends = depends_of(conditions)};
  return make({.node = Node::all, .type = bool_, .args = std::move(conditions)}, f);
}

}  // namespace palladium::thread
