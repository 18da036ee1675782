// The shipped normalisation by the root of the mean square.
#pragma once

#include "palladium/kernel.hpp"

namespace palladium::ops {

struct RmsNormOptions {
  double epsilon = 1e-6;  ///< added to the mean square
};

/// x / sqrt(mean(x^2) + epsilon) * weight along the rows of a matrix x [m, n] of floats, with
/// weight [n] of any floats; computed in f32, of the dtype of x. One kernel serves any number of
/// rows.
PALLADIUM_API Kernel rms_norm(RmsNormOptions options = {});

}  // namespace palladium::ops
