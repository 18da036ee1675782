// Elements of which two share a byte, as the bytes that memory is read and written in.
#pragma once

#include <set>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Whether some array, scratch or value has elements that are packed.
bool has_packed(const Graph& g);

/// The same kernel over bytes: arrays and scratch of packed elements are u8 with half the last
/// extent, values are of the dtype that computed_as() says; loads take bytes apart, stores put them
/// together, of those that a mask halves with what was there. Canonical. CompileError, at the
/// user's line, for what names a half of a byte.
Graph in_bytes(const Graph& g);

/// Bytes u8, of both halves of which a value consists: of i4 with their signs, or of u4.
struct Halves {
  ValueId bytes = no_value;
  DType packed = {};
};
/// What in_bytes makes of a load of packed elements; no bytes of other values.
Halves halves_of(const Graph& g, ValueId v);
/// The same in whatever shape they are counted.
Halves halves_in_order(const Graph& g, ValueId v);
/// The bytes of all of them.
std::set<ValueId> halved_bytes(const Graph& g);

}  // namespace palladium::graph
