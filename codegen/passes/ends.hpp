// Where elements of nests end that somebody wants: at extents that only a call knows.
#pragma once

#include <optional>

#include "codegen/lowered/program.hpp"

namespace palladium::passes {

/// Of the array of its block mapping.
Dim extent_of(const graph::Graph& g, const lowered::NestEnd& end);
/// Along a dimension of a nest where an array has this extent, if one has, and it is no number.
std::optional<lowered::NestEnd> end_at(const graph::Graph& g, int dimension, const Dim& extent);

/// What asks whether integers are less than an extent, or an expression of some.
struct BeforeEnd {
  graph::ValueId number = graph::no_value;
  Dim extent;
};
std::optional<BeforeEnd> before_end(const graph::Graph& g, graph::ValueId comparison);

}  // namespace palladium::passes
