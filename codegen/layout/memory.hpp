// How a layout meets memory: vector width and sectors of accesses; conflicts and
// matrix moves on given (swizzled) shared memory.
#pragma once

#include <cstdint>
#include <span>
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
  /// Where the array may end inside the block's last dimension: the number of elements before its
  /// end is a multiple of this. 0: it does not end there.
  std::int64_t last_extent_multiple = 0;
};

/// Dense row-major array whose shape is the layout's domain.
MemoryFacts dense(const Layout& layout, int element_bytes);

/// Elements per access, 16 bytes at most.
int vector_width(const Layout& layout, const MemoryFacts& facts);

/// What moving every element of a layout costs all warps.
struct AccessCost {
  std::int64_t accesses = 0;  // instructions per thread
  std::int64_t sectors = 0;   // of 32 bytes
  std::int64_t ideal_sectors = 0;
  double load = 0, store = 0;  // clocks
};

/// What a vector that no access moves by itself is among: so much as accesses of so many bytes
/// move.
struct Around {
  std::int64_t accesses = 1, bytes = 0;
};

/// By accesses of `vector` elements. `distances`: per bit of the lane, how many bytes it moves the
/// address; 0: lanes that differ in it read the same. So many warps move the same for different
/// elements of a pass, and find it in the cache.
AccessCost access_cost(const Layout& layout, int vector, int element_bytes,
                       std::span<const std::int64_t> distances, int warps_alike = 1,
                       Around around = {});

enum class Swizzle { None, B32, B64, B128 };

/// Byte offsets of the index bits, those of the last dimension first, of a (rows, columns) array in
/// shared memory: panels of 32, 64 or 128 bytes per row side by side (one as wide as a row without
/// a swizzle), 16-byte chunks exclusive-or'ed with bits of the row as TMA and wgmma do. Rows are at
/// least as wide as a panel.
Bits swizzled_offsets(int row_bits, int column_bits, int element_bytes, Swizzle swizzle);

enum class MatrixMove { None, Plain, Transposed };

/// How the accesses of a layout fit given shared memory.
struct SharedFit {
  int vector = 1;                        // widest plain access, in elements
  MatrixMove matrix = MatrixMove::None;  // whether ldmatrix / stmatrix apply (16-bit elements)
  int conflicts = 1;         // wavefronts of the plain access over those that its bytes need
  int matrix_conflicts = 1;  // the same of the matrix move
};

/// `offsets` are the byte-offset images of the bits of the layout's tile index; precondition: the
/// tile covers the domain (see grow_tile).
SharedFit fit_shared(const Layout& layout, const Bits& offsets, int element_bytes);

/// Wavefronts of a warp's access over those that its bytes need, exactly: the addresses of the
/// lanes served together are a linear space, and so are their banks. `lanes`: byte-offset images
/// of the lane bits, for matrix moves of the three row bits.
int bank_conflicts(std::span<const std::uint32_t> lanes, int access_bytes);

}  // namespace palladium::layout
