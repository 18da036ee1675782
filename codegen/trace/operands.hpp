// What block specs and grids say, beyond shapes, of the operands of a call.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "codegen/trace/trace.hpp"

namespace palladium::trace {

/// The bits of a number in a dtype; nothing where the dtype does not hold it.
std::optional<std::uint64_t> bits_of_fill(double fill, DType dtype);

/// Gives the graph what its extents say of arguments (pl::argument): symbols for scalars, bounds of
/// the grid for arrays. Else what is wrong with them.
std::string connect_arguments(graph::Graph& g, std::span<const ArgumentType> arguments);

}  // namespace palladium::trace
