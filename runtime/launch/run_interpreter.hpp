// A call on the interpreter.
#pragma once

#include <span>

#include "runtime/call/specialization.hpp"
#include "runtime/interpreter/interpreter.hpp"

namespace palladium::runtime {

/// What a call gives to the interpreter.
interpreter::Invocation invocation(const Specialization& s, std::span<const Arg> arguments,
                                   std::span<const Arg> outputs, const Signature::Symbols& symbols);

/// `fresh`: what nobody writes of the outputs, which have no gaps, becomes poison.
void run_interpreter(const Specialization& s, std::span<const Arg> arguments,
                     std::span<const Arg> outputs, const Signature::Symbols& symbols, bool fresh);

}  // namespace palladium::runtime
