// What pl::debug_print and pl::debug_check say, the same on every target.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// What is wrong with what values of these types are to be printed by; "" if nothing is. Every {}
/// of the format stands for one of them, {{ and }} for a brace; nothing else may be in braces.
std::string format_problem(std::string_view format, std::span<const Type> types);

/// The element of an array, or the number, as it is printed: "0.1", "-3", "true", "nan".
std::string printed_number(DType dtype, std::uint64_t bits);

/// The lines, each with its end, of a DebugPrint that is given these bits: of every scalar, or of
/// the elements of the array in row-major order, which stand as "[1, 0]: 2.5" in lines of their
/// own. Bits above those of the dtype are nothing.
std::string printed_lines(const Graph& g, ValueId print, std::span<const std::uint64_t> bits);
/// How many there are.
std::int64_t count_printed(const Graph& g, ValueId print);

/// "debug_check: there is no row 7 (program (2, 0))". No program of a grid without axes.
std::string failed_check(const Inst& check, std::span<const std::int64_t> program);

/// The instruction of that site; no_value if there is none.
ValueId debug_site(const Graph& g, std::int64_t site);
bool has_debug_op(const Graph& g, Op op);

}  // namespace palladium::graph
