// The order of passes from a canonical graph to what the printer spells.
#pragma once

#include "codegen/cuda/emit.hpp"
#include "codegen/passes/lowered.hpp"
#include "codegen/thread/program.hpp"

namespace palladium::cuda {

passes::Lowered lower(const graph::Graph& g, const Options& options);

/// What a thread of the lowered graph does, as it is printed.
thread::Program thread_program(const passes::Lowered& l);

}  // namespace palladium::cuda
