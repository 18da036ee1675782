// Which iteration of a sequential axis a condition asks for.
#pragma once

#include "codegen/lowered/program.hpp"

namespace palladium::passes {

/// Whether the condition, a bool, holds in the first iteration of the axis, and in no other.
bool asks_first(const graph::Graph& g, graph::ValueId condition, int axis);
/// In the last one.
bool asks_last(const graph::Graph& g, graph::ValueId condition, int axis);

/// Whether the region is that of a condition in a body's own one, which holds in the last iteration
/// of the axis alone.
bool runs_last(const graph::Graph& g, graph::RegionId region, int axis);

/// Whether the value is computed, where it is not read of a storage, of the number of the
/// iteration.
bool asks_for_axis(const lowered::Program& l, graph::ValueId value, int axis);
/// The same, whatever there are storages of.
bool asks_for_axis(const graph::Graph& g, graph::ValueId value, int axis);

/// -1: a program goes through none.
int innermost_sequential_axis(const graph::Graph& g);

/// Of a condition that holds in as many iterations of the axis, from the first on, as a number says
/// that is not computed of theirs: that number; no_value of others. Loads may give others of it.
graph::ValueId end_asked(const graph::Graph& g, graph::ValueId condition, int axis);

}  // namespace palladium::passes
