// Operators and elementwise functions.
#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

using Kind = Literal::Kind;

// Holds every literal, and every sum and difference of two, and every product but that of two
// naturals.
using Wide = __int128;
constexpr Wide too_much = Wide{1} << 64;

Wide wide(const Literal& l) {
  return l.kind == Kind::natural ? Wide{l.natural()} : Wide{l.integer};
}

// The number as a literal, where some integer dtype holds it.
std::optional<Literal> narrowed(Wide n) {
  if (n >= INT64_MIN && n <= INT64_MAX)
    return Literal{Kind::integer, static_cast<std::int64_t>(n), 0};
  if (n > 0 && n <= UINT64_MAX)
    return Literal{Kind::natural, static_cast<std::int64_t>(static_cast<std::uint64_t>(n)), 0};
  return {};
}

// Two C++ numbers stay one: nothing is recorded, the result is as weak as they are. CompileError
// for one that no integer dtype holds.
std::optional<Literal> fold(Op op, const Literal& x, const Literal& y, Location at) {
  const auto truth = [](bool b) { return Literal{Kind::truth, b, 0}; };
  const bool floating = x.kind == Kind::floating || y.kind == Kind::floating;
  if (floating) {
    const double a = x.number(), b = y.number();
    const auto number = [](double n) { return Literal{Kind::floating, 0, n}; };
    switch (op) {
    case Op::Add: return number(a + b);
    case Op::Sub: return number(a - b);
    case Op::Mul: return number(a * b);
    case Op::Div: return number(a / b);
    case Op::Eq: return truth(a == b);
    case Op::Ne: return truth(a != b);
    case Op::Lt: return truth(a < b);
    case Op::Le: return truth(a <= b);
    case Op::Gt: return truth(a > b);
    case Op::Ge: return truth(a >= b);
    default: return {};
    }
  }
  const Wide a = wide(x), b = wide(y);
  if (x.kind == Kind::truth && y.kind == Kind::truth) {
    switch (op) {
    case Op::And: return truth(a && b);
    case Op::Or: return truth(a || b);
    case Op::Xor: return truth(a != b);
    case Op::Eq: return truth(a == b);
    case Op::Ne: return truth(a != b);
    default: break;
    }
  }
  const auto number = [&](Wide n) {
    const std::optional<Literal> result = narrowed(n);
    if (!result)
      throw CompileError(at, std::string(graph::info(op).name) +
                                 ": the result of two literals is held by no integer dtype; give "
                                 "one of them a dtype in which it may wrap: pl::i64(x)");
    return result;
  };
  switch (op) {
  case Op::Add: return number(a + b);
  case Op::Sub: return number(a - b);
  case Op::Mul: return number(a > INT64_MAX && b > INT64_MAX ? too_much : a * b);
  case Op::Div: return b != 0 ? number(a / b) : std::nullopt;
  case Op::Rem: return b != 0 ? number(a % b) : std::nullopt;
  case Op::And: return number(a & b);
  case Op::Or: return number(a | b);
  case Op::Xor: return number(a ^ b);
  case Op::Max: return number(std::max(a, b));
  case Op::Min: return number(std::min(a, b));
  case Op::Eq: return truth(a == b);
  case Op::Ne: return truth(a != b);
  case Op::Lt: return truth(a < b);
  case Op::Le: return truth(a <= b);
  case Op::Gt: return truth(a > b);
  case Op::Ge: return truth(a >= b);
  default: return {};
  }
}

// The dtype that weak operands take: that of the typed ones, which must agree.
DType common_dtype(Recorder& recorder, Op op, std::span<const Value> operands, const char* what,
                   Location at) {
  DType dtype;
  DType weakest = graph::info(op).literals == graph::Literals::floating ? f32 : bool_;
  for (const Value& v : operands) {
    expect_given(v, what, at);
    if (is_literal(v)) {
      const DType own = literal(v).dtype();
      if (own.is_float() || (own.is_integer() && weakest.is_bool())) weakest = own;
      continue;
    }
    const ValueId id = recorder.id(v, what, at);
    const DType own = recorder.graph[id].type.dtype;
    if (recorder.is_weak_size(id)) {
      if (!weakest.is_float()) weakest = own;
      continue;
    }
    if (dtype == DType()) dtype = own;
    if (dtype != own)
      throw CompileError(at, std::string(what) + ": expected operands of one dtype, given " +
                                 dtype.name() + " and " + own.name() +
                                 "; convert one of them: pl::" + dtype.name() + "(x)");
  }
  return dtype == DType() ? weakest : dtype;
}

/// Whether operands of the dtype are computed as another. Bits are counted in a dtype's own.
bool is_computed_as_another(Op op, DType dtype) {
  switch (op) {
  case Op::PopulationCount:
  case Op::CountLeadingZeros: return false;
  case Op::Not:
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::ShiftLeft:
  case Op::ShiftRight: return dtype.is_packed();
  default: return true;
  }
}

