// How operations, types and constants are spelled in CUDA C++.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "codegen/graph/graph.hpp"

namespace palladium::cuda {

/// "f32", "bool": the device library's types have the names of ours.
std::string type_name(DType t);

/// A constant of a dtype, exact: floats as hex, infinities and NaN by name.
std::string literal(DType t, std::uint64_t bits);

/// How an elementwise operation is written: $0, $1, ... stand for its operands, $T for its type.
struct OpForm {
  std::string_view text;
  bool is_call = false;           // operands need no parentheses
  bool brings_back_bits = false;  // C++ promotes small integers: a cast stands around
  bool is_operand = false;        // nothing stands around it
  /// Whether the whole needs no parentheses as an operand.
  bool is_primary() const { return is_call || brings_back_bits || is_operand; }
};
/// `t` is the dtype of the operands, `result` that of the value.
OpForm form_of(graph::Op op, DType t, DType result, bool approx_math);

/// The expression; args are expressions, in parentheses where the form needs them.
std::string spell(const OpForm& form, DType result, std::span<const std::string> args);

/// Whether the text of a constant begins with a minus.
bool starts_with_sign(DType t, std::uint64_t bits);

}  // namespace palladium::cuda
