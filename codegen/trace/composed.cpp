// Elementwise functions that are made of others while they are traced.
#include <limits>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {

void expect_numbers(const Value& x, const char* what, Location at) {
  if (!x.dtype(at).is_bool()) return;
  const Type type = Type::value(bool_, extents(x.shape(at)));
  throw CompileError(at, std::string(what) + ": expected numbers, given " + to_string(type));
}

void expect_floats(const Value& x, const char* what, Location at) {
  if (x.dtype(at).is_float()) return;
  const Type type = Type::value(x.dtype(at), extents(x.shape(at)));
  throw CompileError(
      at, std::string(what) + ": expected a floating-point operand, given " + to_string(type));
}

namespace {

/// Records operations at the user's line.
class Composer {
 public:
  Composer(const char* what, Location at) : what_(what), at_(at) {}

  Value operator()(Op op, const Value& x) const { return elementwise(op, {x}, at_); }
  Value operator()(Op op, const Value& x, const Value& y) const {
    return elementwise(op, {x, y}, at_);
  }
  Value select(const Value& condition, const Value& x, const Value& y) const {
    return selected(what_, condition, x, y, at_);
  }
  Value differ(const Value& x, const Value& y) const { return (*this)(Op::Ne, x, y); }
  Value is_below_zero(const Value& x) const { return (*this)(Op::Lt, x, 0); }

  const char* what() const { return what_; }
  Location at() const { return at_; }

 private:
  const char* what_;
  Location at_;
};

/// Two operands, left before right, made alike.
struct Pair {
  Pair(const Composer& c, const Operand& a, const Operand& b) {
    x = resolve(a);
    y = resolve(b);
    const std::vector<Value> both = alike(c.what(), {x, y}, c.at());
    x = both[0];
    y = both[1];
    dtype = x.dtype(c.at());
  }
  Value x, y;
  DType dtype;
};

DType with_bits(DType t, bool is_signed) {
  switch (t.bytes()) {
  case 1: return is_signed ? i8 : u8;
  case 2: return is_signed ? i16 : u16;
  case 4: return is_signed ? i32 : u32;
  default: return is_signed ? i64 : u64;
  }
}

std::int64_t sign_bit(DType t) {  // as a signed integer of its width
  return -(std::int64_t{1} << (t.bits() - 2)) * 2;
}

// Whether a remainder that has the dividend's sign belongs to a quotient one too large.
Value is_above_floor(const Composer& c, const Value& rest, const Value& divisor) {
  return c(Op::And, c.differ(rest, 0), c.differ(c.is_below_zero(rest), c.is_below_zero(divisor)));
}

// 16-bit floats are computed in f32 and rounded once.
template <class F>
Value in_wide_floats(const char* what, const Operand& operand, F&& f) {
  const Location at = location(operand);
  Value x = resolve(operand);
  expect_given(x, what, at);
  if (is_literal(x) && !x.dtype(at).is_float()) x = literal(x).number();
  expect_floats(x, what, at);
  if (is_literal(x)) return f(Composer(what, at), x);
  const DType t = x.dtype(at);
  return Value(f(Composer(what, at), x.astype(t.bytes() == 8 ? f64 : f32, at))).astype(t, at);
}

Value clipped(const Composer& c, const Value& x, const Value& low, const Value& high) {
  const std::vector<Value> all = alike(c.what(), {x, low, high}, c.at());
  return c(Op::Min, c(Op::Max, all[0], all[1]), all[2]);
}

Value logical_shift(const Composer& c, const Pair& p) {
  if (!p.dtype.is_integer())
    throw CompileError(c.at(), std::string(c.what()) + ": expected integers, given " +
                                   std::string(p.dtype.name()));
  const DType bits = with_bits(p.dtype, false);
  return c(Op::ShiftRight, p.x.bitcast(bits, c.at()), p.y.bitcast(bits, c.at()))
      .bitcast(p.dtype, c.at());
}

// By squares: what integers of any kind have as well.
Value whole_power(const Composer& c, const Value& x, std::int64_t n) {
  Value square = x, product;
  bool any = false;
  for (std::int64_t left = n; left > 0; left /= 2) {
    if (left % 2 != 0) {
      product = any ? c(Op::Mul, product, square) : square;
      any = true;
    }
    if (left > 1) square = c(Op::Mul, square, square);
  }
  return product;
}

// A round multiplies two words of the counter, 32 by 32 bits, and mixes in the key.
void philox_round(const Composer& c, Value (&word)[4], const Value (&key)[2]) {
  constexpr std::int64_t factors[] = {0xD2511F53, 0xCD9E8D57};
  Value low[2], high[2];
  for (int i = 0; i < 2; ++i) {
    const Value product = c(Op::Mul, word[2 * i].astype(u64, c.at()), factors[i]);
    low[i] = product.astype(u32, c.at());
    high[i] = c(Op::ShiftRight, product, 32).astype(u32, c.at());
  }
  const Value first = c(Op::Xor, c(Op::Xor, high[1], word[1]), key[0]);
  const Value third = c(Op::Xor, c(Op::Xor, high[0], word[3]), key[1]);
  word[0] = first;
  word[1] = low[1];
  word[2] = third;
  word[3] = low[0];
}

}  // namespace
}  // namespace palladium::trace

