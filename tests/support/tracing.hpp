// Tracing a kernel function in a test: to its graph, its text, or its error.
#pragma once

#include <string>
#include <vector>

#include "codegen/graph/transform.hpp"
#include "codegen/trace/trace.hpp"
#include "palladium/palladium.hpp"

namespace palladium::test {

inline trace::ArgumentType array(Shape shape, DType dtype = f32) { return {{shape, dtype}, false}; }
inline trace::ArgumentType number(DType dtype = f32) { return {{{}, dtype}, true}; }

inline graph::Graph traced(const Body& body, const PallasCallOptions& options,
                           const std::vector<trace::ArgumentType>& arguments,
                           Location at = here()) {
  return trace::trace({&body, 1}, options, arguments, at);
}

inline std::string text_of(const Body& body, const PallasCallOptions& options,
                           const std::vector<trace::ArgumentType>& arguments,
                           Location at = here()) {
  return graph::to_text(traced(body, options, arguments, at));
}

/// The message of the CompileError; "" if there is none.
inline std::string error_of(const Body& body, const PallasCallOptions& options,
                            const std::vector<trace::ArgumentType>& arguments,
                            Location at = here()) {
  try {
    traced(body, options, arguments, at);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

}  // namespace palladium::test
