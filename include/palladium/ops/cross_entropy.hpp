// The shipped cross entropy.
#pragma once

#include <cstdint>

#include "palladium/kernel.hpp"

namespace palladium::ops {

/// As torch.nn.functional.cross_entropy takes them.
struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;  ///< rows of this label have the loss 0
  double label_smoothing = 0;  ///< part of the loss, 0 to 1, that is spread evenly over all classes
};

/// The loss of each row, f32 [m]: -log(softmax(logits[i])[labels[i]]) for logits [m, n] of floats
/// and labels [m] of integers. (Nothing is summed: that is `reduction="none"` of PyTorch, and
/// optax.softmax_cross_entropy_with_integer_labels.) A label that is no class and not ignored
/// gives NaN; rows without classes are an error. One kernel serves any number of rows.
PALLADIUM_API Kernel cross_entropy(CrossEntropyOptions options = {});

}  // namespace palladium::ops