namespace palladium {

using trace::Composer;
using trace::Op;
using trace::Pair;

Value square(const Operand& operand) {
  const Composer c("square", trace::location(operand));
  const Value x = trace::resolve(operand);
  return c(Op::Mul, x, x);
}

Value reciprocal(const Operand& operand) {
  const Composer c("reciprocal", trace::location(operand));
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "reciprocal", c.at());
  trace::expect_floats(x, "reciprocal", c.at());
  return c(Op::Div, 1.0, x);
}

Value integer_pow(const Operand& operand, std::int64_t n) {
  const Composer c("integer_pow", trace::location(operand));
  const Value x = trace::alike("integer_pow", {trace::resolve(operand)}, c.at())[0];
  trace::expect_numbers(x, "integer_pow", c.at());
  if (n < 0 && !x.dtype(c.at()).is_float())
    throw CompileError(c.at(), "integer_pow: expected an exponent from 0 for integers, given " +
                                   std::to_string(n));
  if (n == INT64_MIN || n > (1 << 30) || n < -(1 << 30))
    throw CompileError(
        c.at(), "integer_pow: expected an exponent of at most 2^30, given " + std::to_string(n));
  if (n == 0) return full(x.shape(c.at()), Operand(1, c.at()), x.dtype(c.at()));
  const Value power = trace::whole_power(c, x, n < 0 ? -n : n);
  return n < 0 ? c(Op::Div, 1.0, power) : power;
}

Value is_nan(const Operand& operand) {
  const Composer c("is_nan", trace::location(operand));
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "is_nan", c.at());
  trace::expect_floats(x, "is_nan", c.at());
  return c.differ(x, x);
}

Value is_inf(const Operand& operand) {
  const Composer c("is_inf", trace::location(operand));
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "is_inf", c.at());
  trace::expect_floats(x, "is_inf", c.at());
  return c(Op::Eq, c(Op::Abs, x), std::numeric_limits<double>::infinity());
}

Value floor_divide(const Operand& a, const Operand& b) {
  const Composer c("floor_divide", trace::location(a));
  const Pair p(c, a, b);
  trace::expect_numbers(p.x, c.what(), c.at());
  const Value rest = c(Op::Rem, p.x, p.y);
  if (!p.dtype.is_float()) {
    const Value quotient = c(Op::Div, p.x, p.y);
    if (!p.dtype.is_signed()) return quotient;
    const Value too_large = c(Op::And, c.differ(p.y, 0), trace::is_above_floor(c, rest, p.y));
    return c.select(too_large, c(Op::Sub, quotient, 1), quotient);
  }
  const Value quotient = c(Op::Div, c(Op::Sub, p.x, rest), p.y);
  const Value floor = c(
      Op::Round, c.select(trace::is_above_floor(c, rest, p.y), c(Op::Sub, quotient, 1), quotient));
  return c.select(c(Op::Eq, p.y, 0), c(Op::Div, p.x, p.y), floor);
}

