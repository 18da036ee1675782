// Barriers and asynchronous copies that a user has written.
#pragma once

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Adds the statements of an operation on barriers or copies, which legalize_async_copies has left
/// to be one.
void add_by_hand(Program& l, ValueId v, Statements& out);

}  // namespace palladium::passes
