// What a kernel is called in the cache.
#pragma once

#include <string>

#include "cache/key.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/graph/graph.hpp"

namespace palladium::runtime {

/// 10 * major + minor of "sm_90a". CompileError for what no architecture is called.
int compute_capability(const std::string& arch, Location at);
/// For the text of an architecture; errors as above.
cuda::Options text_options(const std::string& arch, Location at);

/// The kernel's name in the cache: of all that decides its cubin but the compiler.
cache::Key key_of(const graph::Graph& g, const std::string& arch);

}  // namespace palladium::runtime
