// From a lowered graph to the program of one CUDA thread.
#pragma once

#include "codegen/lowered/program.hpp"
#include "codegen/thread/program.hpp"

namespace palladium::expand {

/// What a thread of the kernel does. Types, widths, tests and names are decided here; barriers and
/// unused names are left to the passes of codegen/thread.
thread::Program expand(const lowered::Program& l);

}  // namespace palladium::expand
