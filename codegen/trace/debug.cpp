#include "palladium/debug.hpp"

#include <atomic>
#include <span>
#include <string_view>

#include "codegen/base/environment.hpp"
#include "codegen/graph/debug.hpp"
#include "codegen/trace/body.hpp"
#include "codegen/trace/debug.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium {
namespace trace {
namespace {

constexpr DebugKinds undecided = ~0u;
std::atomic<DebugKinds> recorded{undecided};

DebugKinds decide() {
  const std::string given = environment::checked(environment::Variable::debug);
  if (given.empty()) return debug_prints;
  const auto says = [&](std::string_view word) { return given.find(word) != given.npos; };
  return (says("print") ? debug_prints : 0) | (says("check") ? debug_checks : 0);
}

// Whether it is to be recorded. What becomes of it must not stay if that changes.
bool asks(Recorder& recorder, DebugKinds kind, const char* what, Location at) {
  if (recorder.graph.bodies.empty())
    throw CompileError(at, std::string(what) +
                               ": used in an index map; what it is to tell belongs "
                               "in the body");
  recorder.debug_asked |= kind;
  return (recorder.debug_recorded & kind) != 0;
}

void record(Recorder& recorder, Op op, std::vector<ValueId> args, const char* text, Location at) {
  Attr attr;
  attr.ints = {recorder.num_debug_sites++};
  attr.text = text;
  recorder.builder().add(op, std::move(args), std::move(attr), {}, at);
}

}  // namespace

DebugKinds debug_kinds() {
  const DebugKinds known = recorded.load(std::memory_order_relaxed);
  if (known != undecided) return known;
  DebugKinds expected = undecided;
  const DebugKinds decided = decide();
  const bool first = recorded.compare_exchange_strong(expected, decided, std::memory_order_relaxed);
  return first ? decided : expected;
}

}  // namespace trace

using trace::Recorder;

void detail::debug_print(const DebugFormat& format, const Operand* values, int count) {
  const Location at = format.at();
  Recorder& recorder = Recorder::current("debug_print", at);
  std::vector<trace::ValueId> args;
  std::vector<trace::Type> types;
  for (const Operand& o : std::span(values, static_cast<std::size_t>(count))) {
    args.push_back(recorder.typed(trace::resolve(o), "debug_print", at));
    types.push_back(recorder.graph[args.back()].type);
  }
  // Also where nothing is recorded: a mistake does not wait until somebody looks.
  if (const std::string problem = graph::format_problem(format.text(), types); !problem.empty())
    throw CompileError(at, "debug_print: " + problem);
  if (trace::asks(recorder, trace::debug_prints, "debug_print", at))
    trace::record(recorder, trace::Op::DebugPrint, std::move(args), format.text(), at);
}

void debug_check(const Operand& condition, const char* message) {
  const Location at = trace::location(condition);
  Recorder& recorder = Recorder::current("debug_check", at);
  const Value given = trace::resolve(condition);
  const trace::ValueId id = recorder.typed(given, "debug_check", at);
  const trace::Type type = recorder.graph[id].type;
  if (!type.dtype.is_bool())
    throw CompileError(
        at, "debug_check: expected a bool as the condition, given " + graph::to_string(type));
  if (!trace::asks(recorder, trace::debug_checks, "debug_check", at)) return;
  const trace::ValueId holds =
      type.is_scalar() ? id : recorder.id(all(Operand(recorder.value(id), at)), "debug_check", at);
  trace::record(recorder, trace::Op::DebugCheck, {holds}, message, at);
}

void enable_debug_checks(bool enable) {
  const trace::DebugKinds others = trace::debug_kinds() & ~trace::debug_checks;
  trace::recorded.store(others | (enable ? trace::debug_checks : 0), std::memory_order_relaxed);
}

bool debug_checks_enabled() { return (trace::debug_kinds() & trace::debug_checks) != 0; }

}  // namespace palladium
