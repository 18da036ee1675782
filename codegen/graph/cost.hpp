// What a run of a kernel costs, counted on its graph.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Of all programs: an operation on an element is one, arithmetic a flop and an elementary function
/// a transcendental; a fused product and sum are two, a product of matrices 2 m n k. Loops count by
/// their trips where these are constants, of branches the first one, and bytes are those of all
/// arrays. CompileError where sizes are symbols.
CostEstimate estimate_cost(const Graph& g);

/// Iterations of a loop, where constants say how many; none of others, and of a While.
std::optional<std::int64_t> trips(const Graph& g, ValueId loop);

}  // namespace palladium::graph
