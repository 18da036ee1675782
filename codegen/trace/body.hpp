// Calling the user's kernel function with a body's parameters.
#pragma once

#include <memory>
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

/// The operands as the user's function is given them. `blame` begins the message of a CompileError
/// at `at`, for parameters that do not take them, and `order` says which stand where. They are kept
/// by reference, like the names.
std::unique_ptr<detail::Operands> operands_of(Recorder& recorder,
                                              const std::vector<BodyOperand>& operands,
                                              const std::vector<std::string>& scratch_names,
                                              std::string blame, std::string order, Location at);

/// What is wrong with a type of scratch, as a sentence about `who`; else "", and its type.
std::string scratch_problem(const Scoped& scratch, const std::string& who, ShapeDtype& type);

/// CompileError if the function's parameters do not take these operands. `scratch_names` has one
/// entry, perhaps empty, for each of the scratch operands, which come last.
void call_body(const Body& body, Recorder& recorder, const std::vector<BodyOperand>& operands,
               const std::vector<std::string>& scratch_names);

}  // namespace palladium::trace
