// Kernels that rely on less.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

struct Weaker {
  graph::Graph graph;
  std::vector<std::uint32_t> symbols;  // by symbol its number in the call's own graph
};

/// Graphs whose kernels serve every call that the specialisation's serves, those first that know
/// most: extents are not known to be equal, sizes are multiples of nothing, offsets long, rows
/// aligned to elements, rows apart at strides that the call gives. Of pointers and strides all
/// arrays lose it at once, of symbols each by itself where there are few.
std::vector<Weaker> weaker_graphs(const Specialization& s);

}  // namespace palladium::runtime
