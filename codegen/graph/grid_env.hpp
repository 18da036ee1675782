// What bodies and index maps see of a grid: GridMapping::get_grid_indices and local_grid_env.
#pragma once

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Whether queries of the grid (program_id, num_programs, axis_index, axis_size) count the axes of
/// the mapping's environment; else those of its grid.
bool has_grid_env(const GridMapping& m);

/// How many axes bodies and index maps see.
std::size_t num_visible_axes(const Graph& g);

/// Puts what the regions of the mapping say in the place of queries of the grid, and of the indices
/// that index maps take: afterwards both count the axes of the grid, and the mapping has neither
/// region. Where get_grid_indices is none the indices are the program ids; where local_grid_env is
/// none kernels see the axes that no vmap added.
void bind_grid(Graph& g);

}  // namespace palladium::graph
