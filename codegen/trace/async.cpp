// Barriers, and copies that go on while threads work.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/trace/accumulators.hpp"
#include "codegen/trace/body.hpp"
#include "codegen/trace/clusters.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu/barrier.hpp"
#include "palladium/gpu/cluster.hpp"
#include "palladium/gpu/copy.hpp"
#include "palladium/ops.hpp"

namespace palladium {

trace::Recorder& trace::recorder_by_hand(const char* what, Location at, By by) {
  Recorder& recorder = Recorder::current(what, at);
  if (!recorder.may_capture)
    throw CompileError(at,
                       std::string(what) + ": kernel '" + recorder.graph.name +
                           "' is no pl::kernel, whose threads alone wait for each other and for "
                           "copies by hand");
  if (recorder.warp_axis && by == By::threads)
    throw CompileError(
        at, std::string(what) + ": in a WarpMesh; it is done by a whole Pallas thread, outside");
  return recorder;
}

namespace {

using detail::Access;
using trace::Attr;
using trace::By;
using trace::Op;
using trace::Recorder;
using trace::recorder_by_hand;
using trace::Touched;
using trace::ValueId;

/// Which of the barriers of a root Ref.
struct OneBarrier {
  ValueId all = graph::no_value, number = graph::no_value;
};

// A number, and what is added to it in the kernel.
class Number {
 public:
  Number(Recorder& recorder, Location at) : recorder_(recorder), at_(at) {}

  void add(std::int64_t constant) { constant_ += constant; }
  void add(ValueId index, std::int64_t factor) {
    const ValueId product = factor == 1 ? index : apply(Op::Mul, index, i32_of(factor));
    sum_ = sum_ == graph::no_value ? product : apply(Op::Add, sum_, product);
  }
  ValueId value() {
    if (sum_ == graph::no_value) return i32_of(constant_);
    return constant_ == 0 ? sum_ : apply(Op::Add, sum_, i32_of(constant_));
  }

 private:
  ValueId i32_of(std::int64_t n) { return recorder_.builder().constant(i32, n, {}, at_); }
  ValueId apply(Op op, ValueId a, ValueId b) {
    return recorder_.builder().add(op, {a, b}, Attr{}, {}, at_);
  }

