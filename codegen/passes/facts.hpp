// What is known of the memory behind a view of a Ref when a kernel is compiled.
#pragma once

#include <optional>

#include "codegen/layout/memory.hpp"
#include "codegen/passes/indices.hpp"
#include "codegen/passes/lowered.hpp"

namespace palladium::passes {

/// Strides of the view's dimensions, alignment and extent, as far as they are known; nothing for
/// views whose dimensions have no stride (a reshape, a bitcast) and for Refs outside of global
/// memory.
std::optional<layout::MemoryFacts> memory_facts(const Lowered& l, Indices& indices, ValueId ref);

}  // namespace palladium::passes
