// Barriers, and copies that go on while threads work. A copy is made when it begins; who relies on
// it before it is known to be done is found by the search for races.
#include <algorithm>
#include <utility>

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

Barrier& barrier_of(Frame& f, ValueId v, ValueId all, ValueId which, Frame& in) {
  const Window& window = *in.view(all).window;
  const graph::Type& type = f.type(all);
  const std::int64_t number = f.number(which), count = graph::element_count(type.shape);
  if (number < 0 || number >= count)
    throw CompileError(f.graph().location(v),
                       fmt::format("{}: barrier {} is out of bounds of {}, which are {}",
                                   graph::info(f.inst(v).op).name, number, window.name(), count));
  Barrier& b = (*f.barriers)[{&window, number}];
  if (b.name.empty()) {
    b.name = name_of(window, number);
    if (f.cluster.size() > 1)
      b.name += fmt::format(" of block {}", std::ranges::find(f.cluster, &in) - f.cluster.begin());
    b.arrivals = type.arrivals;
  }
  return b;
}
Barrier& barrier_of(Frame& f, ValueId v, ValueId all, ValueId which) {
  return barrier_of(f, v, all, which, f);
}

// Threads have waited for those in front of it once more than for it, and for those behind it as
// many times.
void expect_turn(Frame& f, ValueId v, Barrier& b, const Inst& wait) {
  const SemaphoreUser user = user_of(f, v, b.name);
  const auto waited = [&](const Barrier& of) {
    return Semaphores::waited(of, f.position.thread, user);
  };
  const Window& window = *f.view(wait.args[0]).window;
  const std::int64_t own = f.number(wait.args[1]),
                     count = graph::element_count(f.type(wait.args[0]).shape);
  for (std::int64_t other = 0; other < count; ++other) {
    const auto found = f.barriers->find({&window, other});
    const std::int64_t phases = found == f.barriers->end() ? 0 : waited(found->second);
    if (phases != waited(b) + (other < own ? 1 : 0))
      throw InternalError(
          fmt::format("barrier_wait in turn: {} is not the one that is next", b.name));
  }
}

}  // namespace

Frame& in_block(Frame& f, ValueId by, ValueId rank) {
  if (rank == graph::no_value) return f;
  const std::int32_t block = f.number(rank);
  if (block < 0 || std::cmp_greater_equal(block, f.cluster.size()))
    throw CompileError(f.graph().location(by),
                       fmt::format("{}: there is no block {} in a cluster of {}",
                                   graph::info(f.inst(by).op).name, block, f.cluster.size()));
  return *f.cluster[static_cast<std::size_t>(block)];
}

void eval_RefPart(Frame& f, ValueId v, const Inst& inst) {
  View& view = f.view(v);
  const View& bytes = f.view(inst.args[0]);
  view.start_from(bytes, inst.type.shape);
  view.dtype = inst.type.dtype;
  view.bytes = inst.type.dtype.bytes();
  view.offset = bytes.offset + graph::offset_of_part(inst);
  view.strides = dense_strides(inst.type.shape, view.bytes);
}

void eval_RefPeer(Frame& f, ValueId v, const Inst& inst) {
  View& view = f.view(v);
  view = f.view(inst.args[0]);
  view.shape = inst.type.shape;
  view.window = in_block(f, v, inst.args[1]).view(f.graph().root(v)).window;
}

void eval_BarrierArrive(Frame& f, ValueId v, const Inst& inst) {
  Frame& in = in_block(f, v, graph::block_of_arrival(inst));
  Barrier& b = barrier_of(f, v, inst.args[0], inst.args[1], in);
  const race::Snapshot known = f.races ? f.races->engine().release(f.agent) : race::Snapshot();
  f.semaphores->arrive(b, known, user_of(f, v, b.name));
}

