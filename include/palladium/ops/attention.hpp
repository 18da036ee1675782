// The shipped attention.
#pragma once

#include <optional>

#include "palladium/kernel.hpp"

namespace palladium::ops {

struct AttentionOptions {
  /// Query i sees the keys up to i, counted so that the last query sees the last key.
  bool causal = false;
  /// Of the scores, above 0; none: 1 / sqrt(d).
  std::optional<double> scale = {};
  /// Of which scores are computed at once, a multiple of 16; 0: 128, of d above 128 64, of d above
  /// 224 48; 32 of f32. On Hopper 160 for d 128, and 192 for d 64, take fewer instructions where
  /// nothing is masked; they take more shared memory, too.
  int block_keys = 0;
};

/// softmax(q k^T scale) v for q [batch, heads, queries, d], and k and v [batch, heads / g, keys, d]
/// of f16, bf16 or f32: each g heads of q have one of k and v. Any number of queries and keys, of
/// causal attention no fewer keys than queries; without keys zeros; d a multiple of 16 up to 256.
/// One kernel serves any batch. Sums are in f32; of 16-bit floats exponentials are approximate.
PALLADIUM_API Kernel attention(AttentionOptions options = {});

}  // namespace palladium::ops
