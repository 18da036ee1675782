#include "codegen/trace/body.hpp"

#include "codegen/trace/accumulators.hpp"

#include <algorithm>

#include "palladium/error.hpp"

namespace palladium::trace {
namespace {

using detail::Access;
using detail::Parameter;

class Operands final : public detail::Operands {
 public:
  Operands(Recorder& recorder, const std::vector<BodyOperand>& operands,
           const std::vector<std::string>& scratch_names, std::string blame, std::string order,
           Location at)
      : blame_(std::move(blame)),
        order_(std::move(order)),
        operands_(operands),
        scratch_names_(scratch_names),
        at_(at) {
    for (const BodyOperand& o : operands) {
      values_.push_back(o.is_scalar ? recorder.value(o.param) : Value());
      refs_.push_back(o.is_scalar ? Access::ref(0, 0) : recorder.ref(o.param));
    }
  }

  void match(const Parameter* parameters, int count, int* position) override {
    const int num_scratch = static_cast<int>(scratch_names_.size());
    int fixed = 0, rests = 0;
    bool named_scratch = false;
    for (int i = 0; i < count; ++i) {
      if (named_scratch) fail("pl::Scratch must be the last parameter");
      if (parameters[i].kind == Parameter::Kind::rest) ++rests;
      if (parameters[i].kind == Parameter::Kind::scratch) named_scratch = true;
      fixed += parameters[i].count;
    }
    if (rests > 1) fail("only one parameter can be pl::Refs");
    const int have = size() - (named_scratch ? num_scratch : 0);
    if (have < fixed || (have > fixed && rests == 0))
      fail("the function takes " + std::string(rests ? "at least " : "") + counted(fixed) +
           " but " + std::to_string(have) + (have == 1 ? " is" : " are") + " given: " + list(have) +
           order_);

    rest_ = have - fixed;
    int next = 0;
    for (int i = 0; i < count; ++i) {
      position[i] = next;
      const bool wants_value = parameters[i].kind == Parameter::Kind::value;
      const int taken = parameters[i].kind == Parameter::Kind::rest      ? rest_
                        : parameters[i].kind == Parameter::Kind::scratch ? num_scratch
                                                                         : parameters[i].count;
      for (; next < position[i] + taken; ++next) {
        const BodyOperand& o = operands_[static_cast<std::size_t>(next)];
        if (o.is_scalar && !wants_value)
          fail(o.origin + " is a scalar: parameter " + std::to_string(i) +
               " must be a pl::Value (never inside a struct), and no Ref");
        if (!o.is_scalar && wants_value)
          fail(o.origin + " is an array: parameter " + std::to_string(i) +
               " must be a pl::Ref; pl::Value takes a scalar argument");
      }
    }
  }

  const Ref* refs(int position) override { return refs_.data() + position; }
  Value value(int position) override { return values_[static_cast<std::size_t>(position)]; }
  Refs rest(int position) override { return {refs_.data() + position, rest_}; }
  Scratch scratch() override {
    return Access::scratch(refs_.data() + (operands_.size() - scratch_names_.size()),
                           &scratch_names_);
  }
  int size() override { return static_cast<int>(operands_.size()); }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw CompileError(at_, blame_ + what); }
  static std::string counted(int n) {
    return std::to_string(n) + (n == 1 ? " operand" : " operands");
  }
  std::string list(int count) const {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += (i ? ", " : "") + operands_[static_cast<std::size_t>(i)].origin;
    return text.empty() ? "none" : text;
  }

  std::string blame_, order_;
  const std::vector<BodyOperand>& operands_;
  const std::vector<std::string>& scratch_names_;
  Location at_;
  std::vector<Ref> refs_;
  std::vector<Value> values_;
  int rest_ = 0;
};

}  // namespace

