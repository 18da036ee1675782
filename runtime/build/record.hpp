// What a program uses, for its manifests.
#pragma once

#include <string>

#include "codegen/graph/graph.hpp"

namespace palladium::runtime {

/// Adds the kernel to what PALLADIUM_RECORD names and to every Recorder's manifest. `arch` is empty
/// for one that runs on the CPU.
void record(const graph::Graph& g, const std::string& arch);

}  // namespace palladium::runtime
