// Calling the user's kernel function with a body's parameters.
#pragma once

#include <string>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/spec.hpp"

namespace palladium::trace {

/// One operand of the kernel function.
struct BodyOperand {
  std::string origin;  // "args[0]", "outputs[1]", "scratch 'acc'"
  bool is_scalar = false;
  ValueId param = graph::no_value;
};

/// CompileError if the function's parameters do not take these operands. `scratch_names` has one
/// entry, perhaps empty, for each of the scratch operands, which come last.
void call_body(const Body& body, Recorder& recorder, const std::vector<BodyOperand>& operands,
               const std::vector<std::string>& scratch_names);

}  // namespace palladium::trace
