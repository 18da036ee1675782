// How operations, types and constants are spelled in CUDA C++.
#pragma once

#include <span>
#include <string>

#include "codegen/graph/graph.hpp"

namespace palladium::cuda {

/// "f32", "bool": the device library's types have the names of ours.
std::string type_name(DType t);

/// A constant of a dtype, exact: floats as hex, infinities and NaN by name.
std::string literal(DType t, std::uint64_t bits);

/// The expression of an elementwise op; args are expressions. `t` is the dtype of the operands,
/// `result` that of the value.
std::string spell(graph::Op op, DType t, DType result, std::span<const std::string> args,
                  bool approx_math);

/// A dimension expression over the kernel's symbols, as i64.
std::string dim_text(const Dim& d);

/// Whether the text needs no parentheses as an operand.
bool is_atom(const std::string& text);
std::string parenthesised(const std::string& text);

}  // namespace palladium::cuda
