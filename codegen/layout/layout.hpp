// Register layouts: which thread of a program holds which element of a value in which register.
//
// A layout is a linear map over F2 from register, lane and warp bits to the bits of an index into
// a power-of-two tile, which registers repeat over the padded domain. Contract:
//  * The tile index is the concatenation of one field of `tile_bits[d]` bits per dimension, the
//    last dimension in the lowest bits. `reg`, `lane` and `warp` hold the images of the bits of
//    the register number, the lane (5) and the warp (2, 3 or 4: a layout is for programs of 4, 8
//    or 16 warps, and only layouts of equal width meet in an operation).
//  * An image of 0 in `lane` or `warp` means replication: threads that differ in that bit hold the
//    same elements. The non-zero images are independent and span the tile; none in `reg` is 0.
//  * A register number is `repetition << reg.size() | tile register`; repetitions are row-major,
//    the last dimension fastest.
//  * Where a tile reaches over the domain there is padding: registers with undefined contents,
//    which are never read as meaningful, masked in reductions and predicated in memory accesses.
//  * A splat (one value for all elements) is not a layout; it converts to any at no cost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/layout/f2.hpp"

namespace palladium::layout {

using Extents = std::vector<std::int64_t>;

inline constexpr int lane_bits = 5;
/// The warps of a warpgroup, and of the widest program.
inline constexpr int least_warp_bits = 2, most_warp_bits = 4;
inline constexpr int most_warps = 1 << most_warp_bits;

struct Layout {
  Extents domain;
  std::vector<int> tile_bits;  // log2 of the tile's extent per dimension
  Bits reg, lane, warp;

  /// Equal numbers in all fields; see `same_up_to_registers` for equal maps.
  bool operator==(const Layout&) const = default;

  int rank() const { return static_cast<int>(domain.size()); }
  std::int64_t tile(int d) const { return std::int64_t{1} << tile_bits[d]; }
  /// Sum of tile_bits: the bits of a tile index.
  int index_bits() const;
  /// Tiles along a dimension, and in all.
  std::int64_t repetitions(int d) const { return (domain[d] + tile(d) - 1) >> tile_bits[d]; }
  std::int64_t repetitions() const;
  /// Registers per thread, padding included.
  std::int64_t registers() const { return repetitions() << reg.size(); }
  /// Whether some registers or threads hold padding along d.
  bool pads(int d) const { return domain[d] % tile(d) != 0; }

  int warps() const { return 1 << warp.size(); }
  int thread_bits() const { return lane_bits + static_cast<int>(warp.size()); }
  int threads() const { return 1 << thread_bits(); }
  /// How often the work of one warpgroup is done: what throughput costs grow with.
  double warpgroups() const { return static_cast<double>(warps() >> least_warp_bits); }

  /// Where the field of dimension d stands in a tile index.
  int field_shift(int d) const;
  std::uint32_t field_mask(int d) const;
  std::uint32_t field(int d, std::uint32_t tile_index) const;

  /// Images of all thread bits, lanes first.
  Bits thread() const;
  /// The thread bits that replicate: of the threads that hold an element, the one with
  /// `(t & replicated_threads()) == 0` is the one that stores it.
  std::uint32_t replicated_threads() const;
  /// The tile-index bits that depend on the thread.
  std::uint32_t thread_span() const;

  /// Repetition number per dimension of a register.
  Extents repetition(std::int64_t reg_number) const;
  /// Coordinates held by thread `t` in register `k`; beyond the domain for padding.
  Extents index(int t, std::int64_t k) const;
  bool in_domain(std::span<const std::int64_t> index) const;
};

/// Throws InternalError, with the layout's text, unless the contract above holds.
void check(const Layout& layout);

/// Every image has at most one bit: threads and registers then use disjoint index bits, and a
/// coordinate is a thread term plus a register term.
bool is_unit(const Layout& layout);

/// The smallest tile with the same register numbers: equal canonical forms hold the same elements
/// in the same registers.
Layout canonical(Layout layout);

/// The same map on a tile of at least `tile_bits`, with repetitions turned into register bits (on
/// top). Registers are renumbered, and there is more padding where an extent is not a multiple of
/// the new tile.
Layout grow_tile(const Layout& layout, std::span<const int> tile_bits);

/// The same map with the top bit of d's tile turned into repetitions, if it is a register bit of
/// its own. Registers are renumbered.
std::optional<Layout> shrink_tile(const Layout& layout, int d);

/// `dom(64,128) tile(64,8) reg[j1 i8] lane[j2 j4 i1 i2 i4] warp[i16 i32]`: letters i, j, k, ...
/// name dimensions, numbers the index bits of a dimension; `*` is replicated, `i1^j2` a sum.
std::string to_string(const Layout& layout);
/// Reads that form. CompileError for malformed text, naming what was expected where.
Layout parse(std::string_view text);

}  // namespace palladium::layout
