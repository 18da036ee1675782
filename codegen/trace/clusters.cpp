#include "codegen/trace/clusters.hpp"

#include <algorithm>
#include <numeric>

#include "codegen/trace/body.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu/cluster.hpp"

namespace palladium::trace {
namespace {

std::size_t cluster_axis(const Recorder& recorder, const std::string& name, const char* what,
                         Location at) {
  const NamedAxis axis = axis_named(recorder, name.c_str(), what, at);
  if (axis.kind != graph::AxisKind::cluster)
    throw CompileError(at, std::string(what) + ": '" + name + "' is no axis of the cluster");
  return static_cast<std::size_t>(axis.number);
}

std::int64_t size_of(const graph::Graph& g, const std::vector<std::size_t>& axes) {
  std::int64_t size = 1;
  for (const std::size_t axis : axes) size *= g.cluster[axis];
  return size;
}

Value index_along(Recorder& recorder, std::size_t axis, Location at) {
  const auto kind = static_cast<std::int64_t>(graph::AxisKind::cluster);
  return recorder.value(recorder.builder().add(
      Op::AxisIndex, {}, Attr{{kind, static_cast<std::int64_t>(axis)}, 0}, {}, at));
}

std::vector<Value> own_place(Recorder& recorder, Location at) {
  std::vector<Value> place;
  for (std::size_t axis = 0; axis < recorder.graph.cluster.size(); ++axis)
    place.push_back(index_along(recorder, axis, at));
  return place;
}

Value apply(Op op, const Value& a, const Value& b, Location at) {
  return elementwise(op, {a, b}, at);
}

// Row-major, the last axis fastest.
Value number_along(const graph::Graph& g, const std::vector<Value>& place,
                   const std::vector<std::size_t>& axes, Location at) {
  Value number = place[axes[0]];
  for (std::size_t i = 1; i < axes.size(); ++i) {
    const Value before = apply(Op::Mul, number, Value(g.cluster[axes[i]]), at);
    number = apply(Op::Add, before, place[axes[i]], at);
  }
  return number;
}

Value rank_of(const graph::Graph& g, const std::vector<Value>& place, Location at) {
  std::vector<std::size_t> all(g.cluster.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return number_along(g, place, all, at);
}

// The place that is `steps` behind along these axes, around.
std::vector<Value> moved(const graph::Graph& g, std::vector<Value> place,
                         const std::vector<std::size_t>& axes, std::int64_t steps, Location at) {
  const Value behind = apply(Op::Add, number_along(g, place, axes, at), Value(steps), at);
  Value number = apply(Op::Rem, behind, Value(size_of(g, axes)), at);
  for (std::size_t i = axes.size(); i-- > 0;) {
    const Value size = g.cluster[axes[i]];
    place[axes[i]] = i == 0 ? number : apply(Op::Rem, number, size, at);
    if (i > 0) number = apply(Op::Div, number, size, at);
  }
  return place;
}

}  // namespace

ClusterGroups cluster_groups(const Recorder& recorder, const Scoped& barrier, Location at) {
  ClusterGroups groups;
  std::vector<std::size_t> seen;
  for (const std::vector<std::string>& names : barrier.collective_axes) {
    std::vector<std::size_t>& group = groups.emplace_back();
    if (names.empty()) throw CompileError(at, "ClusterBarrier: collective_axes holds no axis");
    for (const std::string& name : names) {
      group.push_back(cluster_axis(recorder, name, "ClusterBarrier", at));
      if (std::ranges::find(seen, group.back()) != seen.end())
        throw CompileError(at, "ClusterBarrier: '" + name + "' stands in collective_axes twice");
      seen.push_back(group.back());
    }
  }
  return groups;
}

int arrivals_of(const Recorder& recorder, const Scoped& barrier, Location at) {
  std::int64_t blocks = 1;
  for (const std::vector<std::size_t>& group : cluster_groups(recorder, barrier, at))
    blocks += size_of(recorder.graph, group) - 1;
  return barrier.arrivals * static_cast<int>(blocks);
}

std::vector<ValueId> ranks_told(Recorder& recorder, const ClusterGroups& groups, Location at) {
  std::vector<ValueId> ranks;
  if (groups.empty()) return ranks;
  const graph::Graph& g = recorder.graph;
  const std::vector<Value> own = own_place(recorder, at);
  for (const std::vector<std::size_t>& group : groups)
    for (std::int64_t k = 1; k < size_of(g, group); ++k) {
      const Value rank = rank_of(g, moved(g, own, group, k, at), at);
      ranks.push_back(recorder.i32_scalar(rank, "barrier_arrive", "a block", at));
    }
  return ranks;
}

std::int64_t cluster_axes(const Recorder& recorder, const std::vector<std::string>& names,
                          const char* what, Location at) {
  std::int64_t axes = 0;
  for (const std::string& name : names)
    axes |= std::int64_t{1} << cluster_axis(recorder, name, what, at);
  return axes;
}

void expect_of_block(const Recorder& recorder, ValueId view, const char* what, Location at) {
  const graph::Graph& g = recorder.graph;
  const ValueId root = g.root(view);
  const std::vector<ValueId>& params = g[g.bodies[recorder.body].region].params;
  const auto is_root = [&](const Recorder::Shared& s) { return s.ref == root; };
  if (std::ranges::find(params, root) != params.end() ||
      std::ranges::any_of(recorder.shared, is_root))
    return;
  throw CompileError(at, std::string(what) + ": " + graph::to_string(g[view].type) +
                             " is one thread's own, which other blocks do not know: scratch of "
                             "the kernel, or of a run_scoped with .collective_axes = {\"" +
                             recorder.threads[recorder.body].name + "\"}");
}

}  // namespace palladium::trace

namespace palladium {

Ref gpu::cluster_ref(const Ref& ref, std::initializer_list<ClusterIndex> block, Location at) {
  const char* const what = "cluster_ref";
  trace::Recorder& recorder = trace::Recorder::current(what, at);
  const trace::ValueId view = recorder.id(ref, what, at);
  if (block.size() == 0) throw CompileError(at, "cluster_ref: no axis is named");
  std::vector<Value> place = trace::own_place(recorder, at);
  for (const ClusterIndex& given : block) {
    if (given.axis == nullptr) throw CompileError(at, "cluster_ref: the name is a null pointer");
    place[trace::cluster_axis(recorder, given.axis, what, at)] =
        recorder.value(recorder.i32_scalar(given.index, what, "the index", at));
  }
  trace::expect_of_block(recorder, view, what, at);
  const Value rank = trace::rank_of(recorder.graph, place, at);
  const trace::ValueId number = recorder.i32_scalar(rank, what, "the rank", at);
  return recorder.ref(
      recorder.builder().add(trace::Op::RefPeer, {view, number}, trace::Attr{}, {}, at));
}

}  // namespace palladium
