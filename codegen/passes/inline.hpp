// Text of the user's own, and the registers that it is given.
#pragma once

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// What an InlineCuda gives, whoever reads it, is one storage for each result, in the layout that
/// the user names.
void place_results_of_text(Program& l, const Analysis& a, ValueId v);
/// Adds its statement, behind those that bring its operands to the layouts that they have there.
void add_text(Program& l, const Analysis& a, ValueId v, Statements& out);

}  // namespace palladium::passes