Value binary(Op op, const Operand& a, const Operand& b) {
  const Location left = location(a), right = location(b);
  const Value x = resolve(a), y = resolve(b);  // left, then right
  return elementwise(op, {x, y}, right.line < left.line ? right : left);
}

Value unary(Op op, const Operand& a) { return elementwise(op, {resolve(a)}, location(a)); }

Value compound(Op op, const Value& self, const Operand& o) {
  return elementwise(op, {self, resolve(o)}, location(o));
}

}  // namespace

ValueId computable(Recorder& recorder, ValueId v, Location at) {
  const DType dtype = recorder.graph[v].type.dtype;
  return graph::is_computed(dtype) ? v : recorder.builder().cast(v, graph::computed_as(dtype), at);
}
Value computable(const Value& x, Location at) {
  const DType dtype = x.dtype(at);
  return graph::is_computed(dtype) ? x : x.astype(graph::computed_as(dtype), at);
}
ValueId rounded_as(Recorder& recorder, ValueId v, DType dtype, Location at) {
  const bool rounds =
      !graph::is_computed(dtype) && recorder.graph[v].type.dtype == graph::computed_as(dtype);
  return rounds ? recorder.builder().cast(v, dtype, at) : v;
}

Value elementwise(Op op, std::initializer_list<Value> operands, Location at) {
  const char* what = graph::info(op).name;
  const std::span<const Value> all(operands.begin(), operands.size());
  if (all.size() == 2 && is_literal(all[0]) && is_literal(all[1])) {
    expect_given(all[0], what, at);
    expect_given(all[1], what, at);
    if (const auto number = fold(op, literal(all[0]), literal(all[1]), at)) return weak(*number);
  }
  if (op == Op::Neg && is_literal(all[0])) {
    expect_given(all[0], what, at);
    const Literal l = literal(all[0]);
    if (l.kind == Kind::floating) return -l.floating;
    return weak(*fold(Op::Sub, {Kind::integer, 0, 0}, l, at));
  }
  if (op == Op::Not && is_literal(all[0])) {
    expect_given(all[0], what, at);
    const Literal l = literal(all[0]);
    if (l.kind == Kind::truth) return l.integer == 0;
    if (l.kind == Kind::integer) return ~l.integer;
  }
  Recorder& recorder = Recorder::current(what, at);
  const DType dtype = common_dtype(recorder, op, all, what, at);
  std::vector<ValueId> ids;
  for (const Value& v : all) {
    const ValueId id = recorder.typed(v, dtype, what, at);
    ids.push_back(is_computed_as_another(op, dtype) ? computable(recorder, id, at) : id);
  }
  recorder.expect_alike(ids, graph::info(op).name, at);
  const ValueId result = recorder.builder().elementwise(op, std::move(ids), at);
  return recorder.value(rounded_as(recorder, result, dtype, at));
}

std::vector<Value> alike(const char* what, std::initializer_list<Value> values, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  const std::span<const Value> all(values.begin(), values.size());
  const DType dtype = common_dtype(recorder, Op::Select, all, what, at);
  std::vector<ValueId> ids;
  for (const Value& v : all) ids.push_back(recorder.typed(v, dtype, what, at));
  std::vector<Value> result;
  for (const ValueId v : recorder.builder().broadcast_together(std::move(ids), what, at))
    result.push_back(recorder.value(v));
  return result;
}

Value selected(const char* what, Value condition, const Value& x, const Value& y, Location at) {
  expect_given(condition, what, at);
  if (!condition.dtype(at).is_bool()) condition = elementwise(Op::Ne, {condition, Value(0)}, at);
  Recorder& recorder = Recorder::current(what, at);
  const Value choices[] = {x, y};
  const DType dtype = common_dtype(recorder, Op::Select, choices, what, at);
  std::vector<ValueId> ids{recorder.typed(condition, bool_, what, at),
                           recorder.typed(x, dtype, what, at), recorder.typed(y, dtype, what, at)};
  recorder.expect_alike(ids, what, at);
  return recorder.value(recorder.builder().elementwise(Op::Select, std::move(ids), at));
}

namespace {

// A literal is checked here and stays one.
Value hint(Op op, const Operand& x, std::initializer_list<std::int64_t> values) {
  const Location at = location(x);
  const Value v = resolve(x);
  const char* const what = graph::info(op).name;
  Recorder& recorder = Recorder::current(what, at);
  const ValueId id = recorder.typed(v, what, at);
  const ValueId hinted = recorder.builder().add(op, {id}, Attr{values, 0}, {}, at);
  if (!is_literal(v)) return recorder.value(hinted);
  const Literal l = literal(v);
  const graph::Inst& inst = recorder.graph[hinted];
  if (l.integer % graph::hint(inst)[0] == 0) return v;
  std::string message = graph::broken_hint(inst, 0);
  message.replace(message.find("{}"), 2, std::to_string(l.integer));
  throw CompileError(at, message);
}

}  // namespace
}  // namespace palladium::trace

