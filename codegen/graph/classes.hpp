// Classes of symbols: what kernels are specialised on of sizes that are known at a call only. Sizes
// of one class share a kernel; no kernel knows more of a size than its class.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// What is a multiple of this many bytes can be accessed in wide pieces.
inline constexpr int wide_alignment = 16;

/// By symbol: 16 bytes, in elements of the smallest array of which a stride or the last extent
/// depends on it. A symbol is a multiple of that or, as far as kernels know, of nothing. 1 for
/// symbols on which no address depends.
std::vector<std::int64_t> class_multiples(const Graph& g);

/// Two extents, each a symbol that inputs determine, along which two arrays are cut alike: blocks
/// of one size, and in every program of one index. Where the extents are equal, the blocks of both
/// begin and end at the same place. Pairs of symbols, the smaller number first, without repeats.
using SymbolPair = std::pair<std::uint32_t, std::uint32_t>;
std::vector<SymbolPair> alike_symbols(const Graph& g);

/// A dimension of an array of the grid mapping.
struct MappedDimension {
  std::size_t mapping = 0;
  int dimension = 0;
};
/// Dimensions along which two arrays are cut alike, by blocks that differ from program to program:
/// where the extents differ, the blocks of the one end before those of the other.
using SharedWalk = std::pair<MappedDimension, MappedDimension>;
std::vector<SharedWalk> shared_walks(const Graph& g);

/// Makes the symbols of each group one: `group[s]` is the smallest number among those of s. Gives
/// by old number the new one; what is known of multiples then is what was known of one of them.
std::vector<std::uint32_t> unite_symbols(Graph& g, std::span<const std::uint32_t> group);

/// Whether it is known at a call only how far apart two elements can be: of a symbolic extent, or
/// of strides that are arguments.
bool has_runtime_reach(const BlockMapping& m);
bool has_runtime_reach(const Graph& g);

/// Follows an array's dimensions, the last one first, to the element that is farthest from the
/// first one: the last of a block that begins at the array's end, and is padded to a power of two
/// as threads hold it. Whoever adds up where an element stands meets no larger number.
class Reach {
 public:
  /// Across a dimension with any stride.
  void add(std::int64_t extent, std::int64_t block, std::int64_t stride) {
    const auto padded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(block)));
    const std::int64_t steps =
        std::min(std::clamp<std::int64_t>(extent - 1, 0, limit) + padded - 1, limit);
    const std::int64_t step = stride < 0 ? -std::max(stride, -limit) : std::min(stride, limit);
    farthest_ = std::min(farthest_ + steps * step, limit);
  }
  /// Across the next dimension of a dense array.
  void add(std::int64_t extent, std::int64_t block) {
    add(extent, block, dense_stride_);
    dense_stride_ = std::min(dense_stride_ * std::clamp<std::int64_t>(extent, 0, limit), limit);
  }
  /// Whether the distance is below 2^31 elements.
  bool is_short() const { return farthest_ < limit; }

 private:
  static constexpr std::int64_t limit = std::int64_t{1} << 31;
  std::int64_t farthest_ = 0, dense_stride_ = 1;
};

/// Follows an array's dimensions, the last one first: whether TMA can know it.
class BoxExtents {
 public:
  explicit BoxExtents(DType dtype) : bits_(dtype.bits()) {}
  /// Across a dimension with any stride.
  void add(std::int64_t extent, std::int64_t stride) {
    fit_ = fit_ && extent <= INT32_MAX && (is_last_ || (stride >= 0 && stride < limit / bits_));
    is_last_ = false;
  }
  /// Across the next dimension of a dense array.
  void add(std::int64_t extent) {
    add(extent, dense_stride_);
    dense_stride_ =
        extent > limit / dense_stride_ ? limit : dense_stride_ * std::max<std::int64_t>(extent, 1);
  }
  bool fit() const { return fit_; }

 private:
  static constexpr std::int64_t limit = std::int64_t{8} << 40;  // bits
  int bits_;
  std::int64_t dense_stride_ = 1;
  bool is_last_ = true, fit_ = true;
};

/// Whether all extents of the array, which is dense, are integers for which Reach is short.
bool has_short_reach(const BlockMapping& m);
/// The largest value of the array's one symbolic extent for which Reach is short; -1 for none.
/// Precondition: the array is dense, and the extents of all other dimensions are integers.
std::int64_t most_of_short_reach(const BlockMapping& m, int dimension);

/// Whether Reach is short for the dense arrays, as far as `symbols`, by number, say.
bool has_short_offsets(const Graph& g, std::span<const DimSizes> symbols);
/// Whether the array is one of several dimensions of which only a call knows how large they are.
bool may_be_box(const BlockMapping& m);
/// Whether there are such arrays, and BoxExtents fit them, likewise.
bool has_box_extents(const Graph& g, std::span<const DimSizes> symbols);

/// Sets what the graph knows of its symbols to the class of these multiples.
void set_multiples(Graph& g, std::vector<std::int64_t> multiples);

}  // namespace palladium::graph