namespace trace {
namespace {

Value divided_up(const Composer& c, const Pair& p) {
  if (!p.dtype.is_integer())
    throw CompileError(c.at(),
                       std::string(c.what()) + ": expected integers, given " + p.dtype.name());
  const Value quotient = c(Op::Div, p.x, p.y), rest = c(Op::Rem, p.x, p.y);
  Value is_above = c.differ(rest, 0);
  if (p.dtype.is_signed())
    is_above = c(Op::And, is_above, c(Op::Eq, c.is_below_zero(rest), c.is_below_zero(p.y)));
  return c.select(is_above, c(Op::Add, quotient, 1), quotient);
}

}  // namespace
}  // namespace trace

Value cdiv(const Operand& a, const Operand& b) {
  const Composer c("cdiv", trace::location(a));
  return trace::divided_up(c, Pair(c, a, b));
}

Value align_to(const Operand& a, const Operand& b) {
  const Composer c("align_to", trace::location(a));
  const Pair p(c, a, b);
  return c(Op::Mul, trace::divided_up(c, p), p.y);
}

Value remainder(const Operand& a, const Operand& b) {
  const Composer c("remainder", trace::location(a));
  const Pair p(c, a, b);
  trace::expect_numbers(p.x, c.what(), c.at());
  Value rest = c(Op::Rem, p.x, p.y);
  if (p.dtype.is_signed() || p.dtype.is_float())
    rest = c.select(trace::is_above_floor(c, rest, p.y), c(Op::Add, rest, p.y), rest);
  return p.dtype.is_float() ? rest : c.select(c(Op::Eq, p.y, 0), 0, rest);
}

Value true_divide(const Operand& a, const Operand& b) {
  const Composer c("true_divide", trace::location(a));
  const Pair p(c, a, b);
  if (p.dtype.is_float()) return c(Op::Div, p.x, p.y);
  const DType t = p.dtype.bytes() == 8 ? f64 : f32;
  return c(Op::Div, p.x.astype(t, c.at()), p.y.astype(t, c.at()));
}

Value clamp(const Operand& low, const Operand& x, const Operand& high) {
  const Composer c("clamp", trace::location(x));
  const Value a = trace::resolve(low), v = trace::resolve(x), b = trace::resolve(high);
  return trace::clipped(c, v, a, b);
}

Value clip(const Operand& x, const Operand& low, const Operand& high) {
  const Composer c("clip", trace::location(x));
  const Value v = trace::resolve(x), a = trace::resolve(low), b = trace::resolve(high);
  return trace::clipped(c, v, a, b);
}

Value select_n(const Operand& which, std::initializer_list<Operand> cases) {
  const Composer c("select_n", trace::location(which));
  const Value chosen = trace::resolve(which);
  trace::expect_given(chosen, c.what(), c.at());
  std::vector<Value> values;
  for (const Operand& o : cases) values.push_back(trace::resolve(o));
  const DType t = chosen.dtype(c.at());
  if (t.is_float())
    throw CompileError(c.at(), "select_n: expected a bool or integer to choose by, given " +
                                   std::string(t.name()));
  if (values.empty() || (t.is_bool() && values.size() != 2))
    throw CompileError(c.at(), t.is_bool() ? "select_n: expected 2 cases for a bool, given " +
                                                 std::to_string(values.size())
                                           : "select_n: expected at least one case, given none");
  if (t.is_bool()) return c.select(chosen, values[1], values[0]);
  Value result = values.back();
  for (std::size_t i = values.size() - 1; i-- > 0;)
    result = c.select(c(Op::Le, chosen, static_cast<std::int64_t>(i)), values[i], result);
  return result;
}

Value shift_right_logical(const Operand& x, const Operand& count) {
  const Composer c("shift_right_logical", trace::location(x));
  return trace::logical_shift(c, Pair(c, x, count));
}

