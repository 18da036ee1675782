// The shipped layer normalisation.
#pragma once

#include "palladium/kernel.hpp"

namespace palladium::ops {

struct LayerNormOptions {
  double epsilon = 1e-5;  ///< added to the variance
  bool bias = true;       ///< whether there is a third argument
};

/// (x - mean) / sqrt(variance + epsilon) * weight + bias along the rows of a matrix x [m, n] of
/// floats, with weight [n] and bias [n] of any floats; computed in f32, of the dtype of x. One
/// kernel serves any number of rows.
PALLADIUM_API Kernel layer_norm(LayerNormOptions options = {});

}  // namespace palladium::ops
