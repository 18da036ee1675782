// Kernels that are not what their options expect of them.
#pragma once

#include <string>

#include "codegen/graph/graph.hpp"
#include "runtime/build/program.hpp"

namespace palladium::runtime {

/// Tells what a kernel breaks of what it is to be on that architecture, with the remarks of the
/// compiler: by a warning, or a CompileError where PALLADIUM_EXPECT says so. Of a kernel from the
/// cache, which is not lowered, only what ptxas made of it is looked at, unless it is an error.
void expect(const graph::Graph& g, const std::string& arch, const Program& program);

}  // namespace palladium::runtime
