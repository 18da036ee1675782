// Slices of whole values in registers. Where each thread has what it has of a slice among what it
// has of the whole, the slice is a name for some of its registers.
#pragma once

#include <optional>

#include "codegen/layout/relayout.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// The layout in which what a nest over `domain` reads by a map of slices is in the threads that it
/// is in, of a value with layout `whole`; none: it has none such.
std::optional<layout::Layout> layout_of_slice(const layout::Layout& whole, const DimMap& map,
                                              const Extents& domain);

/// Whether the nest takes them in such a layout of its own. An operand of which a thread has no
/// neighbours it would store one by one, and keep the whole until the last part: it is exchanged.
bool takes_slices_of_registers(const Program& l, const LoopNest& p, const layout::Layout& own);

/// Which registers those are. Precondition: `to` is layout_of_slice(from, map, domain).
layout::Plan plan_of_slice(const layout::Layout& from, const layout::Layout& to, const DimMap& map,
                           int element_bytes);

}  // namespace palladium::passes
