// What pl::div_by multiplies by.
#pragma once

namespace palladium {

/// 1 / b and 2^-51 of it more, give or take 2^-52: above the quotient, so that where that is
/// halfway between two denormals its last bits can be cut off.
inline double above_reciprocal(double b) { return 1 / b * (1 + 0x1p-51); }

}  // namespace palladium
