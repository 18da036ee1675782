// The order of passes from a canonical graph to what the printer spells.
#pragma once

#include "codegen/passes/lowered.hpp"

namespace palladium::cuda {

passes::Lowered lower(const graph::Graph& g, int compute_capability);

}  // namespace palladium::cuda
