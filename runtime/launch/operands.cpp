#include "runtime/launch/operands.hpp"

#include "runtime/call/check.hpp"

namespace palladium::runtime {

Operands::Operands(const Specialization& s, const Given& given)
    : arguments_(given.arguments), outputs_(given.outputs) {
  if (!s.captured.empty()) {
    all_arguments_.assign(arguments_.begin(), arguments_.end());
    for (const ArrayRef& ref : s.captured) all_arguments_.emplace_back(ref, s.graph.at);
    arguments_ = all_arguments_;
  }
  if (outputs_.empty() || outputs_.size() != s.num_visible) return;
  all_outputs_.assign(outputs_.begin(), outputs_.end());
  for (const graph::Alias& a : s.graph.aliases) {
    if (a.output < static_cast<int>(s.num_visible)) continue;
    const std::size_t input = position_of_input(s.graph, a.input);
    if (input < arguments_.size()) all_outputs_.push_back(arguments_[input]);
  }
  outputs_ = all_outputs_;
}

bool has_more_operands(const Specialization& s) {
  return s.signature.outputs().size() > s.num_visible || !s.signature.globals().empty();
}

bool fits(const Specialization& s, const Given& given, Signature::Symbols& symbols) {
  if (!has_more_operands(s)) return s.signature.match(given.arguments, given.outputs, symbols);
  const Operands all(s, given);
  return s.signature.match(all.arguments(), all.outputs(), symbols);
}

bool serves(const Specialization& s, const Given& given, Signature::Symbols& symbols) {
  const Operands all(s, given);
  return s.signature.serves(all.arguments(), all.outputs(), symbols);
}

}  // namespace palladium::runtime
