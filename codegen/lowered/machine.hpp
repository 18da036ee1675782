// What the GPU that a kernel is lowered for can do. Who decides by it asks here, by name: no pass,
// and nothing behind the passes, compares numbers of architectures.
#pragma once

#include <cstdint>
#include <optional>

#include "palladium/types.hpp"

namespace palladium::lowered {

/// Rows and columns of a product of one warp, and elements of K.
struct MmaShape {
  int m = 0, n = 0, k = 0;
  bool operator==(const MmaShape&) const = default;
};

struct Machine {
  int compute_capability = 75;  // 10 * major + minor
  /// The text is for that architecture alone: sm_90a, not sm_90.
  bool is_specific = true;
  std::int64_t max_shared_bytes = 48 * 1024;  // of a block

  /// The first architectures that have something, for messages.
  static constexpr int first_with_matrix_moves = 75, first_with_async_copies = 80,
                       first_with_barriers = 80, first_with_matrix_stores = 90, first_with_tma = 90,
                       first_with_clusters = 90;

  /// ldmatrix, and movmatrix, which transposes what ldmatrix loads: rows of 16 bytes to the lanes
  /// of a warp as products take them.
  bool has_matrix_moves() const { return compute_capability >= first_with_matrix_moves; }
  /// stmatrix, which stores what ldmatrix loads.
  bool has_matrix_stores() const { return compute_capability >= first_with_matrix_stores; }
  /// cp.async: each thread copies 4 to 16 bytes to shared memory, and waits for groups of copies.
  bool has_async_copies() const { return compute_capability >= first_with_async_copies; }
  /// mbarriers, at which threads arrive and for which they wait.
  bool has_barriers() const { return compute_capability >= first_with_barriers; }
  /// Copies of boxes between arrays and shared memory that one thread asks for and an mbarrier, or
  /// a group of copies, knows to be done.
  bool has_tma() const { return compute_capability >= first_with_tma; }
  /// Blocks that see each other's shared memory.
  bool has_clusters() const { return compute_capability >= first_with_clusters; }

  /// Products of a warpgroup, of operands in shared memory. No other architecture than sm_90 has
  /// them, and no text that is for others, too.
  bool has_wgmma() const { return compute_capability == 90 && is_specific; }
  /// Of elements of these dtypes: f16 or bf16; bytes, floats or integers, signed or not, in any
  /// pair; f32 rounded to `tf32`. All but those of 16 bits have both operands along K.
  bool has_wgmma(DType a, DType b, bool tf32) const;

  /// The shape by which mma.sync multiplies elements of these dtypes, f32 rounded to `tf32`; none
  /// where there is no such instruction. (sm_75 makes that of integers of four smaller ones.)
  std::optional<MmaShape> mma(DType a, DType b, bool tf32) const;
  /// Whether mma.sync multiplies floats of 8 bits faster than f16: those of sm_100 to sm_110
  /// convert them.
  bool has_fast_byte_floats() const;
};

}  // namespace palladium::lowered