void eval_BarrierWait(Frame& f, ValueId v, const Inst& inst) {
  Barrier& b = barrier_of(f, v, inst.args[0], inst.args[1]);
  if (graph::waits_in_turn(inst)) expect_turn(f, v, b, inst);
  f.semaphores->wait(b, f.position.thread, user_of(f, v, b.name));
}

void eval_BarrierTest(Frame& f, ValueId v, const Inst& inst) {
  Barrier& b = barrier_of(f, v, inst.args[0], inst.args[1]);
  *f.data<bool>(v) = f.semaphores->test(b, f.position.thread, user_of(f, v, b.name));
}

namespace {

void bring_elements(Frame& f, ValueId v, const graph::CopyView& c, View& from, View& to,
                    race::Agent copy) {
  if (c.beyond == graph::Beyond::none) return copy_elements(f, v, from, to, copy, copy);
  constexpr std::byte zero{0}, anything{0xff};
  fill_elements(f, v, from, to, copy, c.beyond == graph::Beyond::zeros ? zero : anything);
}

// A copy that several blocks say alike: each brings its part to all of them, and tells their
// barriers.
class SharedCopy {
 public:
  SharedCopy(Frame& f, ValueId v, const graph::CopyView& copy)
      : f_(f),
        v_(v),
        copy_(copy),
        blocks_(graph::blocks_along(f.graph(), copy.axes)),
        divided_(graph::divided_among(f.type(copy.shared).shape, blocks_)),
        part_(f.type(copy.shared)) {
    if (has_parts()) part_.shape[static_cast<std::size_t>(divided_)] /= blocks_;
  }

  bool has_parts() const { return blocks_ > 1; }

  void run() {
    const race::Agent agent = f_.copy_agents.bringing;
    View from = part(f_.view(copy_.global)), to = part(f_.view(copy_.shared));
    Barrier& own = barrier_of(f_, v_, copy_.barrier, copy_.number);
    own.coming += blocks_;
    f_.semaphores->arrive(own, {}, user_of(f_, v_, own.name));
    for (Frame* const block : f_.cluster) {
      if (!shares(*block)) continue;
      to.window = block->view(f_.graph().root(copy_.shared)).window;
      bring_elements(f_, v_, copy_, from, to, agent);
      Barrier& b = barrier_of(f_, v_, copy_.barrier, copy_.number, *block);
      const race::Snapshot done = f_.races ? f_.races->engine().released(agent) : race::Snapshot();
      f_.semaphores->bring(b, done, user_of(f_, v_, b.name));
    }
  }

 private:
  bool is_along(std::size_t axis) const { return (copy_.axes >> axis & 1) != 0; }

  // Blocks that differ from this one along these axes alone.
  bool shares(const Frame& block) const {
    bool found = true;
    for (std::size_t axis = 0; axis < f_.position.cluster.size(); ++axis)
      found =
          found && (is_along(axis) || block.position.cluster[axis] == f_.position.cluster[axis]);
    return found;
  }

  std::int64_t number() const {
    std::int64_t n = 0;
    for (std::size_t axis = 0; axis < f_.position.cluster.size(); ++axis)
      if (is_along(axis)) n = n * f_.position.cluster_sizes[axis] + f_.position.cluster[axis];
    return n;
  }

  View part(const View& all) {
    graph::Subscript chosen;
    for (const std::int64_t extent : all.shape) chosen.dims.push_back({.size = extent});
    graph::SubscriptDim& d = chosen.dims[static_cast<std::size_t>(divided_)];
    d.size /= blocks_;
    d.start = number() * d.size;
    View result;
    subscript(result, all, v_, part_, chosen, {});
    return result;
  }

  Frame& f_;
  const ValueId v_;
  const graph::CopyView copy_;
  const std::int64_t blocks_;
  const int divided_;
  graph::Type part_;
};

}  // namespace