  Recorder& recorder_;
  Location at_;
  std::int64_t constant_ = 0;
  ValueId sum_ = graph::no_value;
};

OneBarrier one_barrier(Recorder& recorder, const Ref& barrier, const char* what, Location at) {
  const graph::Graph& g = recorder.graph;
  ValueId view = recorder.id(barrier, what, at);
  const trace::Type& type = g[view].type;
  const auto fail = [&](const std::string& problem) {
    throw CompileError(at, std::string(what) + ": " + problem);
  };
  if (type.space != Space::barrier)
    fail("expected a barrier, given " + graph::to_string(type) +
         "; barriers are scratch, plgpu::Barrier()");
  if (graph::element_count(type.shape) != 1)
    fail("operation is only valid for a single barrier, given " + graph::to_string(type) +
         "; choose one: b.at(i)");
  std::vector<ValueId> views;
  for (; g[view].op != Op::Param; view = g[view].args[0]) {
    if (g[view].op != Op::At || g.chooses(view))
      fail("a barrier is chosen by indices and slices alone");
    views.push_back(view);
  }
  // How far apart neighbours along a dimension are, of all, and then of what is chosen.
  graph::Extents distances(g[view].type.shape.size(), 1);
  for (std::size_t d = distances.size(); d-- > 1;)
    distances[d - 1] = distances[d] * g[view].type.shape[d];
  Number number(recorder, at);
  for (auto chosen = views.rbegin(); chosen != views.rend(); ++chosen) {
    const std::vector<ValueId> args = g[*chosen].args;  // what is added moves the graph's own
    graph::Extents inner;
    std::size_t next = 1, dimension = 0;
    for (const graph::SubscriptDim& d : graph::Subscript::of(g[*chosen]).dims) {
      const std::int64_t distance = distances[dimension++];
      if (d.dynamic)
        number.add(args[next++], distance);
      else
        number.add(d.start * distance);
      if (d.is_slice) inner.push_back(distance * d.stride);
    }
    distances = std::move(inner);
  }
  return {view, number.value()};
}

void record(Recorder& recorder, Op op, std::vector<ValueId> args, Attr attr, Location at) {
  recorder.builder().add(op, std::move(args), std::move(attr), {}, at);
}

void record_barrier(Op op, const Ref& barrier, const char* what, Location at, Attr attr = {}) {
  Recorder& recorder = recorder_by_hand(what, at, By::warps_too);
  const OneBarrier one = one_barrier(recorder, barrier, what, at);
  record(recorder, op, {one.all, one.number}, std::move(attr), at);
  recorder.note_write(one.all);
}

// f(), if the scalar holds; else g().
template <class F, class G>
void where(const MaybeValue& predicate, const F& f, const G& g) {
  if (!Access::given(predicate)) return f();
  cond(Access::value(predicate), f, g);
}

// The number of a graph::Update.
std::int64_t reduction(std::string_view name, const char* what, const char* option, Location at) {
  using Named = std::pair<const char*, graph::Update>;
  std::string all;
  for (const auto& [known, update] :
       {Named{"add", graph::Update::add}, Named{"min", graph::Update::min},
        Named{"max", graph::Update::max}, Named{"and", graph::Update::bit_and},
        Named{"or", graph::Update::bit_or}, Named{"xor", graph::Update::bit_xor},
        Named{"inc", graph::Update::increment}, Named{"dec", graph::Update::decrement}}) {
    if (name == known) return static_cast<std::int64_t>(update);
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  throw CompileError(at, std::string(what) + ": there is no " + option + " '" + std::string(name) +
                             "', but " + all);
}

graph::Beyond beyond_of(gpu::OOBFillMode mode) {
  switch (mode) {
  case gpu::OOBFillMode::UNDEFINED: return graph::Beyond::anything;
  case gpu::OOBFillMode::ZEROS: return graph::Beyond::zeros;
  default: return graph::Beyond::none;
  }
}

// Of what is partitioned along a dimension the part of the calling block.
Ref own_part(Recorder& recorder, const Ref& src, const Ref& dst,
             const gpu::CopyGmemToSmemOptions& options, Location at) {
  const Shape all = src.shape(at), part = dst.shape(at);
  const std::int64_t blocks = graph::blocks_along(
      recorder.graph,
      trace::cluster_axes(recorder, options.collective_axes, "copy_gmem_to_smem", at));
  const int d = *options.partitioned;
  const auto fail = [&](const std::string& what) {
    throw CompileError(at, "copy_gmem_to_smem: " + what);
  };
  if (options.collective_axes.empty())
    fail("partitioned is along the blocks of collective_axes, which are not given");
  if (d < 0 || d >= all.rank() || all.rank() != part.rank())
    fail("there is no dimension " + std::to_string(d) + " of a source " + to_string(all) +
         " and a destination " + to_string(part) + " to be partitioned");
  Shape expected = part;
  expected[d] = part[d].value() * blocks;
  if (!(expected == all))
    fail("expected source shape to be " + to_string(expected) + ", given " + to_string(all) +
         ": dimension " + std::to_string(d) + " is partitioned over " + std::to_string(blocks) +
         " blocks");
  Value number = 0;
  for (const std::string& name : options.collective_axes)
    number = number * axis_size(name.c_str(), at) + axis_index(name.c_str(), at);
  graph::Subscript chosen;
  for (int i = 0; i < all.rank(); ++i) chosen.dims.push_back({.size = part[i].value()});
  chosen.dims[static_cast<std::size_t>(d)].dynamic = true;
  const Value begin = number * Value(part[d].value());
  return recorder.ref(
      recorder.builder().add(Op::At,
                             {recorder.id(src, "copy_gmem_to_smem", at),
                              recorder.i32_scalar(begin, "copy_gmem_to_smem", "the part", at)},
                             Attr{chosen.encode(), 0}, {}, at));
}

}  // namespace

void gpu::barrier_arrive(const Ref& barrier, Location at) {
  const char* const what = "barrier_arrive";
  Recorder& recorder = recorder_by_hand(what, at, By::warps_too);
  const OneBarrier one = one_barrier(recorder, barrier, what, at);
  record(recorder, Op::BarrierArrive, {one.all, one.number}, {}, at);
  for (const auto& [root, groups] : recorder.cluster_barriers)
    if (root == one.all)
      for (const ValueId rank : trace::ranks_told(recorder, groups, at))
        record(recorder, Op::BarrierArrive, {one.all, one.number, rank}, {}, at);
  recorder.note_write(one.all);
}

void gpu::barrier_wait(const Ref& barrier, Location at) {
  record_barrier(Op::BarrierWait, barrier, "barrier_wait", at);
}

void trace::wait_in_turn(const Ref& barrier, const char* what, Location at) {
  record_barrier(Op::BarrierWait, barrier, what, at, {{graph::wait_in_turn}});
}

Effect gpu::barrier_test(const Ref& barrier, const detail::Expression& expression) {
  const Location at = Access::at(expression);
  Recorder& recorder = recorder_by_hand("barrier_test", at, By::warps_too);
  const OneBarrier one = one_barrier(recorder, barrier, "barrier_test", at);
  const int memory = recorder.memory_of(one.all);
  const Touched touched{{memory}, {memory}};
  const ValueId operands[] = {one.number};
  recorder.check_effect("barrier_test", touched, operands, at);
  const ValueId done =
      recorder.builder().add(Op::BarrierTest, {one.all, one.number}, Attr{}, {}, at);
  recorder.note(touched);
  return Access::effect(recorder.value(done), [&](detail::Mark& mark) {
    recorder.mark_effect("barrier_test", touched, mark, at);
  });
}

void gpu::async_store_smem(const Operand& value, const Ref& ref, const Ref& barrier,
                           AsyncStoreOptions options) {
  const char* const what = "async_store_smem";
  const Location at = trace::location(value);
  const Value stored = trace::resolve(value);
  Recorder& recorder = recorder_by_hand(what, at);
  const bool names = options.cluster_dim != nullptr;
  if (names != Access::given(options.cluster_idx))
    throw CompileError(at, "async_store_smem: cluster_idx and cluster_dim go together");
  const Ref there =
      names ? cluster_ref(ref, {{options.cluster_dim, Access::value(options.cluster_idx)}}, at)
            : ref;
  const ValueId view = recorder.id(there, what, at), peer = recorder.graph.peer(view);
  if (peer == graph::no_value)
    throw CompileError(at, "async_store_smem: expected memory of a block of the cluster, given " +
                               graph::to_string(recorder.graph[view].type) +
                               ": plgpu::cluster_ref(ref, {{\"x\", i}}), or .cluster_idx and "
                               ".cluster_dim");
  const OneBarrier one = one_barrier(recorder, barrier, what, at);
  const ValueId all = recorder.typed(stored, what, at);
  if (options.atomic == nullptr)
    recorder.builder().store(view, all, graph::no_value, at);
  else
    recorder.builder().atomic(graph::Update{reduction(options.atomic, what, "atomic", at)}, view,
                              all, graph::no_value, graph::no_value, at);
  recorder.note_write(view);
  record(recorder, Op::BarrierArrive, {one.all, one.number, recorder.graph[peer].args[1]}, {}, at);
  recorder.note_write(one.all);
}

void gpu::copy_gmem_to_smem(const Ref& src, const Ref& dst, const Ref& barrier,
                            CopyGmemToSmemOptions options, Location at) {
  const char* const what = "copy_gmem_to_smem";
  Recorder& recorder = recorder_by_hand(what, at, By::warps_too);
  const std::int64_t axes = trace::cluster_axes(recorder, options.collective_axes, what, at);
  const Ref source = options.partitioned ? own_part(recorder, src, dst, options, at) : src;
  const ValueId from = recorder.id(source, what, at), to = recorder.id(dst, what, at);
  const OneBarrier one = one_barrier(recorder, barrier, what, at);
  const bool is_shared = !options.partitioned && graph::blocks_along(recorder.graph, axes) > 1;
  const graph::Beyond beyond = beyond_of(options.oob_mode);
  if (is_shared) trace::expect_of_block(recorder, to, what, at);
  const auto copy = [&] {
    Attr attr;
    if (is_shared) attr.ints = {axes};
    if (beyond != graph::Beyond::none)
      attr.ints = {is_shared ? axes : 0, static_cast<std::int64_t>(beyond)};
    record(recorder, Op::CopyToShared, {from, to, one.all, one.number}, std::move(attr), at);
    recorder.note({{recorder.memory_of(from)}, {}});
    recorder.note_write(to);
    recorder.note_write(one.all);
  };
  const auto arrive = [&] {
    record(recorder, Op::BarrierArrive, {one.all, one.number}, {}, at);
    recorder.note_write(one.all);
  };
  where(options.predicate, copy, arrive);
}

void gpu::copy_gmem_to_smem(const Ref& src, const Ref& dst, CopyOptions options, Location at) {
  const char* const what = "copy_gmem_to_smem";
  Recorder& recorder = recorder_by_hand(what, at);
  const ValueId from = recorder.id(src, what, at), to = recorder.id(dst, what, at);
  const auto copy = [&] {
    record(recorder, Op::FetchToShared, {from, to}, {}, at);
    recorder.note({{recorder.memory_of(from)}, {}});
    recorder.note_write(to);
  };
  where(options.predicate, copy, [] {});
}

void gpu::wait_gmem_to_smem(int n, Location at) {
  Recorder& recorder = recorder_by_hand("wait_gmem_to_smem", at);
  if (n < 0)
    throw CompileError(at,
                       "wait_gmem_to_smem: expected 0 or more copies that may be under way, "
                       "given " +
                           std::to_string(n));
  record(recorder, Op::AwaitFetches, {}, Attr{{n}, 0}, at);
}

void gpu::async_prefetch(const Ref& ref, Location at) {
  Recorder& recorder = recorder_by_hand("async_prefetch", at);
  record(recorder, Op::Prefetch, {recorder.id(ref, "async_prefetch", at)}, {}, at);
}

void gpu::copy_smem_to_gmem(const Ref& src, const Ref& dst, CopySmemToGmemOptions options,
                            Location at) {
  const char* const what = "copy_smem_to_gmem";
  Recorder& recorder = recorder_by_hand(what, at, By::warps_too);
  const ValueId from = recorder.id(src, what, at), to = recorder.id(dst, what, at);
  recorder.expect_writable(to, what, at);
  Attr how;
  if (options.reduction_op != nullptr)
    how.ints = {0, 0, reduction(options.reduction_op, what, "reduction_op", at)};
  else if (options.clipped)
    how.ints = {static_cast<std::int64_t>(graph::Beyond::dropped)};
  if (options.reduction_op != nullptr && options.clipped)
    throw CompileError(at,
                       "copy_smem_to_gmem: a copy that reduces is inside of its array, and not "
                       "clipped");
  const Op op = options.reduction_op == nullptr ? Op::CopyToGlobal : Op::ReduceToGlobal;
  const auto copy = [&] {
    record(recorder, op, {to, from}, how, at);
    recorder.note({{recorder.memory_of(from)}, {}});
    recorder.note_write(to);
  };
  where(options.predicate, copy, [] {});
  if (options.commit_group) commit_smem_to_gmem_group(at);
}

void gpu::commit_smem(Location at) {
  record(recorder_by_hand("commit_smem", at, By::warps_too), Op::CommitShared, {}, {}, at);
}

void gpu::commit_smem_to_gmem_group(Location at) {
  const char* const what = "commit_smem_to_gmem_group";
  record(recorder_by_hand(what, at, By::warps_too), Op::CloseCopies, {}, {}, at);
}

void gpu::wait_smem_to_gmem(int n, WaitSmemToGmemOptions options, Location at) {
  Recorder& recorder = recorder_by_hand("wait_smem_to_gmem", at, By::warps_too);
  if (n < 0)
    throw CompileError(at,
                       "wait_smem_to_gmem: expected 0 or more groups that may be under way, "
                       "given " +
                           std::to_string(n));
  record(recorder, Op::AwaitCopies, {}, Attr{{n, options.wait_read_only}}, at);
}

}  // namespace palladium