Value copysign(const Operand& x, const Operand& y) {
  const Composer c("copysign", trace::location(x));
  const Pair p(c, x, y);
  trace::expect_floats(p.x, c.what(), c.at());
  const DType bits = trace::with_bits(p.dtype, true);
  const std::int64_t sign = trace::sign_bit(p.dtype);
  return c(Op::Or, c(Op::And, p.x.bitcast(bits, c.at()), ~sign),
           c(Op::And, p.y.bitcast(bits, c.at()), sign))
      .bitcast(p.dtype, c.at());
}

Value nextafter(const Operand& x, const Operand& y) {
  const Composer c("nextafter", trace::location(x));
  const Pair p(c, x, y);
  trace::expect_floats(p.x, c.what(), c.at());
  const DType bits = trace::with_bits(p.dtype, true);
  const Value away = c(Op::Eq, c(Op::Lt, p.x, p.y), c(Op::Gt, p.x, 0));
  const Value step = c.select(away, Value(1).astype(bits, c.at()), -1);
  const Value moved = c(Op::Add, p.x.bitcast(bits, c.at()), step).bitcast(p.dtype, c.at());
  const Value sign = c(Op::And, p.y.bitcast(bits, c.at()), trace::sign_bit(p.dtype));
  const Value least = c(Op::Or, sign, 1).bitcast(p.dtype, c.at());
  const Value next = c.select(c(Op::Eq, p.x, 0), least, moved);
  const Value nan = c(Op::Or, c.differ(p.x, p.x), c.differ(p.y, p.y));
  return c.select(nan, c(Op::Add, p.x, p.y), c.select(c(Op::Eq, p.x, p.y), p.y, next));
}

Value relu(const Operand& operand) {
  const Composer c("relu", trace::location(operand));
  return c(Op::Max, trace::resolve(operand), 0);
}

Value silu(const Operand& operand) {
  return trace::in_wide_floats("silu", operand, [](const Composer& c, const Value& x) {
    return c(Op::Mul, x, c(Op::Logistic, x));
  });
}

Value gelu(const Operand& operand, GeluOptions options) {
  return trace::in_wide_floats("gelu", operand, [&](const Composer& c, const Value& x) {
    const Value half = c(Op::Mul, x, 0.5);
    constexpr double root_of_2_over_pi = 0.79788456080286535588,
                     root_of_half = 0.70710678118654752440;
    if (!options.approximate)
      return c(Op::Mul, half, c(Op::Add, c(Op::Erf, c(Op::Mul, x, root_of_half)), 1.0));
    const Value cube = c(Op::Mul, c(Op::Mul, x, x), x);
    const Value inner = c(Op::Mul, c(Op::Add, c(Op::Mul, cube, 0.044715), x), root_of_2_over_pi);
    return c(Op::Mul, half, c(Op::Add, c(Op::Tanh, inner), 1.0));
  });
}

Values<4> philox(const Operand& seed, const Operand& counter) {
  const Composer c("philox", trace::location(seed));
  const Value given[] = {trace::resolve(seed), trace::resolve(counter)};
  Value word[4], key[2];
  for (int i = 0; i < 2; ++i) {
    trace::expect_given(given[i], c.what(), c.at());
    if (!given[i].dtype(c.at()).is_integer())
      throw CompileError(c.at(), "philox: expected integers as seed and counter, given " +
                                     std::string(given[i].dtype(c.at()).name()));
  }
  const std::vector<Value> both =
      trace::alike(c.what(), {given[0].astype(u64, c.at()), given[1].astype(u64, c.at())}, c.at());
  for (int half = 0; half < 2; ++half) {
    const auto word_of = [&](const Value& x) {
      return (half == 0 ? x : c(Op::ShiftRight, x, 32)).astype(u32, c.at());
    };
    key[half] = word_of(both[0]);
    word[half] = word_of(both[1]);
  }
  word[2] = word[3] = zeros(both[0].shape(c.at()), u32, c.at());
  constexpr std::uint32_t steps[] = {0x9E3779B9, 0xBB67AE85};
  for (int round = 0; round < 10; ++round) {
    if (round > 0)
      for (int i = 0; i < 2; ++i) key[i] = c(Op::Add, key[i], steps[i]);
    trace::philox_round(c, word, key);
  }
  return {{word[0], word[1], word[2], word[3]}};
}

}  // namespace palladium
