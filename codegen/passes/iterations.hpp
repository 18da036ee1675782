// Which iteration of a sequential axis a condition asks for.
#pragma once

#include "codegen/graph/graph.hpp"

namespace palladium::passes {

/// Whether the condition, a bool, holds in the first iteration of the axis, and in no other.
bool asks_first(const graph::Graph& g, graph::ValueId condition, int axis);
/// In the last one.
bool asks_last(const graph::Graph& g, graph::ValueId condition, int axis);

}  // namespace palladium::passes
