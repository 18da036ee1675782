// Reading, signalling and waiting for semaphores; delays.
#include "codegen/base/format.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/launch.hpp"
#include "runtime/interpreter/semaphores.hpp"

namespace palladium::interpreter {
namespace {

// "scratch[0][2]": a view of one element.
std::string name_of(const View& view) {
  const Window& window = *view.window;
  std::string index;
  std::int64_t rest = static_cast<std::int64_t>(view.offset) / window.dtype().bytes();
  const graph::Extents shape = window.ref_shape();
  for (std::size_t d = shape.size(); d > 0; --d) {
    index = "[" + std::to_string(rest % shape[d - 1]) + "]" + index;
    rest /= shape[d - 1];
  }
  return window.name() + index;
}

SemaphoreUser user_of(Frame& f, ValueId v, const View& view) {
  return user_of(f, v, name_of(view));
}

std::int32_t* count_of(const View& view) {
  return reinterpret_cast<std::int32_t*>(view.window->operand()->data + view.offset);
}

}  // namespace

SemaphoreUser user_of(Frame& f, ValueId v, std::string semaphore) {
  const Position& p = f.position;
  std::string thread = p.threads > 1 ? fmt::format("thread {} of program ", p.thread) : "program ";
  thread += f.launch->text_of_position(p);
  if (p.warp >= 0) thread = fmt::format("warp {} of {}", p.warp, thread);
  return {std::move(thread), std::move(semaphore), f.graph().location(v), f.races, f.agent, p.warp};
}

void eval_SemaphoreRead(Frame& f, ValueId v, const Inst& inst) {
  const View& view = f.view(inst.args[0]);
  f.set_number(v, f.semaphores->read(count_of(view), user_of(f, v, view)));
}

void eval_SemaphoreSignal(Frame& f, ValueId v, const Inst& inst) {
  const View& view = f.view(inst.args[0]);
  f.semaphores->signal(count_of(view), f.number(inst.args[1]), user_of(f, v, view));
}

void eval_SemaphoreWait(Frame& f, ValueId v, const Inst& inst) {
  const View& view = f.view(inst.args[0]);
  f.semaphores->wait(count_of(view), f.number(inst.args[1]), graph::waits_by_taking(inst),
                     user_of(f, v, view));
}

// Time does not pass here: others go on, as they may meanwhile.
void eval_Delay(Frame& f, ValueId, const Inst& inst) {
  if (f.number(inst.args[0]) > 0) f.scheduler->yield();
}

}  // namespace palladium::interpreter
