#include "codegen/cuda/spelling.hpp"

#include <cmath>

#include "codegen/base/format.hpp"

namespace palladium::cuda {

using graph::Op;

namespace {

bool is_small_integer(DType t) { return t.is_integer() && t.bytes() < 4; }

std::string_view text_of(Op op, DType t, bool approx_math) {
  const graph::Spelling& s = graph::info(op).spelling;
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
  const bool call = text.starts_with("pl::"), operand = text == "$0";
  return {.text = text,
          .is_call = call && text.find('*') == text.npos,
          .brings_back_bits = is_small_integer(result) && is_small_integer(t) && !call &&
                              !operand && op != Op::Select,
          .is_operand = operand};
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
