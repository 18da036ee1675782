// Semaphores, delays, and memory of the launch.
#include "palladium/semaphore.hpp"

#include <string>
#include <string_view>

#include "codegen/trace/body.hpp"
#include "codegen/trace/tracer.hpp"
#include "palladium/error.hpp"

namespace palladium {

using detail::Access;
using trace::Attr;
using trace::Op;
using trace::Recorder;
using trace::Touched;
using trace::ValueId;

namespace {

ValueId counted(Recorder& recorder, const Operand& operand, const char* what, const char* role) {
  const Location at = trace::location(operand);
  return recorder.i32_scalar(trace::resolve(operand), what, role, at);
}

// The number of a graph::Hearing.
void add_scope(std::vector<std::int64_t>& ints, const char* scope, const char* what, Location at) {
  if (scope == nullptr) return;
  std::int64_t number = 0;
  for (const char* const known : {"cta", "cluster", "gpu", "sys"}) {
    if (std::string_view(scope) == known) return ints.push_back(number);
    ++number;
  }
  throw CompileError(at, std::string(what) + ": there is no memory_scope '" + scope +
                             "', but cta, cluster, gpu and sys");
}

}  // namespace

Effect semaphore_read(const Ref& semaphore, const detail::Expression& expression) {
  const Location at = Access::at(expression);
  Recorder& recorder = Recorder::current("semaphore_read", at);
  const ValueId ref = recorder.id(semaphore, "semaphore_read", at);
  const int memory = recorder.memory_of(ref);
  const Touched touched{{memory}, {memory}};
  const ValueId operands[] = {ref};
  recorder.check_effect("semaphore_read", touched, operands, at);
  const ValueId count = recorder.builder().add(Op::SemaphoreRead, {ref}, Attr{}, {}, at);
  recorder.note(touched);
  return Access::effect(recorder.value(count), [&](detail::Mark& mark) {
    recorder.mark_effect("semaphore_read", touched, mark, at);
  });
}

void semaphore_signal(const Ref& semaphore, const Operand& inc, SemaphoreSignalOptions options) {
  const Location at = trace::location(inc);
  Recorder& recorder = Recorder::current("semaphore_signal", at);
  const ValueId ref = recorder.id(semaphore, "semaphore_signal", at);
  const ValueId by = counted(recorder, inc, "semaphore_signal", "the increment");
  Attr who;
  add_scope(who.ints, options.memory_scope, "semaphore_signal", at);
  recorder.builder().add(Op::SemaphoreSignal, {ref, by}, std::move(who), {}, at);
  recorder.note_write(ref);
}

void semaphore_wait(const Ref& semaphore, const Operand& value, SemaphoreWaitOptions options) {
  const Location at = trace::location(value);
  Recorder& recorder = Recorder::current("semaphore_wait", at);
  const ValueId ref = recorder.id(semaphore, "semaphore_wait", at);
  const ValueId least = counted(recorder, value, "semaphore_wait", "what is waited for");
  Attr how{{options.decrement}, 0};
  add_scope(how.ints, options.memory_scope, "semaphore_wait", at);
  recorder.builder().add(Op::SemaphoreWait, {ref, least}, std::move(how), {}, at);
  recorder.note_write(ref);
}

void delay(const Operand& nanos) {
  const Location at = trace::location(nanos);
  Recorder& recorder = Recorder::current("delay", at);
  recorder.builder().add(Op::Delay, {counted(recorder, nanos, "delay", "the nanoseconds")}, Attr{},
                         {}, at);
}

Ref get_global(const Scoped& what, Location at) {
  Recorder& recorder = Recorder::current("get_global", at);
  if (!recorder.may_capture)
    throw CompileError(at, "get_global: kernel '" + recorder.graph.name +
                               "' is no pl::kernel, whose bodies alone can ask for memory of the "
                               "launch");
  if (what.space != Space::gmem && what.space != Space::semaphore)
    throw CompileError(at, std::string("get_global: memory of the launch is plgpu::GMEM or "
                                       "plgpu::SemaphoreType::REGULAR, given ") +
                               to_string(what.space));
  ShapeDtype type;
  Scoped as_scratch = what;
  as_scratch.space = Space::smem;
  for (Dim& d : as_scratch.type.shape)
    if (what.space == Space::gmem && !d.is_static()) d = 1;  // of a call's size
  if (const std::string problem = trace::scratch_problem(as_scratch, "it", type); !problem.empty())
    throw CompileError(at, "get_global: " + problem);
  for (int d = 0; d < type.shape.rank(); ++d)
    if (what.space == Space::gmem) type.shape[d] = what.type.shape[d];
  const std::string origin = "global[" + std::to_string(recorder.globals.size()) + "]";
  recorder.globals.push_back({type, what.space, false, {}, origin, at});
  return recorder.ref(recorder.global(recorder.globals.size() - 1));
}

void trace::Tracer::check_memory_scopes(const graph::Graph& g) {
  using graph::Counting;
  using graph::Hearing;
  for (std::uint32_t v = 0; v < g.insts.size(); ++v) {
    const graph::Inst& i = g.insts[v];
    if (!graph::is_semaphore_op(i.op)) continue;
    const Counting by = graph::counting(g, i);
    const Hearing least = by == Counting::block     ? Hearing::block
                          : by == Counting::cluster ? Hearing::cluster
                                                    : Hearing::gpu;
    if (graph::hearing(g, i) < least)
      throw CompileError(
          g.location(ValueId{v}),
          std::string(graph::info(i.op).name) + ": memory_scope '" +
              (graph::hearing(g, i) == Hearing::block ? "cta" : "cluster") +
              "' leaves out blocks that count with this semaphore, which is one for all of the " +
              (by == Counting::cluster ? "cluster" : "launch"));
  }
}

}  // namespace palladium
