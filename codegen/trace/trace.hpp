// From a kernel function and its options to a canonical graph.
#pragma once

#include <span>
#include <vector>

#include "codegen/base/dim.hpp"
#include "codegen/graph/graph.hpp"
#include "codegen/trace/debug.hpp"
#include "palladium/array_ref.hpp"
#include "palladium/mesh.hpp"
#include "palladium/spec.hpp"

namespace palladium::trace {

/// An argument of the call, as far as the kernel depends on it.
struct ArgumentType {
  ShapeDtype type = {};
  bool is_scalar = false;  ///< by value: shape {}, a pl::Value of the body
  bool dense = true;       ///< see BlockMapping
  int alignment = 16;
  bool is_ref = false;  ///< an ArrayRef, which the body writes
};

/// A batch of calls (pl::vmap) that the kernel serves at once.
struct BatchType {
  Dim size = {};
  std::vector<int> axes = {};  ///< per argument: its axis in that of the whole batch; -1: none
  Location at = {};
};

/// What a canonical symbol was called before, and what is known of its sizes.
struct SymbolOrigin {
  std::uint32_t symbol = 0;
  DimSizes sizes = {};
};

/// Of a pl::kernel, whose bodies run over meshes and get whole arrays.
struct OverMeshes {
  const Meshes* meshes = nullptr;  ///< null: a pallas_call
  bool is_list = false;            ///< the bodies were given as one
  bool must_write = false;         ///< bodies that write no Ref are refused: a core_map
  /// The arrays that bodies captured are the arguments behind those of the call. They and the
  /// arguments that are ArrayRefs are aliased to outputs behind those of the call.
  std::vector<ArrayRef>* captured = nullptr;
  bool captures_symbols = false;  ///< their extents are symbols, as those of arguments
};

/// What a trace met of operations for debugging, and which of them it recorded.
struct DebugMet {
  DebugKinds asked = 0, recorded = 0;
  /// Whether a trace would record the same now.
  bool is_current() const { return (asked & (recorded ^ debug_kinds())) == 0; }
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
/// `arguments` are those of a single call. Of several batches the first is the outermost.
///
/// Precondition: one body, but over meshes.
graph::Graph trace(std::span<const Body> bodies, const PallasCallOptions& options,
                   std::span<const ArgumentType> arguments, Location at,
                   const DimBinding* binding = nullptr,
                   std::vector<SymbolOrigin>* symbols = nullptr,
                   std::span<const BatchType> batches = {}, const OverMeshes& over = {},
                   DebugMet* debug = nullptr);

/// A trace is going on on this thread: no kernel may be launched.
bool tracing();
/// Name of the kernel that is being traced on this thread, or "".
std::string traced_kernel();

}  // namespace palladium::trace
