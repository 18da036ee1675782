// What a kernel's key is made of, for people and for checking entries.
#pragma once

#include <map>
#include <string>

#include "cache/entry.hpp"
#include "codegen/graph/graph.hpp"

namespace palladium::runtime {

/// By name: "arch", "name", "text" (digest of the sources that decide emitted text), "graph"
/// (digest of all of it), and of the graph "grid", "cluster", "args[0].shape",
/// "outputs[1].index_map", ..., "body". Short ones are text, long ones "sha256:<16 hex>". Two
/// kernels of one architecture and Palladium that differ, differ in "graph" and in what is named
/// like the difference.
std::map<std::string, std::string> components_of(const graph::Graph& g, const std::string& arch);

/// How the entry differs from what its source gives when it is compiled now; "" where it does not,
/// or where it cannot be known: another Palladium stored it, or its NVRTC is not here.
std::string drift(const cache::Entry& entry);

}  // namespace palladium::runtime
