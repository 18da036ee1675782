// Barriers, and copies that go on while threads work. A copy is made when it begins; who relies on
// it before it is known to be done is found by the search for races.
#include "codegen/base/format.hpp"
#include "palladium/error.hpp"
#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/semaphores.hpp"

namespace palladium::interpreter {
namespace {

// "scratch[0][2]"
std::string name_of(const Window& window, std::int64_t number) {
  const graph::Extents shape = window.ref_shape();
  std::string index;
  for (std::size_t d = shape.size(); d > 0; --d) {
    index = "[" + std::to_string(number % shape[d - 1]) + "]" + index;
    number /= shape[d - 1];
  }
  return window.name() + index;
}

Barrier& barrier_of(Frame& f, ValueId v, ValueId all, ValueId which) {
  const Window& window = *f.view(all).window;
  const graph::Type& type = f.type(all);
  const std::int64_t number = f.number(which), count = graph::element_count(type.shape);
  if (number < 0 || number >= count)
    throw CompileError(f.graph().location(v),
                       fmt::format("{}: barrier {} is out of bounds of {}, which are {}",
                                   graph::info(f.inst(v).op).name, number, window.name(), count));
  Barrier& b = (*f.barriers)[{&window, number}];
  if (b.name.empty()) {
    b.name = name_of(window, number);
    b.arrivals = type.arrivals;
  }
  return b;
}

}  // namespace

void eval_BarrierArrive(Frame& f, ValueId v, const Inst& inst) {
  Barrier& b = barrier_of(f, v, inst.args[0], inst.args[1]);
  const race::Snapshot known = f.races ? f.races->engine().release(f.agent) : race::Snapshot();
  f.semaphores->arrive(b, known, user_of(f, v, b.name));
}

void eval_BarrierWait(Frame& f, ValueId v, const Inst& inst) {
  Barrier& b = barrier_of(f, v, inst.args[0], inst.args[1]);
  f.semaphores->wait(b, f.position.thread, user_of(f, v, b.name));
}

void eval_BarrierTest(Frame& f, ValueId v, const Inst& inst) {
  Barrier& b = barrier_of(f, v, inst.args[0], inst.args[1]);
  *f.data<bool>(v) = f.semaphores->test(b, f.position.thread, user_of(f, v, b.name));
}

void eval_CopyToShared(Frame& f, ValueId v, const Inst& inst) {
  const graph::CopyView c = graph::CopyView::of(inst);
  Barrier& b = barrier_of(f, v, c.barrier, c.number);
  const race::Agent copy = f.copy_agents.bringing;
  if (f.races) f.races->engine().restart(copy, f.races->engine().release(f.agent));
  copy_elements(f, v, c.global, c.shared, copy, copy);
  const race::Snapshot done = f.races ? f.races->engine().released(copy) : race::Snapshot();
  f.semaphores->arrive(b, done, user_of(f, v, b.name));
}

void eval_CopyToGlobal(Frame& f, ValueId v, const Inst& inst) {
  const graph::CopyView c = graph::CopyView::of(inst);
  const CopyAgents& by = f.copy_agents;
  if (f.races)
    for (const race::Agent copy : {by.reading, by.writing})
      f.races->engine().restart(copy, f.races->engine().release(f.agent));
  copy_elements(f, v, c.shared, c.global, by.reading, by.writing);
  Sent sent;
  sent.at = f.graph().location(v);
  if (f.races) {
    sent.read = f.races->engine().released(by.reading);
    sent.written = f.races->engine().released(by.writing);
  }
  f.copies.open.push_back(sent);
}

void eval_CommitShared(Frame& f, ValueId, const Inst&) {
  if (f.races) f.races->engine().fence_async(f.agent);
}

void eval_CloseCopies(Frame& f, ValueId, const Inst&) {
  f.copies.closed.push_back(std::exchange(f.copies.open, {}));
}

void eval_AwaitCopies(Frame& f, ValueId, const Inst& inst) {
  const graph::AwaitView wait = graph::AwaitView::of(inst);
  CopyGroups& copies = f.copies;
  const std::size_t count = copies.closed.size(), pending = static_cast<std::size_t>(wait.pending);
  const std::size_t done = count > pending ? count - pending : 0;
  const auto learn = [&](std::size_t& known, bool written) {
    for (; known < done; ++known)
      for (const Sent& s : copies.closed[known])
        if (f.races) f.races->engine().acquire(f.agent, written ? s.written : s.read);
  };
  learn(copies.read, false);
  if (!wait.read_only) learn(copies.written, true);
}

}  // namespace palladium::interpreter
