// when and loop.
#include <algorithm>

#include "codegen/graph/limits.hpp"
#include "codegen/trace/recorder.hpp"
#include "palladium/control.hpp"
#include "palladium/error.hpp"

namespace palladium::detail {

using graph::ValueId;
using trace::Attr;
using trace::Literal;
using trace::Op;
using trace::Recorder;
using trace::RegionId;
using trace::Type;

struct Building::State {
  Recorder* recorder;
  Op op;
  const Bound* bound;  // marks the expression
  Location at;
  std::size_t depth;
  RegionId region{};
  std::vector<ValueId> args;
  Attr attr = {};
  ValueId done = graph::no_value;
};

bool Building::is_literal(const Bound& condition) {
  trace::expect_given(Access::value(condition), "when", Access::at(condition));
  return trace::is_literal(Access::value(condition));
}

bool Building::truth(const Bound& condition) {
  return trace::literal(Access::value(condition)).number() != 0;
}

Building::Building(const Bound& condition) {
  const Location at = Access::at(condition);
  Recorder& recorder = Recorder::current("when", at);
  Value c = Access::value(condition);
  const Type type = recorder.graph[recorder.id(c, "when", at)].type;
  if (!type.is_scalar())
    throw CompileError(
        at, "when: the condition must be a scalar, given " + graph::to_string(type) +
                "; reduce it (pl::max(c)), or choose per element by pl::where or a mask");
  graph::check_nesting(recorder.depth() - 1, Op::When, at);
  if (!type.dtype.is_bool()) c = trace::elementwise(Op::Ne, {c, Value(0)}, at);
  std::vector<ValueId> args{recorder.id(c, "when", at)};
  const RegionId region = recorder.graph.add_region();
  state_ =
      new State{&recorder, Op::When, &condition, at, recorder.depth(), region, std::move(args)};
  recorder.enter(region);
}

Building::Building(const Bound& lo, const Bound& hi, const LoopOptions& options, const Value* init,
                   int count) {
  const Location at = Access::at(lo);
  Recorder& recorder = Recorder::current("loop", at);
  if (options.step < 1)
    throw CompileError(at,
                       "loop: the step must be positive, given " + std::to_string(options.step));
  if (options.step > INT32_MAX)
    throw CompileError(at, "loop: the counter is an i32, which has no room for a step of " +
                               std::to_string(options.step));
  graph::check_nesting(recorder.depth() - 1, Op::Loop, at);
  if (options.unroll < 0)
    throw CompileError(
        at, "loop: unroll must not be negative, given " + std::to_string(options.unroll));
  std::vector<ValueId> args{
      recorder.i32_scalar(Access::value(lo), "loop", "the lower bound", at),
      recorder.i32_scalar(Access::value(hi), "loop", "the upper bound", Access::at(hi))};
  std::int64_t unroll = options.unroll;
  if (unroll != 1) {
    if (!trace::is_literal(Access::value(lo)) || !trace::is_literal(Access::value(hi)))
      throw CompileError(at, "loop: unroll needs bounds that are C++ numbers");
    const std::int64_t span =
        trace::literal(Access::value(hi)).integer - trace::literal(Access::value(lo)).integer;
    const std::int64_t trips =
        std::max<std::int64_t>(1, cdiv(std::max<std::int64_t>(span, 0), options.step));
    unroll = unroll == 0 ? trips : std::min(unroll, trips);
    if (unroll > graph::max_compiled)
      throw CompileError(at, "loop: unrolled " + std::to_string(unroll) + " times, at most " +
                                 std::to_string(graph::max_compiled) +
                                 " operations are compiled for a kernel");
  }
  std::vector<Type> carried;
  for (int i = 0; i < count; ++i) {
    args.push_back(recorder.typed(init[i], "loop", at));
    carried.push_back(recorder.graph[args.back()].type);
  }
  const RegionId region = recorder.graph.add_region();
  state_ = new State{&recorder,
                     Op::Loop,
                     &lo,
                     at,
                     recorder.depth(),
                     region,
                     std::move(args),
                     Attr{{options.step, unroll}, 0}};
  recorder.enter(region);
  graph::Builder builder = recorder.builder();
  builder.param(Type::value(i32), at);
  for (const Type& type : carried) builder.param(type, at);
}

Building::~Building() {
  if (state_->done == graph::no_value) state_->recorder->unwind(state_->depth);
  delete state_;
}

Value Building::index() const {
  return state_->recorder->value(state_->recorder->graph[state_->region].params[0]);
}

Value Building::carry(int i) const {
  const auto& params = state_->recorder->graph[state_->region].params;
  return state_->recorder->value(params[static_cast<std::size_t>(i) + 1]);
}

void Building::close(const Value* yielded, int count) {
  State& s = *state_;
  Recorder& recorder = *s.recorder;
  const char* what = graph::info(s.op).name;
  std::vector<ValueId> yields;
  for (int i = 0; i < count; ++i) {
    const Type carried = recorder.graph[s.args[static_cast<std::size_t>(i) + 2]].type;
    const ValueId v = recorder.typed(yielded[i], carried.dtype, what, s.at);
    const Type& type = recorder.graph[v].type;
    if (!(type == carried))
      throw CompileError(s.at, "loop: carry " + std::to_string(i) + " starts as " +
                                   graph::to_string(carried) + " but the body returns " +
                                   graph::to_string(type));
    yields.push_back(v);
  }
  recorder.builder().yield(std::move(yields));
  const trace::Touched touched = recorder.leave();

  const bool is_effect = count > 0 && !touched.writes.empty();
  std::vector<ValueId> operands = s.args;
  if (is_effect) {
    const auto& insts = recorder.graph[s.region].insts;
    operands.insert(operands.end(), insts.begin(), insts.end());
    recorder.check_effect(what, touched, operands, s.at);
  }
  s.done = recorder.builder().add(s.op, s.args, {s.region}, s.attr, s.at);
  recorder.note(touched);
  if (is_effect) recorder.mark_effect(what, touched, Access::mark(*s.bound), s.at);
}

Value Building::result(int i) const {
  Recorder& recorder = *state_->recorder;
  return recorder.value(
      recorder.builder().add(Op::Get, {state_->done}, Attr{{i}, 0}, {}, state_->at));
}

}  // namespace palladium::detail
