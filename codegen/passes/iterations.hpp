// Which iteration of a sequential axis a condition asks for.
#pragma once

#include "codegen/lowered/program.hpp"

namespace palladium::passes {

/// Whether the condition, a bool, holds in the first iteration of the axis, and in no other.
bool asks_first(const graph::Graph& g, graph::ValueId condition, int axis);
/// In the last one.
bool asks_last(const graph::Graph& g, graph::ValueId condition, int axis);

/// Whether the value is computed, where it is not read of a storage, of the number of the
/// iteration.
bool asks_for_axis(const lowered::Program& l, graph::ValueId value, int axis);

}  // namespace palladium::passes
