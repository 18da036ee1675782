// Reads what graph::to_text prints, so that a test can be text in, text out.
#pragma once

#include <string_view>

#include "codegen/graph/graph.hpp"

namespace palladium::test {

/// The verified graph that `text` shows: to_text gives it back. Only the bodies stand at the
/// margin; lines from `;` on are comments. Throws std::runtime_error that quotes
/// the line which it does not understand.
graph::Graph graph_of(std::string_view text);
/// The same of a graph that lowering has changed, which no user could write: it is not verified.
graph::Graph changed_graph_of(std::string_view text);

}  // namespace palladium::test
