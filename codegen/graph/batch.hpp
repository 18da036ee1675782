// vmap: a kernel over a batch of its arguments, as one more axis of its grid.
#pragma once

#include <span>
#include <string>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Gives the kernel a leading grid axis of `size` programs, one for each element of the batch, of
/// which its body and its index maps know nothing: GridMapping::vmapped_dims. Input `i` has the
/// batch as dimension `axes[i]`, or none of it (-1); outputs have it as their first, but Refs that
/// are one for the batch, which are only read. Returns what
/// keeps the kernel from it, "" if nothing does. Precondition: a graph that is not canonical yet.
std::string add_batch_axis(Graph& g, const Dim& size, std::span<const int> axes);

}  // namespace palladium::graph
