// In which blocks a product is computed.
#pragma once

#include "palladium/ops/matmul.hpp"

namespace palladium::ops {

/// Rows, columns and of k.
struct MatmulBlocks {
  int m, n, k;
  int split_k = 1;          ///< blocks of a cluster that share k
  int stages = 0;           ///< that are fetched ahead; 0: as the compiler finds best
  bool persistent = false;  ///< there is more than one for each multiprocessor
  bool are_chosen = false;  ///< nobody asked for others
};

/// Of `rows` x `columns` of the result, each a sum of `depth` products of elements of type `t`.
/// Where options leave blocks open and tensor cores multiply, those that take least by this model:
/// a multiprocessor takes a block at a time, for each element of k the longer of what its products
/// take and what its operands take from the L2 cache; blocks of a cluster that share k meet, and
/// the first reads what the others have. Sizes that are symbols count as the largest of their
/// class, those of which nothing is said as large.
MatmulBlocks blocks_of(DType t, const Dim& rows, const Dim& columns, const Dim& depth,
                       const MatmulOptions& options);

}  // namespace palladium::ops
