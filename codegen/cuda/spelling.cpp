#include "codegen/cuda/spelling.hpp"

#include <cmath>

#include "codegen/base/format.hpp"

namespace palladium::cuda {

using graph::Op;

namespace {

// "$0 + $1" for floats ($T: the result's type), "pl::add($0, $1)" for the types where C++'s
// operator would not do.
struct Spelling {
  const char* general = nullptr;
  const char* floats = nullptr;  // f32, f64
  const char* bools = nullptr;
  const char* approx = nullptr;  // f32 under approx_math
};

constexpr Spelling spelling_of(Op op) {
  switch (op) {
  case Op::Cast: return {"pl::to<$T>($0)"};
  case Op::Neg: return {"pl::neg($0)", "-$0"};
  case Op::Abs: return {"pl::abs($0)"};
  case Op::Sign: return {"pl::sign($0)"};
  case Op::Not: return {"~$0", nullptr, "!$0"};
  case Op::Exp: return {"pl::exp($0)", nullptr, nullptr, "pl::exp2_approx($0 * 0x1.715476p+0f)"};
  case Op::Exp2: return {"pl::exp2($0)", nullptr, nullptr, "pl::exp2_approx($0)"};
  case Op::Expm1: return {"pl::expm1($0)"};
  case Op::Log: return {"pl::log($0)"};
  case Op::Log2: return {"pl::log2($0)"};
  case Op::Log1p: return {"pl::log1p($0)"};
  case Op::Sqrt: return {"pl::sqrt($0)"};
  case Op::Rsqrt: return {"pl::rsqrt($0)", nullptr, nullptr, "pl::rsqrt_approx($0)"};
  case Op::Sin: return {"pl::sin($0)"};
  case Op::Cos: return {"pl::cos($0)"};
  case Op::Tan: return {"pl::tan($0)"};
  case Op::Tanh: return {"pl::tanh($0)", nullptr, nullptr, "pl::tanh_approx($0)"};
  case Op::Logistic: return {"pl::logistic($0)"};
  case Op::Erf: return {"pl::erf($0)"};
  case Op::Floor: return {"pl::floor($0)"};
  case Op::Ceil: return {"pl::ceil($0)"};
  case Op::Round: return {"pl::round($0)"};
  case Op::IsFinite: return {"pl::is_finite($0)"};
  case Op::Add: return {"pl::add($0, $1)", "$0 + $1", "$0 || $1"};
  case Op::Sub: return {"pl::sub($0, $1)", "$0 - $1"};
  case Op::Mul: return {"pl::mul($0, $1)", "$0 * $1", "$0 && $1"};
  case Op::Div: return {"pl::div($0, $1)", nullptr, nullptr, "$0 * pl::rcp_approx($1)"};
  case Op::Rem: return {"pl::rem($0, $1)"};
  case Op::Pow: return {"pl::pow($0, $1)"};
  case Op::Atan2: return {"pl::atan2($0, $1)"};
  case Op::Max: return {"pl::max($0, $1)", nullptr, "$0 || $1"};
  case Op::Min: return {"pl::min($0, $1)", nullptr, "$0 && $1"};
  case Op::And: return {"$0 & $1", nullptr, "$0 && $1"};
  case Op::Or: return {"$0 | $1", nullptr, "$0 || $1"};
  case Op::Xor: return {"$0 ^ $1", nullptr, "$0 != $1"};
  case Op::ShiftLeft: return {"pl::shift_left($0, $1)"};
  case Op::ShiftRight: return {"pl::shift_right($0, $1)"};
  case Op::Eq: return {"$0 == $1"};
  case Op::Ne: return {"$0 != $1"};
  case Op::Lt: return {"$0 < $1"};
  case Op::Le: return {"$0 <= $1"};
  case Op::Gt: return {"$0 > $1"};
  case Op::Ge: return {"$0 >= $1"};
  case Op::Fma: return {"pl::fma($0, $1, $2)"};
  case Op::Select: return {"$0 ? $1 : $2"};
  default: return {};
  }
}

#define PL_OP(Name, text, op_class, ...)                                   \
  static_assert(graph::OpClass::op_class != graph::OpClass::elementwise || \
                    spelling_of(Op::Name).general != nullptr,              \
                "elementwise operation '" text "' has no spelling in CUDA C++");
#include "codegen/graph/ops.def"
#undef PL_OP

bool is_small_integer(DType t) { return t.is_integer() && t.bytes() < 4; }

std::string_view text_of(Op op, DType t, bool approx_math) {
  const Spelling s = spelling_of(op);
  if (t == f32 && approx_math && s.approx) return s.approx;
  if ((t == f32 || t == f64) && s.floats) return s.floats;
  if (t.is_bool() && s.bools) return s.bools;
  return s.general;
}

}  // namespace

std::string type_name(DType t) { return t.name(); }

std::string literal(DType t, std::uint64_t bits) {
  if (t.is_bool()) return bits ? "true" : "false";
  if (t.is_float()) {
    const double d = graph::to_double(t, bits);
    const std::string type = type_name(t);
    if (std::isnan(d)) return fmt::format("pl::nan<{}>()", type);
    if (std::isinf(d))
      return d > 0 ? fmt::format("pl::infinity<{}>()", type)
                   : fmt::format("pl::min_value<{}>()", type);
    const bool plain = d == std::trunc(d) && std::fabs(d) < 1e6 && !(d == 0 && std::signbit(d));
    const std::string number = plain ? fmt::format("{:.1f}", d) : fmt::format("{:a}", d);
    if (t == f32) return number + "f";
    if (t == f64) return number;
    return fmt::format("pl::to<{}>({}f)", type, number);
  }
  const std::int64_t n = graph::to_int(t, bits);
  if (t == i32 && n != std::int64_t{-2147483648}) return std::to_string(n);
  if (t == i64 && n == INT64_MIN) return "pl::min_value<i64>()";
  if (t == u64) return fmt::format("u64({}ull)", bits);
  if (t == u32) return fmt::format("{}u", static_cast<std::uint32_t>(bits));
  return fmt::format("{}({}ll)", type_name(t), n);
}

bool starts_with_sign(DType t, std::uint64_t bits) {
  if (t.is_float()) {
    const double d = graph::to_double(t, bits);
    return (t == f32 || t == f64) && std::isfinite(d) && std::signbit(d);
  }
  return t == i32 && graph::to_int(t, bits) < 0;
}

OpForm form_of(Op op, DType t, DType result, bool approx_math) {
  const std::string_view text = text_of(op, t, approx_math);
  const bool call = text.starts_with("pl::");
  return {.text = text,
          .is_call = call && text.find('*') == text.npos,
          .brings_back_bits =
              is_small_integer(result) && is_small_integer(t) && !call && op != Op::Select};
}

std::string spell(const OpForm& form, DType result, std::span<const std::string> args) {
  std::string out;
  for (std::size_t i = 0; i < form.text.size(); ++i) {
    if (form.text[i] != '$')
      out += form.text[i];
    else if (form.text[++i] == 'T')
      out += type_name(result);
    else
      out += args[static_cast<std::size_t>(form.text[i] - '0')];
  }
  return form.brings_back_bits ? type_name(result) + "(" + out + ")" : out;
}

}  // namespace palladium::cuda
