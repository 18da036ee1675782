// The shipped softmax.
#pragma once

#include "palladium/kernel.hpp"

namespace palladium::ops {

/// Softmax along the rows of a matrix of floats; one kernel serves any number of rows, of as many
/// elements as lie between two powers of two.
PALLADIUM_API Kernel softmax();

}  // namespace palladium::ops
