// What lowering decides where nobody has said it, by the timelines of the programs that it could
// make.
#pragma once

#include <optional>
#include <string>

#include "codegen/graph/graph.hpp"
#include "codegen/lowered/program.hpp"

namespace palladium::cuda {

struct Chosen {
  lowered::Program program;
  /// Of which it is, with options as a user would give them; none: as it was given.
  std::optional<graph::Graph> graph = {};
  std::string why = {};
};

/// The program that rules of passes make of a graph, or one of a few others, of more warps or of
/// fewer stages: where the timeline says that neither memory nor tensor cores are busy for most of
/// the time, that every loop of the other is as fast, and the whole faster by more than predictions
/// are wrong. Nothing that a user has said is changed. What rules make remains for GPUs of which no
/// speeds are known, and of kernels that are too large to be lowered again.
Chosen choose(const graph::Graph& g, const lowered::Machine& machine);

}  // namespace palladium::cuda
