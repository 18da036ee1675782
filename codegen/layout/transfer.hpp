// How the operations on values act on layouts: which ones cost nothing, and what they yield.
//
// A function that returns an optional yields nothing where the result is not a layout; the way
// out is plan_through_memory of relayout.hpp. Results hold the same elements in the same threads,
// in registers that may be numbered anew: the register_* functions say which.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codegen/layout/layout.hpp"

namespace palladium::layout {

/// Dimension d of the result is dimension permutation[d] of the source.
Layout transpose(const Layout& layout, std::span<const int> permutation);

/// A new dimension of extent 1 in front of dimension d (d == rank: at the end).
Layout insert_unit_dim(const Layout& layout, int d);
/// Removes a dimension of extent 1; precondition: its tile has extent 1 too.
Layout remove_unit_dim(const Layout& layout, int d);

/// Dimension d becomes (extent / inner, inner).
std::optional<Layout> split_dim(const Layout& layout, int d, std::int64_t inner);
/// Dimensions d and d+1 become one.
std::optional<Layout> merge_dims(const Layout& layout, int d);
/// Row-major reshape to as many elements.
std::optional<Layout> reshape(const Layout& layout, const Extents& shape);

/// The layout of the result of a reduction over d, and the one that a source must have to be
/// broadcast along a new dimension d of a value with this layout: the bits of d vanish, threads
/// that had them replicate. Needs `separable(layout, d)`.
Layout drop(const Layout& layout, int d);
/// Drops several dimensions, given in any order.
Layout drop(const Layout& layout, std::span<const int> dims);
/// Every image lies wholly inside or wholly outside dimension d; true of all unit layouts.
bool separable(const Layout& layout, int d);

/// Whether a value of layout `source` is broadcast along the new dimension d of `result` without
/// moving anything between threads.
bool broadcasts(const Layout& source, const Layout& result, int d);

/// The `size` elements at offset, offset + stride, ... along d. Free where the offset is a multiple
/// of the part of d's tile that threads see, and a thread has all that a stride, a power of two,
/// leaves out; the size may be any.
std::optional<Layout> slice(const Layout& layout, int d, std::int64_t offset, std::int64_t size,
                            std::int64_t stride = 1);

/// The layouts that the pieces of a concatenation along d, of the given extents, must have for
/// the result to have layout `result` (whose extent is their sum).
std::optional<std::vector<Layout>> concat_pieces(const Layout& result, int d,
                                                 std::span<const std::int64_t> extents);

/// If both hold the same elements in the same threads: for each register of `b` the register of
/// `a` with the same elements, -1 for padding.
std::optional<std::vector<int>> same_up_to_registers(const Layout& a, const Layout& b);
/// The same question without the answer's registers.
bool same_elements(const Layout& a, const Layout& b);

/// For each register of the operation's result the register of its source that has its elements,
/// -1 for padding. Sources and results must be unit layouts, paired by the functions above.
std::vector<int> registers_of_transpose(const Layout& source, const Layout& result,
                                        std::span<const int> permutation);
std::vector<int> registers_of_reshape(const Layout& source, const Layout& result);
std::vector<int> registers_of_slice(const Layout& source, const Layout& result, int d,
                                    std::int64_t offset, std::int64_t stride = 1);
/// For each register of `result` the register of `source`, which has no dimension d.
std::vector<int> registers_of_broadcast(const Layout& source, const Layout& result, int d);
/// For each register of `source` the register of `result` = drop(source, dims) that it is folded
/// into.
std::vector<int> registers_of_reduce(const Layout& source, const Layout& result,
                                     std::span<const int> dims);

}  // namespace palladium::layout
