// Parts of the assignment of layouts.
#pragma once

#include "codegen/layout/relayout.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// What relayouts on the machine may do.
layout::PlanOptions plan_options(const Program& l);

/// Gives loads that are narrow in the layouts of their nests nests of their own.
void spread_loads(Program& l);

}  // namespace palladium::passes
