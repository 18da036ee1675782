// Extents that only a call knows: as scalars of bodies and index maps, and of Refs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "codegen/graph/builder.hpp"
#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// The symbol whose size a DimValue is.
std::uint32_t symbol_of(const Inst& dim_value);

/// What a dim is in a call, as an i32[].
ValueId value_of_dim(Builder& builder, const Dim& d, Location at);

/// Makes each DimValue what its symbol is: `is` says.
void replace_symbols(Graph& g, const std::function<Dim(std::uint32_t)>& is);

/// The parameters of bodies and index maps that are Refs of arrays, with their block mappings.
std::vector<std::pair<ValueId, std::size_t>> array_refs(const Graph& g);

/// The extent of a Ref along a dimension: of one that only a call knows that of its array.
Dim extent_of(const Graph& g, ValueId ref, std::size_t dimension);

/// Whether the block mapping has a dimension of which only a call knows how many elements it has.
bool has_unknown_extent(const BlockMapping& m);
bool has_unknown_extent(const Graph& g);

/// Gives blocks that are all of an array the extents that it has as numbers by now, and so their
/// Refs and what views them; whether there are such. `refs`: others, and their extents.
bool bind_extents(Graph& g, std::span<const std::pair<ValueId, Extents>> refs = {});
/// The views are then as if the extents had been known from the beginning: CompileError for what is
/// outside of them.
void settle_views(Graph& g);

/// Blocks that are all of an array of unknown extent stay where they are.
void keep_unknown_in_memory(Graph& g);

/// Whether the meaning depends on sizes in bodies, index maps or extents of Refs.
bool asks_sizes(const Graph& g);

/// The kernel for a call with these sizes, as the interpreter runs it: views know where Refs end.
Graph with_sizes(const Graph& g, std::span<const std::int64_t> symbols);

}  // namespace palladium::graph
