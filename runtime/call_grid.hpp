// The grid of a call: known at the trace, or only with the sizes of the call's arrays.
#pragma once

#include <vector>

#include "codegen/graph/graph.hpp"
#include "runtime/dims.hpp"
#include "runtime/signature.hpp"

namespace palladium::runtime {

class CallGrid {
 public:
  CallGrid() = default;
  explicit CallGrid(const graph::Graph& g);

  /// CompileError at `at` for sizes that are negative, or that no launch can have. Allocates
  /// nothing else.
  void check(const graph::Graph& g, const Signature::Symbols& symbols, Location at) const;

 private:
  std::vector<Extent> axes_;  // none if the trace has checked the grid
};

}  // namespace palladium::runtime