void call_body(const Body& body, Recorder& recorder, const std::vector<BodyOperand>& operands,
               const std::vector<std::string>& scratch_names) {
  const bool has_outputs = std::any_of(operands.begin(), operands.end(), [](const BodyOperand& o) {
    return o.origin.starts_with("outputs[");
  });
  Operands given(recorder, operands, scratch_names, "kernel '" + recorder.graph.name + "': ",
                 std::string(" (inputs, then outputs, then scratch)") +
                     (has_outputs ? "" : "; the options name no outputs: .out_type"),
                 body.at());
  Access::function(body)->call(given);
}

std::unique_ptr<detail::Operands> operands_of(Recorder& recorder,
                                              const std::vector<BodyOperand>& operands,
                                              const std::vector<std::string>& scratch_names,
                                              std::string blame, std::string order, Location at) {
  return std::make_unique<Operands>(recorder, operands, scratch_names, std::move(blame),
                                    std::move(order), at);
}

namespace {

std::string barrier_problem(const Scoped& scratch, const std::string& who, ShapeDtype& type) {
  constexpr std::int64_t most_barriers = 32, most_arrivals = (1 << 20) - 1;
  if (scratch.arrivals < 1 || scratch.arrivals > most_arrivals)
    return who + " is a barrier with num_arrivals = " + std::to_string(scratch.arrivals) +
           "; 1 to " + std::to_string(most_arrivals) + " are possible";
  type = {{}, scratch.type.dtype};
  std::int64_t count = 1;
  for (const Dim& d : scratch.type.shape) {
    const std::int64_t n = d.value();
    if (n < 1 || n > most_barriers || (count *= n) > most_barriers)
      return who + " is of " + to_string(scratch.type.shape) + " barriers; 1 to " +
             std::to_string(most_barriers) + " are possible";
    type.shape.push_back(n);
  }
  return "";
}

}  // namespace

std::string scratch_problem(const Scoped& scratch, const std::string& who, ShapeDtype& type) {
  if (scratch.space == Space::barrier) return barrier_problem(scratch, who, type);
  if (scratch.space != Space::smem && !graph::is_own(scratch.space))
    return who + " must be in SMEM or REGS";
  if (scratch.space == Space::accumulator)
    if (std::string problem = accumulator_problem(scratch.type); !problem.empty())
      return who + " " + problem;
  if (scratch.type.dtype == DType()) return who + " has no dtype";
  type = {{}, scratch.type.dtype};
  std::int64_t left = INT32_MAX;  // elements: what a value can have
  for (const Dim& d : scratch.type.shape) {
    const std::int64_t n = d.value();
    if (n < 1)
      return who + " must have at least one element in each dimension, given " +
             to_string(scratch.type);
    if ((left /= n) == 0)
      return who + " is " + to_string(scratch.type) + "; at most " + std::to_string(INT32_MAX) +
             " elements are possible";
    type.shape.push_back(n);
  }
  if (type.dtype.is_packed() && (type.shape.rank() == 0 || type.shape[-1].value() % 2 != 0))
    return who + " is " + to_string(type) +
           ", two elements of which share a byte: its last extent is even";
  const std::string problem = transform_problem(scratch);
  return problem.empty() ? "" : who + " " + problem;
}

}  // namespace palladium::trace

namespace palladium {

void detail::no_function(const char* what, Location at) {
  throw CompileError(at, std::string(what) + " function: the pointer is null");
}

Ref Scratch::operator[](Name name) const {
  if (!name.text) throw CompileError(name.at, "scratch: the name is a null pointer");
  std::string list;
  for (std::size_t i = 0; i < names_->size(); ++i) {
    const std::string& own = (*names_)[i];
    if (own == name.text) return refs_[i];
    if (!own.empty()) list += (list.empty() ? "'" : ", '") + own + "'";
  }
  throw CompileError(name.at,
                     "no scratch is named '" + std::string(name.text) + "'; " +
                         (list.empty() ? "none has a name: .scratch_types = {{\"acc\", ...}}"
                                       : "there are: " + list));
}

}  // namespace palladium
