// The shipped matrix product.
#pragma once

#include <cstdint>

#include "palladium/kernel.hpp"
#include "palladium/ops.hpp"

namespace palladium::ops {

/// What is computed of each element of a product before it is stored.
enum class Activation : std::uint8_t {
  none,
  relu,
  gelu,  ///< by tanh
  silu,
};

struct MatmulOptions {
  bool bias = false;  ///< whether there is a third argument, a vector [n] added to each row
  Activation activation = Activation::none;  ///< of the sum
  DType out_dtype = f32;
  bool trans_b = false;        // whether b is given [n, k]
  Precision precision = ieee;  // of f32: tf32 rounds a and b for tensor cores
  /// Rows and columns of the result that a program computes, and how much of k it takes at once:
  /// multiples of 16 up to 256. 0: of f32 and f64 64, 64 and 32. Where tensor cores multiply, rows
  /// and columns are chosen for the size of the result (of all of a batch), from 128 x 256 for
  /// large ones (of 16 bits) down to 64 x 32 for those of few rows: those that take least by a
  /// model of 132 multiprocessors, which take a block at a time and wait for products or for the L2
  /// cache. It goes by powers of two: all sizes for which it says the same have one kernel; one of
  /// which pl::lower() knows nothing counts as large. Beside a block_m or block_n the other is 128.
  /// Of k 64, but 32 of tf32 and 128 of 8-bit floats whose b is [n, k], and twice as much beside
  /// 64 x 64 and less. Blocks for which an architecture has no shared memory are an error where the
  /// kernel is compiled for it; where registers spill there is a warning.
  int block_m = 0, block_n = 0, block_k = 0;
  /// Blocks of a cluster that share k (compiler_params.split_k), 1 to 8. 0: chosen with the blocks,
  /// more than 1 where results are few and sums long; 1 beside a block_m or block_n, and where no
  /// tensor cores multiply.
  int split_k = 0;
};

/// activation(a @ b + bias) for matrices a [m, k] and b [k, n] of floats of any size, and a bias of
/// any floats; where k is 0 the product is zeros. a and b are of one dtype, or each of one of the
/// 8-bit floats. All is computed in f32 (of f64 in f64) and rounded once, to out_dtype, a float.
/// One kernel serves any m and n for which blocks are the same. Tensor cores multiply elements of 8
/// bits, and tf32 of sm_90a, twice as fast where b is given [n, k].
PALLADIUM_API Kernel matmul(MatmulOptions options = {});

}  // namespace palladium::ops
