// Elementwise ops on constants, with the numerics of every target.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// The bits of `op` applied to numbers of dtype `from` (Select: of its choices), as `to`; nothing
/// where targets may differ in a bit: NaN results, the sign of a zero among equals, functions that
/// are not correctly rounded.
std::optional<std::uint64_t> fold(Op op, DType from, DType to, std::span<const std::uint64_t> bits);

}  // namespace palladium::graph