namespace palladium {

using trace::Literal;
using trace::Op;
using trace::Recorder;
using trace::ValueId;

#define PL_BINARY(symbol, op) \
  Value operator symbol(const Operand& a, const Operand& b) { return trace::binary(Op::op, a, b); }
PL_BINARY(+, Add)
PL_BINARY(-, Sub)
PL_BINARY(*, Mul)
PL_BINARY(/, Div)
PL_BINARY(%, Rem)
PL_BINARY(&, And)
PL_BINARY(|, Or)
PL_BINARY(^, Xor)
PL_BINARY(<<, ShiftLeft)
PL_BINARY(>>, ShiftRight)
PL_BINARY(==, Eq)
PL_BINARY(!=, Ne)
PL_BINARY(<, Lt)
PL_BINARY(<=, Le)
PL_BINARY(>, Gt)
PL_BINARY(>=, Ge)
#undef PL_BINARY

#define PL_COMPOUND(symbol, op)                       \
  Value& Value::operator symbol(const Operand& o) {   \
    return *this = trace::compound(Op::op, *this, o); \
  }
PL_COMPOUND(+=, Add)
PL_COMPOUND(-=, Sub)
PL_COMPOUND(*=, Mul)
PL_COMPOUND(/=, Div)
PL_COMPOUND(%=, Rem)
PL_COMPOUND(&=, And)
PL_COMPOUND(|=, Or)
PL_COMPOUND(^=, Xor)
PL_COMPOUND(<<=, ShiftLeft)
PL_COMPOUND(>>=, ShiftRight)
#undef PL_COMPOUND

Value operator-(const Operand& x) { return trace::unary(Op::Neg, x); }
Value operator~(const Operand& x) { return trace::unary(Op::Not, x); }

// An operator of exact types has no place for the user's line: that of its operand stands in.
Value operator!(const Value& x) {
  Location at;
  if (!trace::is_literal(x)) {
    Recorder& recorder = Recorder::current("not", at);
    at = recorder.graph.location(recorder.id(x, "not", at));
  }
  return x.dtype(at).is_bool() ? trace::elementwise(Op::Not, {x}, at)
                               : trace::elementwise(Op::Eq, {x, Value(0)}, at);
}
Value operator!(Slot&& slot) { return !static_cast<Value>(std::move(slot)); }

#define PL_UNARY(name, op) \
  Value name(const Operand& x) { return trace::unary(Op::op, x); }
PL_UNARY(abs, Abs)
PL_UNARY(sign, Sign)
PL_UNARY(population_count, PopulationCount)
PL_UNARY(clz, CountLeadingZeros)
PL_UNARY(is_finite, IsFinite)
#undef PL_UNARY

#define PALLADIUM_MATH(Name, name, ...) \
  Value name(const Operand& x) { return trace::unary(Op::Name, x); }
#define PALLADIUM_MATH2(Name, name, a, b, ...) \
  Value name(const Operand& a, const Operand& b) { return trace::binary(Op::Name, a, b); }
#include "palladium/math.def"

Value maximum(const Operand& x, const Operand& y) { return trace::binary(Op::Max, x, y); }
Value minimum(const Operand& x, const Operand& y) { return trace::binary(Op::Min, x, y); }

Value fma(const Operand& x, const Operand& y, const Operand& z) {
  const Value a = trace::resolve(x), b = trace::resolve(y), c = trace::resolve(z);
  return trace::elementwise(Op::Fma, {a, b, c}, trace::location(x));
}

Value where(const Operand& condition, const Operand& x, const Operand& y) {
  const Location at = trace::location(condition);
  const Value c = trace::resolve(condition);
  const Value a = trace::resolve(x), b = trace::resolve(y);
  return trace::selected("where", c, a, b, at);
}

Value multiple_of(const Operand& x, std::int64_t n) { return multiple_of(x, {n}); }
Value multiple_of(const Operand& x, std::initializer_list<std::int64_t> values) {
  return trace::hint(Op::MultipleOf, x, values);
}
Value max_contiguous(const Operand& x, std::int64_t n) { return max_contiguous(x, {n}); }
Value max_contiguous(const Operand& x, std::initializer_list<std::int64_t> values) {
  return trace::hint(Op::MaxContiguous, x, values);
}

Value DType::operator()(const Operand& x) const {
  const Value v = trace::resolve(x);
  return v.astype(*this, trace::location(x));
}

Value Value::astype(DType dtype, Location at) const {
  Recorder& recorder = Recorder::current("cast", at);
  if (trace::is_literal(*this)) {
    trace::expect_given(*this, "cast", at);
    // A cast says that a conversion is meant: pl::i32(2.5) is 2.
    return recorder.value(recorder.builder().add(
        Op::Constant, {}, trace::Attr{{}, trace::converted_bits(trace::literal(*this), dtype)},
        trace::Type::value(dtype), at));
  }
  return recorder.value(recorder.builder().cast(recorder.id(*this, "cast", at), dtype, at));
}

}  // namespace palladium
