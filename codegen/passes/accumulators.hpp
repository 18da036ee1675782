// Products that are added in place, one after the other, to what may be scaled between: acc = acc +
// product, acc = (acc * f + product) * g + product + product.
#pragma once

#include <map>
#include <vector>

#include "codegen/passes/analysis.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// One of the products that are added to what a loop carries, or what is stored where it was
/// loaded.
struct Accumulation {
  graph::ValueId sum =
      graph::no_value;  // of all: stored to where `old` was loaded, or its next value
  graph::ValueId old = graph::no_value;  // a carry of a loop, or a load
  /// From what the products before leave, or `old`, to the addend of this one, each element by
  /// element of the one before; computed where the product is. None: nothing comes between.
  std::vector<graph::ValueId> scaled = {};
  /// The Add, or the Fma that scales too, by which this product and those beside it are added.
  graph::ValueId added_by = graph::no_value;
  bool first = false;  // of all that are added to `old`
};

/// By product. None where anybody else reads what is added up meanwhile, or where it is scaled by
/// what is computed behind the product.
std::map<graph::ValueId, Accumulation> accumulations(const graph::Graph& g, const Analysis& a);

/// Products of one region that are added to nothing but each other, to zeros, and to what a loop in
/// front of them leaves of its sum.
struct SumOfProducts {
  graph::ValueId sum = graph::no_value;
  std::vector<graph::ValueId> products = {};  // in the order in which they are made
  graph::ValueId left_by_loop = graph::no_value, added_by_loop = graph::no_value;
};

/// Those of which nobody reads a part.
std::vector<SumOfProducts> sums_of_products(const graph::Graph& g, const Analysis& a);

/// The storage in registers that holds what is added up; none where it is elsewhere, or is read
/// between.
StorageId accumulator(const Program& l, const Analysis& a, const Accumulation& added);

}  // namespace palladium::passes
