// The shipped transposition.
#pragma once

#include "palladium/kernel.hpp"

namespace palladium::ops {

/// The transpose [n, m] of a matrix [m, n] of any dtype and size; one kernel serves all sizes.
PALLADIUM_API Kernel transpose();

}  // namespace palladium::ops
