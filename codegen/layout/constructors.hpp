// Layouts by name: strided ones, tensor core fragments, tensor memory rows, user-defined tilings.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "codegen/layout/layout.hpp"

namespace palladium::layout {

/// Every thread holds every element: one register per element.
Layout replicated(const Extents& domain, int warps = 4);

/// `vec` consecutive elements of the last dimension per thread, threads row-major after them. An
/// extent that is no power of two is padded to one, but for the last dimension not beyond
/// `max_width` (both powers of two): (128,96) takes 128 registers at full width, 96 at width 32.
inline constexpr std::int64_t full_width = std::numeric_limits<std::int64_t>::max();
Layout strided(const Extents& domain, int vec, std::int64_t max_width = full_width, int warps = 4);

/// The same for what is combined with something that is alike along the dimensions `alike`: a warp
/// has as few others as may be, and a thread elements of several numbers along these alone. Rows
/// are not padded, other dimensions a little; threads that are left over hold copies.
Layout strided_beside(const Extents& domain, int vec, const std::vector<bool>& alike,
                      int warps = 4);

/// `layout` with its repetitions along d turned into register bits, below those of threads: what a
/// thread holds along d follows one another. Of a number of repetitions that is no power of two
/// there is more padding.
Layout consecutive(Layout layout, int d);

/// The warps of a program, as m along rows times n along columns; m * n is 4, 8 or 16.
struct Warps {
  int m = 4, n = 1;
};

/// Accumulator (M,N) of wgmma, {4, 1} being one warpgroup, {8, 1} two that stand one below the
/// other and {4, 2} two side by side, and, for other arrangements of warps, of mma.sync. Warps side
/// by side take turns at `run` columns, a power of two. Its row vector is drop(layout, 1), its
/// column vector drop(layout, 0).
Layout accumulator(const Extents& domain, Warps warps = {}, std::int64_t run = 8);

/// A operand (M,K) in registers for elements of 4 to 32 bits: that of wgmma and of mma.sync
/// m16n8k(256/bits). `half_k` is the shorter instruction, m16n8k8 of 16-bit elements (sm_75).
Layout operand_a(const Extents& domain, int element_bits, Warps warps = {}, bool half_k = false);

/// B operand (K,N) in registers of the same instructions of mma.sync.
Layout operand_b(const Extents& domain, int element_bits, Warps warps = {}, bool half_k = false);

/// 8x8 matrices of 16-bit elements as ldmatrix delivers them, transposed with `.trans`; all warps
/// hold the same.
Layout matrix_tile(const Extents& domain, bool transposed = false, int warps = 4);

/// Tensor memory rows (M,N): thread t of a warpgroup holds row t, registers the columns. (A warp
/// reaches only the rows that its number modulo 4 gives it, so a wider program has no such layout.)
Layout tensor_memory_rows(const Extents& domain);

/// A tiling as Mosaic GPU writes it. `tiles` are applied one after another to the trailing
/// dimensions, the first one being the whole tile; negative numbers name dimensions of the result,
/// counted from the end. `warp_dims` and `lane_dims`, most significant first, are spread over
/// threads (a positive n there means n copies), `vector_dim` takes the low register bits, further
/// ones follow from the last dimension on.
/// CompileError if the dims do not fill 4, 8 or 16 warps and 32 lanes, or an extent is no power of
/// two.
Layout tiled(const Extents& domain, std::span<const std::vector<int>> tiles,
             const std::vector<int>& warp_dims, const std::vector<int>& lane_dims, int vector_dim);

/// `layout` with the low log2(v) index bits of the last dimension in the low register bits:
/// thread bits that held them take the next register bits of that dimension in exchange, and the
/// tile grows where there are none. widen(operand_a(16 bits), 4) suits loading 8-bit elements that
/// become the A operand of a 16-bit product.
Layout widen(const Layout& layout, int v);

}  // namespace palladium::layout
