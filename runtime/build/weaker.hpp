// Kernels that rely on less.
#pragma once

#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::runtime {

/// Graphs whose kernels serve every call that g's serves, those first that know most: sizes are
/// multiples of nothing, offsets long, rows aligned to elements, rows apart at strides that the
/// call gives. Of pointers and strides all arrays lose it at once, of symbols each by itself where
/// there are few.
std::vector<graph::Graph> weaker_graphs(const graph::Graph& g);

}  // namespace palladium::runtime
