#include "codegen/graph/fold.hpp"

#include <bit>
#include <cmath>

namespace palladium::graph {
namespace {

using Bits = std::optional<std::uint64_t>;

Bits compare(Op op, bool less, bool equal) {
  switch (op) {
  case Op::Eq: return equal;
  case Op::Ne: return !equal;
  case Op::Lt: return less;
  case Op::Le: return less || equal;
  case Op::Gt: return !less && !equal;
  case Op::Ge: return !less;
  default: return {};
  }
}

// F is float (for f32 and, with a last rounding, the 16-bit types) or double.
template <class F>
Bits fold_floats(Op op, DType dtype, const F* x) {
  const auto number = [&](F result) -> Bits {
    if (std::isnan(result)) return {};
    return to_bits(dtype, static_cast<double>(result));
  };
  switch (op) {
  case Op::Neg: return number(-x[0]);
  case Op::Abs: return number(std::fabs(x[0]));
  case Op::Sqrt: return number(std::sqrt(x[0]));
  case Op::Floor: return number(std::floor(x[0]));
  case Op::Ceil: return number(std::ceil(x[0]));
  case Op::Trunc: return number(std::trunc(x[0]));
  case Op::Add: return number(x[0] + x[1]);
  case Op::Sub: return number(x[0] - x[1]);
  case Op::Mul: return number(x[0] * x[1]);
  case Op::Div: return number(x[0] / x[1]);
  case Op::IsFinite: return std::isfinite(x[0]);
  case Op::Max:
  case Op::Min:
    if (std::isnan(x[0]) || std::isnan(x[1]) || (x[0] == x[1] && x[0] == 0)) return {};
    return number((x[0] > x[1]) == (op == Op::Max) ? x[0] : x[1]);
  case Op::Fma:
    // 16-bit operands: one rounding to f32 and one to the dtype would be two.
    if (dtype.bits() == 16) return {};
    return number(std::fma(x[0], x[1], x[2]));
  case Op::Eq:
  case Op::Ne:
  case Op::Lt:
  case Op::Le:
  case Op::Gt:
  case Op::Ge:
    if (std::isnan(x[0]) || std::isnan(x[1])) return op == Op::Ne;
    return compare(op, x[0] < x[1], x[0] == x[1]);
  default: return {};
  }
}

Bits fold_integers(Op op, DType dtype, std::span<const std::uint64_t> bits) {
  const bool is_signed = dtype.is_integer() && dtype.is_signed();
  const int width = dtype.is_bool() ? 1 : dtype.bits();
  const std::uint64_t mask = width == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << width) - 1;
  std::uint64_t u[3] = {};
  std::int64_t s[3] = {};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    u[i] = bits[i] & mask;
    s[i] = to_int(dtype, bits[i]);
  }
  const auto number = [&](std::uint64_t n) -> Bits { return n & mask; };
  const bool less = is_signed ? s[0] < s[1] : u[0] < u[1];
  const auto negated = [](std::uint64_t n) { return std::uint64_t(0) - n; };
  switch (op) {
  case Op::Neg: return number(negated(u[0]));
  case Op::Abs: return number(is_signed && s[0] < 0 ? negated(u[0]) : u[0]);
  case Op::Sign: return number(u[0] == 0 ? 0 : is_signed && s[0] < 0 ? mask : 1);
  case Op::Not: return number(~u[0]);
  case Op::CountLeadingZeros:
    return static_cast<std::uint64_t>(std::countl_zero(u[0]) - (64 - width));
  case Op::PopulationCount: return static_cast<std::uint64_t>(std::popcount(u[0]));
  case Op::Add: return number(u[0] + u[1]);
  case Op::Sub: return number(u[0] - u[1]);
  case Op::Mul: return number(u[0] * u[1]);
  case Op::Div:
    if (u[1] == 0) return mask;
    if (!is_signed) return number(u[0] / u[1]);
    // The smallest integer by -1 wraps to itself.
    return number(s[1] == -1 ? negated(u[0]) : static_cast<std::uint64_t>(s[0] / s[1]));
  case Op::Rem:
    if (u[1] == 0) return u[0];
    if (!is_signed) return number(u[0] % u[1]);
    return number(s[1] == -1 ? 0 : static_cast<std::uint64_t>(s[0] % s[1]));
  case Op::Max: return less ? u[1] : u[0];
  case Op::Min: return less ? u[0] : u[1];
  case Op::And: return u[0] & u[1];
  case Op::Or: return u[0] | u[1];
  case Op::Xor: return u[0] ^ u[1];
  // A negative count is above every width when read unsigned.
  case Op::ShiftLeft: return u[1] < static_cast<std::uint64_t>(width) ? number(u[0] << u[1]) : 0;
  case Op::ShiftRight:
    if (u[1] >= static_cast<std::uint64_t>(width)) return is_signed && s[0] < 0 ? mask : 0;
    return number(is_signed ? static_cast<std::uint64_t>(s[0] >> u[1]) : u[0] >> u[1]);
  default: return compare(op, less, u[0] == u[1]);
  }
}

Bits fold_cast(DType from, DType to, std::uint64_t bits) {
  if (from.is_float()) {
    const double number = to_double(from, bits);
    if (std::isnan(number) && to.is_float()) return {};
    return to_bits(to, number);
  }
  if (from == u64) return natural_to_bits(to, bits);
  return to_bits(to, to_int(from, bits));
}

}  // namespace

Bits fold(Op op, DType from, DType to, std::span<const std::uint64_t> bits) {
  if (op == Op::Cast) return fold_cast(from, to, bits[0]);
  if (op == Op::Bitcast) return bits[0];
  if (op == Op::Select) return bits[0] ? bits[1] : bits[2];
  if (!from.is_float()) return fold_integers(op, from, bits);
  if (from == f64) {
    double x[3] = {};
    for (std::size_t i = 0; i < bits.size(); ++i) x[i] = to_double(from, bits[i]);
    return fold_floats(op, from, x);
  }
  float x[3] = {};
  for (std::size_t i = 0; i < bits.size(); ++i) x[i] = static_cast<float>(to_double(from, bits[i]));
  return fold_floats(op, from, x);
}

}  // namespace palladium::graph
