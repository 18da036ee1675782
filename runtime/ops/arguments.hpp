// What shipped kernels ask of their arguments: a CompileError that names kernel and operand where
// it does not hold.
#pragma once

#include <cstdint>

#include "palladium/ops/attention.hpp"
#include "palladium/ops/matmul.hpp"

namespace palladium::ops {

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

/// Of which scores are computed at once: wide rows of sums leave registers, and shared memory, for
/// fewer of them.
std::int64_t keys_of_block(DType t, std::int64_t d, const AttentionOptions& options);

CompilerParams params_of_attention(DType t, std::int64_t d, std::int64_t keys,
                                   const AttentionOptions& options);

/// What a kernel is to be; with products of dtypes that tensor cores multiply, by these.
Expectation expected(bool has_products = false);

}  // namespace palladium::ops
