// What instructions on products by hand say, by name.
#pragma once

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Of an AwaitProducts: how many of the last products may go on.
inline int products_left(const Inst& await) { return static_cast<int>(await.attr.ints[0]); }

/// Of a PrintLayout: where in its text the layout stands.
inline std::size_t place_of_layout(const Inst& print) {
  return static_cast<std::size_t>(print.attr.ints[0]);
}

}  // namespace palladium::graph
