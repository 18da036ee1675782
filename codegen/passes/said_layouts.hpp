// Layouts of registers that a user names, and what he asks of layouts.
#pragma once

#include "codegen/graph/register_layout.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Of a LayoutCast. CompileError where its shape has none.
layout::Layout said_layout(const Program& l, ValueId layout_cast);
/// Of a value of this type; `by`: what says so, for messages.
layout::Layout said_layout(const Program& l, const graph::RegisterLayout& said,
                           const graph::Type& type, const char* by, Location at);
/// Remarks for each PrintLayout.
void tell_layouts(Program& l);

}  // namespace palladium::passes
