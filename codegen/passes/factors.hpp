// Numbers by which results of products are multiplied one after the other.
#pragma once

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Says where elements of a product are multiplied twice by what is one number for all of their
/// row, column or block, which approximate maths multiplies with each other first.
void tell_factors(Program& l);

}  // namespace palladium::passes
