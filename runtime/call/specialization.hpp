// A kernel traced for one combination of argument types.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/trace/trace.hpp"
#include "palladium/call.hpp"
#include "runtime/call/call_grid.hpp"
#include "runtime/call/signature.hpp"

namespace palladium::runtime {

/// What pl::vmap() was told.
struct Batch {
  std::vector<int> in_axes = {};
  Location at = {};
};

/// What a kernel was made of.
struct Source {
  std::vector<Body> body = {};     // none if the function gives it
  PallasCallOptions options = {};  // unless there is a function
  Meshes meshes = {};              // unless there is a function: of pl::kernel, else none
  bool is_meshed = false;
  bool is_list = false;     // the bodies were given as one
  bool must_write = false;  // an ArrayRef: a core_map
  detail::Shared<detail::OptionsFunction> function = {};
  Location at = {};
  std::vector<Batch> batches = {};  // of several the first is that of the arguments' own types
};

struct Specialization {
  graph::Graph graph;
  /// The graph for calls in which extents differ that are equal in this one's, and so one symbol,
  /// and what its symbols are in `graph`. Null where no two are.
  struct Apart {
    graph::Graph graph;
    std::vector<std::uint32_t> symbols;
    std::vector<Requirement> requirements = {};
  };
  std::shared_ptr<const Apart> apart = {};
  std::vector<Requirement> requirements = {};  // of the options function, in `graph`'s symbols
  Interpret interpret;
  /// Arrays that bodies captured: the arguments behind those of the call. Outputs behind the
  /// visible ones are aliased to arguments, or memory of the launch alone.
  std::vector<ArrayRef> captured = {};
  std::size_t num_visible = 0;
  std::vector<std::string> out_names = {};  // of the visible outputs, where they have some
  Signature signature;
  CallGrid grid;
  trace::DebugMet debug = {};
  double trace_ms = 0;
};

/// One argument to specialise on.
struct Request {
  ShapeDtype type = {};
  bool is_scalar = false;
  bool is_array = false;                   // of a call: its extents are sizes, not a choice
  bool is_ref = false;                     // an ArrayRef
  std::optional<std::int64_t> value = {};  // of a call's scalar, if it is an integer
  Placement placed = {};                   // as if the extents promised aligned rows
  std::vector<std::int64_t> strides = {};  // of one with gaps
  Location at = {};
};
Request request(const ArgType& type);
Request request(const Arg& arg);

/// Runs options function and body. In an options function the extents of a call's arrays are
/// symbols bound to their sizes; those that are read become part of the specialisation.
std::shared_ptr<Specialization> specialize(const Source& source, std::span<const Request> arguments,
                                           std::span<const Request> outputs, Location at);

}  // namespace palladium::runtime
