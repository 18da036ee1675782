// From a canonical graph to what the printer spells.
#pragma once

#include <functional>

#include "codegen/cuda/emit.hpp"
#include "codegen/lowered/program.hpp"
#include "codegen/passes/run.hpp"
#include "codegen/thread/program.hpp"

namespace palladium::cuda {

lowered::Program lower(const graph::Graph& g, const Options& options,
                       const passes::Observer& observer = {});

/// Learns of each pass over the thread program, "expand" the first of them, and of what it left.
using ThreadObserver = std::function<void(const char* pass, double ms, const thread::Program&)>;

/// The text of a lowered program.
Emitted emit(const lowered::Program& l);

/// What a thread of the lowered graph does, as it is printed.
thread::Program thread_program(const lowered::Program& l, const ThreadObserver& observer = {});

}  // namespace palladium::cuda
