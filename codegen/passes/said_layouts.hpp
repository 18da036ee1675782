// Layouts of registers that a user names, and what he asks of layouts.
#pragma once

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Of a LayoutCast. CompileError where its shape has none.
layout::Layout said_layout(const Program& l, ValueId layout_cast);
/// Remarks for each PrintLayout.
void tell_layouts(Program& l);

}  // namespace palladium::passes
