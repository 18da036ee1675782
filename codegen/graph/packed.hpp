// Elements of which two share a byte, as the bytes that memory is read and written in.
#pragma once

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Whether some array, scratch or value has elements that are packed.
bool has_packed(const Graph& g);

/// The same kernel over bytes: arrays and scratch of packed elements are u8 with half the last
/// extent, values are of the dtype that computed_as() says; loads take bytes apart, stores put them
/// together, of those that a mask halves with what was there. Canonical. CompileError, at the
/// user's line, for what names a half of a byte.
Graph in_bytes(const Graph& g);

}  // namespace palladium::graph
