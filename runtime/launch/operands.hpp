// The operands of a kernel's graph, of which a call gives the visible ones.
#pragma once

#include <span>
#include <vector>

#include "palladium/call.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

/// What a call gives; without outputs they are to be made.
struct Given {
  std::span<const Arg> arguments, outputs;
};

/// Those of the call, and behind them what the bodies captured and the outputs that are arguments.
class Operands {
 public:
  Operands(const Specialization& s, const Given& given);
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  std::span<const Arg> arguments() const { return arguments_; }
  std::span<const Arg> outputs() const { return outputs_; }

 private:
  std::span<const Arg> arguments_, outputs_;
  std::vector<Arg> all_arguments_, all_outputs_;
};

bool has_more_operands(const Specialization& s);

/// Whether the call is of the class of the specialisation, and its symbols then.
bool fits(const Specialization& s, const Given& given, Signature::Symbols& symbols);
/// Whether a kernel of it serves the call, which may be of a stronger class.
bool serves(const Specialization& s, const Given& given, Signature::Symbols& symbols);

}  // namespace palladium::runtime
