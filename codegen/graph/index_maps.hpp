// What index maps have in common.
#pragma once

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Whether two index maps give one number for these dimensions, in every program, as far as their
/// expressions show.
bool have_one_index(const Graph& g, RegionIndex a, std::size_t of_a, RegionIndex b,
                    std::size_t of_b);

}  // namespace palladium::graph