void eval_CopyToShared(Frame& f, ValueId v, const Inst& inst) {
  const graph::CopyView c = graph::CopyView::of(inst);
  const race::Agent copy = f.copy_agents.bringing;
  if (f.races) f.races->engine().restart(copy, f.races->engine().release(f.agent));
  if (SharedCopy shared(f, v, c); shared.has_parts()) return shared.run();
  Barrier& b = barrier_of(f, v, c.barrier, c.number);
  bring_elements(f, v, c, f.view(c.global), f.view(c.shared), copy);
  const race::Snapshot done = f.races ? f.races->engine().released(copy) : race::Snapshot();
  f.semaphores->arrive(b, done, user_of(f, v, b.name));
}

namespace {

// move(reading, writing) does what the copy does, as these agents.
template <class F>
void send(Frame& f, ValueId v, F move) {
  const CopyAgents& by = f.copy_agents;
  if (f.races)
    for (const race::Agent copy : {by.reading, by.writing})
      f.races->engine().restart(copy, f.races->engine().release(f.agent));
  move(by.reading, by.writing);
  Sent sent;
  sent.at = f.graph().location(v);
  if (f.races) {
    sent.read = f.races->engine().released(by.reading);
    sent.written = f.races->engine().released(by.writing);
  }
  f.copies.open.push_back(sent);
}

}  // namespace

void eval_CopyToGlobal(Frame& f, ValueId v, const Inst& inst) {
  const graph::CopyView c = graph::CopyView::of(inst);
  send(f, v, [&](race::Agent reading, race::Agent writing) {
    View &from = f.view(c.shared), &to = f.view(c.global);
    if (c.beyond == graph::Beyond::none)
      copy_elements(f, v, from, to, reading, writing);
    else
      clip_elements(f, v, from, to, reading, writing);
  });
}

void eval_ReduceToGlobal(Frame& f, ValueId v, const Inst& inst) {
  const graph::CopyView c = graph::CopyView::of(inst);
  send(f, v, [&](race::Agent reading, race::Agent writing) {
    reduce_elements(f, v, f.view(c.shared), f.view(c.global), reading, writing);
  });
}

// By threads, through the way of their own accesses.
void eval_FetchToShared(Frame& f, ValueId v, const Inst& inst) {
  const graph::CopyView c = graph::CopyView::of(inst);
  const race::Agent copy = f.copy_agents.bringing;
  if (f.races) f.races->engine().restart(copy, f.races->engine().release(f.agent));
  copy_elements(f, v, f.view(c.global), f.view(c.shared), copy, copy, race::Proxy::generic);
  Sent sent;
  sent.at = f.graph().location(v);
  if (f.races) sent.written = f.races->engine().released(copy);
  f.fetches.push_back(sent);
}

void eval_AwaitFetches(Frame& f, ValueId, const Inst& inst) {
  const auto left = static_cast<std::size_t>(graph::fetches_left(inst));
  for (; f.fetched + left < f.fetches.size(); ++f.fetched)
    if (f.races) f.races->engine().acquire(f.agent, f.fetches[f.fetched].written);
}

// It changes nothing.
void eval_Prefetch(Frame&, ValueId, const Inst&) {}

// What its copies without a barrier have brought the thread has stored itself.
void eval_CommitShared(Frame& f, ValueId, const Inst&) {
  if (f.races == nullptr) return;
  race::Engine& engine = f.races->engine();
  engine.fence_async(f.agent);
  const auto known = f.fetches.begin() + static_cast<std::ptrdiff_t>(f.fetched);
  for (auto s = f.fetches.begin(); s != known; ++s)
    engine.acquire(f.agent, engine.fenced(s->written, race::only(race::Space::shared)));
  f.fetches.erase(f.fetches.begin(), known);
  f.fetched = 0;
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

// Registers are without number here, and launches one behind the other.
void eval_SetMaxRegisters(Frame&, ValueId, const Inst&) {}
void eval_GridDependencyWait(Frame&, ValueId, const Inst&) {}
void eval_LaunchDependents(Frame&, ValueId, const Inst&) {}

}  // namespace palladium::interpreter
