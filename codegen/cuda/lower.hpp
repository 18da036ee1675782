// The order of passes from a canonical graph to what the printer spells.
#pragma once

#include "codegen/graph/limits.hpp"
#include "codegen/passes/lowered.hpp"
#include "codegen/thread/program.hpp"

namespace palladium::cuda {

passes::Lowered lower(const graph::Graph& g, int compute_capability,
                      std::int64_t most_operations = graph::max_compiled);

/// What a thread of the lowered graph does, as it is printed.
thread::Program thread_program(const passes::Lowered& l);

}  // namespace palladium::cuda
