// From a kernel function and its options to a canonical graph.
#pragma once

#include <span>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/graph/graph.hpp"
#include "palladium/spec.hpp"

namespace palladium::trace {

/// An argument of the call, as far as the kernel depends on it.
struct ArgumentType {
  ShapeDtype type = {};
  bool is_scalar = false;  ///< by value: shape {}, a pl::Value of the body
  bool dense = true;       ///< see BlockMapping
  int alignment = 16;
};

/// What a canonical symbol was called before, and what is known of its sizes.
struct SymbolOrigin {
  std::uint32_t symbol = 0;
  DimSizes sizes = {};
};

/// Runs the body once, with every index map before it, and returns the canonical, verified graph.
/// CompileError names what the user did wrong and where; nothing is left behind then, nor when the
/// body throws.
///
/// Dims that must be static (block shapes that are left out, scratch) are read, and so pinned where
/// a DimBinding is in force. Symbols that `binding` (in force, if given) has pinned by the end,
/// here or before, become the integers that they are bound to; all others stay symbols.
///
/// Of those the graph knows the class (graph/classes.hpp) that follows from what pl::dim() and
/// pl::require_multiple() say.
///
/// Precondition: one body (a mesh of several bodies makes its graph by hand).
graph::Graph trace(std::span<const Body> bodies, const PallasCallOptions& options,
                   std::span<const ArgumentType> arguments, Location at,
                   const DimBinding* binding = nullptr,
                   std::vector<SymbolOrigin>* symbols = nullptr);

/// A trace is going on on this thread: no kernel may be launched.
bool tracing();
/// Name of the kernel that is being traced on this thread, or "".
std::string traced_kernel();

}  // namespace palladium::trace
