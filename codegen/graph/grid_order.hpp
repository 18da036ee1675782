// Which grid axes must run in order: those along which an output block is visited again.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Does the index map of block mapping `mapping` depend on grid axis `axis`?
bool depends_on_axis(const Graph& g, int mapping, int axis);

/// Whether programs write to the output, and to what is aliased to it, by atomic updates alone.
bool is_only_updated(const Graph& g, int output);

/// CompileError where an input is updated to which no output is aliased.
void check_updated(const Graph& g);

/// One order per grid axis. An axis is sequential if some output's index map does not depend on it
/// (its blocks are revisited), unless the axis has one program or the output is only updated; else
/// parallel. `wanted` is the
/// user's dimension_semantics: empty, or one entry per axis. CompileError at Graph::at for
/// `parallel` on a revisited axis without Graph::allow_revisit.
std::vector<Semantics> grid_order(const Graph& g, std::span<const std::optional<Semantics>> wanted);

}  // namespace palladium::graph
