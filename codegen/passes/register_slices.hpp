// Slices of whole values in registers. Where each thread has what it has of a slice among what it
// has of the whole, the slice is a name for some of its registers.
#pragma once

#include <optional>

#include "codegen/layout/relayout.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Of neighbours along each dimension, from `starts` on.
struct RegisterSlice {
  StorageId of = {};
  std::vector<std::int64_t> starts = {};
  Extents shape = {};
};

/// Of a nest that makes nothing else.
std::optional<RegisterSlice> register_slice(const Program& l, const LoopNest& p);

/// The layout in which a slice of a value with layout `whole` is in the threads that it is in;
/// none: it has none such.
std::optional<layout::Layout> layout_of_slice(const layout::Layout& whole, const RegisterSlice& s);

/// Which registers those are. Precondition: `to` is layout_of_slice(from, s).
layout::Plan plan_of_slice(const layout::Layout& from, const layout::Layout& to,
                           const RegisterSlice& s, int element_bytes);

}  // namespace palladium::passes
