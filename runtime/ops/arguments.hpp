// What shipped kernels ask of their arguments: a CompileError that names kernel and operand where
// it does not hold.
#pragma once

#include <cstdint>

#include "palladium/ops/attention.hpp"
#include "palladium/ops/matmul.hpp"

namespace palladium::ops {

/// What a loop goes over in blocks of so many: one kernel serves all lengths up to a power of two,
/// and another one each that is given as a number.
struct Length {
  std::int64_t most;  ///< elements that there may be
  BlockDim all;       ///< them, up to a whole number of blocks
};
Length length_of(const Dim& n, std::int64_t block);

/// In a body what it is in this call: a number where that is known.
Value size_of(const Dim& d);

void require_floats(const char* kernel, const char* operand, const ShapeDtype& x);
/// Of numbers for the columns of a matrix with so many.
void require_columns(const char* kernel, const char* operand, const ShapeDtype& x,
                     const Dim& columns);
/// `bias` may be null.
void check_matmul(const ShapeDtype& a, const ShapeDtype& b, const ShapeDtype* bias,
                  const MatmulOptions& options);
void check_attention(const ShapeDtype& q, const ShapeDtype& k, const ShapeDtype& v,
                     const AttentionOptions& options);

Value activated(const Value& x, Activation activation);

/// The base-2 logarithm that exponentials of a row are taken beside. It follows the largest score
/// only where that is larger by 7, so that sums of rows that do not follow need not be multiplied.
/// P is up to 256 then, far from what 16 bits hold: 8 would be 16 where floats are 16 apart.
Value followed(const Value& top, const Value& largest);

/// Of which scores are computed at once: wide rows of sums leave registers, and shared memory, for
/// fewer of them.
std::int64_t keys_of_block(DType t, std::int64_t d, const AttentionOptions& options);

double scale_of(std::int64_t d, const AttentionOptions& options);

/// So many blocks of keys, at most, have keys that some of a block of queries see and others do
/// not, where the first query sees `before` keys beside its own.
std::int64_t blocks_on_diagonal(const Dim& before, std::int64_t queries, std::int64_t keys);

CompilerParams params_of_attention(DType t, std::int64_t d, std::int64_t keys,
                                   const AttentionOptions& options);

/// What a kernel is to be; with products of dtypes that tensor cores multiply, by these.
Expectation expected(bool has_products = false);

}  // namespace palladium::ops
