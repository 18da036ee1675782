// Who reads slots that another agent fills tells when they are free.
#pragma once

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Adds to the agent's statements the arrivals that free slots, and says of whose barriers each
/// warp arrives there for itself. Precondition: full barriers are awaited; groups are not.
void free_slots(Program& l, Statements& agent);

}  // namespace palladium::passes
