// Products that are added in place, to what may be scaled before: acc = acc + product, acc = acc *
// f + product.
#pragma once

#include <optional>
#include <vector>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

struct Accumulation {
  graph::ValueId sum = graph::no_value;  // stored to where `old` was loaded, or its next value
  graph::ValueId old = graph::no_value;  // a carry of a loop, or a load
  /// From what uses `old` to the addend of the sum, each element by element of the one before;
  /// computed where the product is. None: the addend is `old`.
  std::vector<graph::ValueId> scaled = {};
};

/// Nothing where anybody else reads what is added up meanwhile, or where `old` is scaled by what is
/// computed behind the product.
std::optional<Accumulation> accumulation(const graph::Graph& g, const Analysis& a,
                                         graph::ValueId product);

/// The storage in registers that holds what is added up; -1 where it is elsewhere, or is read
/// between.
StorageId accumulator(const Program& l, const Analysis& a, const Accumulation& added);

}  // namespace palladium::passes
