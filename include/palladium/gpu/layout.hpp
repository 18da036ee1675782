// How threads of a Pallas thread hold the elements of a value in registers. Layouts are assigned by
// cost; who knows better says so.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "palladium/ops.hpp"
#include "palladium/spec.hpp"

namespace palladium::gpu {

class Layout {
 public:
  /// The sums of wgmma, and its A of 16 bits; A of 8 bits; what becomes WGMMA when elements of 8 or
  /// of 4 bits become 16; WGMMA of which a thread has pairs of a column.
  static const Layout WGMMA, WGMMA_8BIT, WGMMA_UPCAST_2X, WGMMA_UPCAST_4X, WGMMA_TRANSPOSED;
  /// One value for all elements, as constants are.
  static const Layout WG_SPLAT;
  /// `vec_size` elements that follow one another, then those of the next thread; 0: of 8 bytes.
  static Layout WG_STRIDED(int vec_size = 0) { return {Kind::strided, {vec_size}}; }
  /// Operands and sums of mma.
  static Layout MMA_LHS(DType dtype) { return {Kind::mma_lhs, {dtype.bits()}}; }
  static Layout MMA_RHS(DType dtype) { return {Kind::mma_rhs, {dtype.bits()}}; }
  static Layout MMA_ACC(DType dtype) { return {Kind::mma_acc, {dtype.bits()}}; }
  /// Tiles, each of the one before it, of the last dimensions. Negative numbers name dimensions of
  /// what is tiled so, from the last on: those that warps and lanes go along, where a positive n is
  /// n copies, and the one whose elements follow one another in a thread.
  PALLADIUM_API static Layout TILED(const std::vector<std::vector<int>>& tiles,
                                    const std::vector<int>& warp_dims,
                                    const std::vector<int>& lane_dims, int vector_dim);

  /// Of what is left of a value when these dimensions are reduced.
  PALLADIUM_API Layout reduce(Axes axes) const;
  /// For the trace: the number of its name, how many dimensions are reduced, these, and what its
  /// name takes.
  PALLADIUM_API std::vector<std::int64_t> encoded() const;

 private:
  enum class Kind : std::uint8_t {
    splat,
    strided,
    wgmma,
    wgmma_8bit,
    wgmma_upcast_2x,
    wgmma_upcast_4x,
    wgmma_transposed,
    mma_lhs,
    mma_rhs,
    mma_acc,
    tiled
  };
  Layout(Kind kind, std::vector<std::int64_t> numbers = {})
      : kind_(kind), numbers_(std::move(numbers)) {}

  Kind kind_;
  std::vector<std::int64_t> numbers_, reduced_ = {};
};
inline const Layout Layout::WGMMA{Kind::wgmma}, Layout::WGMMA_8BIT{Kind::wgmma_8bit},
    Layout::WGMMA_UPCAST_2X{Kind::wgmma_upcast_2x}, Layout::WGMMA_UPCAST_4X{Kind::wgmma_upcast_4x},
    Layout::WGMMA_TRANSPOSED{Kind::wgmma_transposed}, Layout::WG_SPLAT{Kind::splat};

/// x, whose elements threads hold so from here on.
PALLADIUM_API Value layout_cast(const Operand& x, const Layout& layout);

struct LayoutOptions {
  std::optional<Layout> layout = {};  ///< none: that which costs the least
};
/// The index of each element along a dimension.
PALLADIUM_API Value broadcasted_iota(DType dtype, Shape shape, int dimension,
                                     LayoutOptions options = {}, Location at = here());

struct LayoutLoadOptions {
  std::optional<Layout> layout = {};
  /// Accepted: accesses of any layout are as wide as it lets them be.
  bool optimized = true;
};
/// `ref[_]` in a layout.
PALLADIUM_API Value load(const Ref& ref, LayoutLoadOptions options = {}, Location at = here());

/// A remark of the compiled kernel (`k.lower(...).report()`): the text with, for its {}, how
/// threads hold the value, or how the memory lies.
PALLADIUM_API void print_layout(const char* text, const Operand& x);
PALLADIUM_API void print_layout(const char* text, const Ref& ref, Location at = here());

}  // namespace palladium::gpu
