// What the warps of a Pallas thread may run each for itself.
#pragma once

#include <string>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Of the region of a Warps, why warps cannot run it, and the instruction that keeps them from it;
/// "" if they can.
std::string warps_problem(const Graph& g, RegionId r, ValueId& at);

bool has_warps(const Graph& g);

}  // namespace palladium::graph
