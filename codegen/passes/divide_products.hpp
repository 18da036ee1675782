// Products of which a block has no room for the operands.
#pragma once

#include <optional>

#include "codegen/graph/builder.hpp"

namespace palladium::passes {

struct Division {
  int parts = 2;          // of K; of a product that has not as many, as many as it has
  bool computed = false;  // operands that are computed are divided, too
};

/// The graph, canonical again, with products as sums over parts of K, of at least a step of tensor
/// cores each: a part of the operands is in shared memory at a time. Of two loads of what nobody
/// writes they are a loop; where one operand is computed they stand one behind the other. Nothing
/// where no product has more than half as many parts.
std::optional<graph::Graph> divide_products(const graph::Graph& g, const Division& division);

/// Of what is loaded a part along a dimension, which begins at `start` where that is dynamic.
struct LoadedPart {
  graph::ValueId view = graph::no_value, load = graph::no_value;
};
LoadedPart loaded_part(graph::Builder& b, graph::ValueId load, std::size_t dimension,
                       graph::SubscriptDim part, graph::ValueId start);

}  // namespace palladium::passes
