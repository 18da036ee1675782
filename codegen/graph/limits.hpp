// How large grids, blocks and bodies may be.
//
// The same on every target, so that what the interpreter runs a GPU can launch: programs are
// numbered by i32, and the parallel axes of a grid, however many, are gridDim.x. The limits of y
// and z (65535) therefore do not exist for users.
#pragma once

#include <span>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Programs along one axis of a grid.
inline constexpr std::int64_t most_programs = INT32_MAX;
/// Blocks of one launch: the programs of all parallel axes, times the blocks of a cluster.
inline constexpr std::int64_t most_blocks = INT32_MAX;
/// Blocks of a cluster. Above 8 a GPU may refuse.
inline constexpr std::int64_t most_cluster_blocks = 16;
inline constexpr std::int64_t most_threads = 1024;
inline constexpr int warp_threads = 32, warpgroup_threads = 128;
/// Warps that may compute for one Pallas thread, which is alone in its block if they are more
/// than 4.
constexpr int most_stages = 16;
constexpr int most_grid_rows = 1 << 16;
// Blocks of a cluster that every GPU with clusters can run at once.
constexpr int most_split = 8;
constexpr bool is_width(int num_warps) {
  return num_warps == 4 || num_warps == 8 || num_warps == 16;
}
/// Elements along one dimension of a block, and of its padding: indices are i32.
inline constexpr std::int64_t most_extent = INT32_MAX;
/// Elements of an array; no offset that is computed from it wraps.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 47;

/// Bodies of when and loop that may stand inside each other: host compilers and NVRTC take no
/// deeper text.
inline constexpr int max_nesting = 128;
/// Operations that a trace may record, or a file hold.
inline constexpr std::size_t max_recorded = std::size_t{1} << 20;
/// Operations that are compiled for a kernel, those of an unrolled loop as often as it is unrolled:
/// the time that compilers take grows with them. The interpreter has no such limit.
inline constexpr std::int64_t max_compiled = std::int64_t{1} << 14;

std::int64_t cluster_blocks(const Graph& g);

/// CompileError at `at` for an axis or a grid that no launch can have; `sizes` of the axes, which
/// the graph may know as symbols only.
void check_grid(const Graph& g, std::span<const std::int64_t> sizes, Location at);
/// The same for what the graph knows: each static axis, and the grid if all of them are.
void check_static_axes(const Graph& g, Location at);
void check_static_grid(const Graph& g, Location at);

/// What of an operand of such a type and blocks cannot be counted, as a sentence; "" if all can.
std::string too_large(const ShapeDtype& type, std::span<const BlockDim> block);

}  // namespace palladium::graph
