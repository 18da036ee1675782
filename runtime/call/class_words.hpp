// Classes of calls, in words.
#pragma once

#include <string>

#include "codegen/graph/graph.hpp"

namespace palladium::runtime {

/// What calls may have that a kernel of this graph does not rely on, so that those that have it are
/// of classes of their own; nothing where there is no such thing.
std::string open_classes(const graph::Graph& g);

}  // namespace palladium::runtime
