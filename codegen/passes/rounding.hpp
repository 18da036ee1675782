// Which values are rounded to 16 bits before anybody sees them.
#pragma once

#include <vector>

#include "codegen/lowered/program.hpp"

namespace palladium::passes {

/// By value, whether it is an f32 of which nothing but a conversion to 16 bits or fewer is made,
/// behind products, quotients and choices, which keep how far off it is in relation to its size.
/// Functions may give it some 2^-17 of that: 16 bits have 2^-12 between them or more.
std::vector<bool> rounded_to_16_bits(const lowered::Program& l);

}  // namespace palladium::passes
