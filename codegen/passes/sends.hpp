// Results of products that TMA stores, by way of panels in shared memory.
#pragma once

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/fetches.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Has TMA store what is made of a product, of which a thread has few elements of many rows. False
/// where threads store it, out of panels if there is room for them: with a mask, where not the
/// whole program does, or the array is read as well, or where TMA cannot, which a remark says.
bool send(Program& l, const Analysis& a, Fetches& fetches, ValueId store, Statements& out);

}  // namespace palladium::passes
