// The grid of a call: known at the trace, or only with the sizes of the call's arrays.
#pragma once

#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/call/extent.hpp"
#include "runtime/call/signature.hpp"

namespace palladium::runtime {

class CallGrid {
 public:
  CallGrid() = default;
  explicit CallGrid(const graph::Graph& g);

  /// Whether there is a program to run: the grid has one, and somebody can tell. CompileError at
  /// `at` for sizes that are negative, or that no launch can have; without one nothing is
  /// allocated.
  bool check(const graph::Graph& g, const Signature::Symbols& symbols, Location at) const;

 private:
  void note_outputs(const graph::Graph& g);
  /// Whether in this call no output has an element, and nothing else is told.
  bool writes_nothing(const Signature::Symbols& symbols) const;
  void check_asked(const graph::Graph& g, const Signature::Symbols& symbols, Location at) const;
  bool check_sizes(const graph::Graph& g, const Signature::Symbols& symbols, Location at) const;

  struct Axis {
    Extent size;
    bool is_parallel;
  };
  std::vector<std::uint32_t> asked_;  // symbols whose sizes are numbers of the body
  bool is_empty_ = false;             // for every call, or nobody could tell that a program ran
  /// By output the extents that only a call knows; none where some call cannot be without elements.
  std::vector<std::vector<Extent>> outputs_;
  std::int64_t most_ = 0;   // programs of the parallel axes
  std::vector<Axis> axes_;  // none if the trace has checked the grid
};

}  // namespace palladium::runtime
