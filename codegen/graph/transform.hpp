// Whole-graph functions: canonical order, checks, text, JSON and bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Ends every trace: drops what nothing needs, orders stretches without writes by demand from their
/// users (so that the graph does not depend on the host compiler's order of evaluation), merges
/// equal constants and pure duplicates in a region, folds scalar and splat constants, contracts
/// products under adds into fma (if Graph::fma), numbers symbols by position, casts the results of
/// index maps to i32, renumbers densely. Idempotent.
///
/// Writes keep their recorded order. A read stays between the writes of its own root Ref (and of
/// Refs that may share memory with it) and commutes with everything else; an instruction with
/// regions is a write of all that its regions write, or else a read. An asynchronous one is a write
/// of all its Refs, barrier included, and one that synchronises of every Ref there is.
Graph canonicalize(const Graph& g);

/// The symbols of array types and grid in the order in which canonicalize() numbers them.
std::vector<std::uint32_t> symbols_in_order(const Graph& g);

/// A graph as it was recorded; or as passes left it, in which products may take floats of 8 bits as
/// they are.
enum class Form : std::uint8_t { recorded, lowered };

/// The first violation of the contract at the top of graph.hpp or of a type rule; "" if there is
/// none.
std::string defect(const Graph& g, Form form = Form::recorded);

/// Checks the contract at the top of graph.hpp and every type rule; InternalError with the graph's
/// text and `stage` if it does not hold.
void verify(const Graph& g, std::string_view stage);

/// A number as it stands in a graph's text: the shortest that is read back as it.
std::string number_text(DType dtype, std::uint64_t bits);

/// For people and tests: dense numbering, one line per instruction, no locations unless asked.
std::string to_text(const Graph& g, bool locations = false);
/// The same of one region alone, a body or an index map, numbered from 0.
std::string to_text(const Graph& g, RegionIndex region);
/// Per instruction the number that to_text gives it in its body or index map; -1 where it has none.
std::vector<int> text_numbers(const Graph& g);

/// Versioned, lossless for verified graphs without dead instructions (all canonical ones): numbers
/// as the hex digits of their bits, 64-bit integers as strings.
std::string to_json(const Graph& g);
/// CompileError on malformed text, an unknown op, a newer version, or limits exceeded.
Graph from_json(std::string_view json);

/// Bytes of all that decides the kernel's meaning; equal graphs have equal bytes. For keys.
std::string canonical_bytes(const Graph& g);

}  // namespace palladium::graph
