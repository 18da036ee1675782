// How a layout meets memory: vector width, sectors and predicates of global accesses; conflicts and
// matrix moves on given (swizzled) shared memory.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/layout/layout.hpp"

namespace palladium::layout {

/// What is known of one stride of an array, in elements.
struct Stride {
  std::int64_t value = 0;  // known: the stride; else a number that it is a multiple of
  bool known = true;
  static Stride fixed(std::int64_t value) { return {value, true}; }
  static Stride unknown(std::int64_t multiple_of = 1) { return {multiple_of, false}; }
};

/// What is known of the memory under a block of an array.
struct MemoryFacts {
  int element_bytes = 4;
  std::vector<Stride> strides;  // one per dimension of the layout's domain
  int alignment = 16;           // of the block's first element, in bytes
  /// The number of valid elements along the last dimension is a multiple of this: the domain's
  /// extent if the block is whole, less where the array may end inside it.
  std::int64_t last_extent_multiple = 1;
};

/// Dense row-major array whose shape is the layout's domain.
MemoryFacts dense(const Layout& layout, int element_bytes);

struct MemoryAccess {
  int vector = 1;                // elements per access: 16 bytes at most
  std::vector<bool> predicated;  // dimensions that pad: their coordinate must be tested
  std::int64_t accesses = 0;     // instructions per thread
  std::int64_t sectors = 0;      // of 32 bytes, whole warpgroup
  std::int64_t ideal_sectors = 0;
  double load_cost = 0, store_cost = 0;
};

MemoryAccess plan_access(const Layout& layout, const MemoryFacts& facts);

enum class Swizzle { None, B32, B64, B128 };

/// Byte offsets of the index bits of a (rows, columns) array in shared memory: panels of
/// `panel_bytes` per row side by side, 16-byte chunks exclusive-or'ed with the row. The last
/// dimension's bits come first. Extents are powers of two.
Bits swizzled_offsets(int row_bits, int column_bits, int element_bytes, Swizzle swizzle);

enum class MatrixMove { None, Plain, Transposed };

/// An access of one warp, with every register, to shared memory given by `offsets` (of the bits of
/// the layout's tile index, after grow_tile to one repetition).
struct SharedFit {
  int vector = 1;                        // widest plain access, in elements
  MatrixMove matrix = MatrixMove::None;  // whether ldmatrix / stmatrix apply (16-bit elements)
  int conflicts = 1;                     // wavefronts of the plain access over the ideal number
  int matrix_conflicts = 1;              // the same of the matrix move
};

SharedFit fit_shared(const Layout& layout, const Bits& offsets, int element_bytes);

/// Wavefronts that one access of a warp takes over those that its bytes need. `lanes` and
/// `vector_bits` are the byte-offset images of the bits that vary within the access.
int bank_conflicts(const Bits& lanes, int access_bytes);

}  // namespace palladium::layout
