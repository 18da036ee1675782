// What a kernel is called in the cache.
#pragma once

#include <string>

#include "cache/key.hpp"
#include "codegen/cuda/emit.hpp"
#include "codegen/graph/graph.hpp"

namespace palladium::runtime {

/// For the text of an architecture. CompileError for what no architecture is called.
cuda::Options text_options(const std::string& arch);

/// The kernel's name in the cache: of all that decides its cubin but the compiler. Errors as above.
cache::Key key_of(const graph::Graph& g, const std::string& arch);

}  // namespace palladium::runtime
