// Loops over work that blocks share, spelled with arithmetic, a counter, barriers.
#include "palladium/gpu/scheduling.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "codegen/trace/accumulators.hpp"
#include "codegen/trace/body.hpp"
#include "codegen/trace/clusters.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "palladium/gpu/barrier.hpp"
#include "palladium/gpu/cluster.hpp"
#include "palladium/ops.hpp"
#include "palladium/semaphore.hpp"

namespace palladium {

using trace::Op;
using trace::Recorder;
using trace::Type;
using trace::ValueId;

namespace {

// Elementwise operations at the user's line.
struct At {
  Location at;
  Value operator()(Op op, const Value& a, const Value& b) const {
    return trace::elementwise(op, {a, b}, at);
  }
};

// Row by row; without the last division of a number that is in the grid.
std::vector<Value> unraveled(const At& apply, const Value& number,
                             const std::vector<Value>& sizes) {
  std::vector<Value> index(sizes.size());
  Value rest = number;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    index[d] = d == 0 ? rest : apply(Op::Rem, rest, sizes[d]);
    if (d > 0) rest = apply(Op::Div, rest, sizes[d]);
  }
  return index;
}

Value product_of(const At& apply, const std::vector<Value>& sizes) {
  Value product = Value(1);
  for (const Value& size : sizes) product = apply(Op::Mul, product, size);
  return product;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

// ---- nd_loop

detail::NDLoop::NDLoop(gpu::LoopGrid grid, gpu::NDLoopOptions options)
    : grid_(std::move(grid)), options_(std::move(options)) {
  const At apply{grid_.at};
  const auto fail = [&](const std::string& what) {
    throw CompileError(grid_.at, "nd_loop: " + what);
  };
  if (options_.collective_axes.empty()) fail("expected the axes whose programs share the grid");
  const std::vector<std::int64_t>& tiles = options_.tiling;
  if (!tiles.empty() && tiles.size() != grid_.sizes.size())
    fail("the grid has " + std::to_string(grid_.sizes.size()) + " dimensions, and a tile " +
         std::to_string(tiles.size()));
  for (std::size_t d = 0; d < tiles.size(); ++d)
    if (tiles[d] < 1 || (trace::is_literal(grid_.sizes[d]) &&
                         trace::literal(grid_.sizes[d]).integer % tiles[d] != 0))
      fail("tiles of " + std::to_string(tiles[d]) + " do not divide dimension " +
           std::to_string(d) + " of the grid");
  rank_ = Value(0);
  size_ = Value(1);
  for (const std::string& name : options_.collective_axes) {
    const Value along = axis_size(name.c_str(), grid_.at);
    rank_ = apply(Op::Add, apply(Op::Mul, rank_, along), axis_index(name.c_str(), grid_.at));
    size_ = apply(Op::Mul, size_, along);
  }
  const Value all = product_of(apply, grid_.sizes);
  // Those that are behind the last of all have one less.
  const Value before = apply(Op::Sub, apply(Op::Add, all, apply(Op::Sub, size_, Value(1))), rank_);
  steps_ = apply(Op::Div, before, size_);
}

gpu::NDLoopInfo detail::NDLoop::at(const Value& step) const {
  const At apply{grid_.at};
  const Value number = apply(Op::Add, apply(Op::Mul, step, size_), rank_);
  const std::vector<std::int64_t>& tiles = options_.tiling;
  if (tiles.empty()) return {unraveled(apply, number, grid_.sizes), step, steps_};
  std::vector<Value> sizes;
  for (std::size_t d = 0; d < tiles.size(); ++d)
    sizes.push_back(apply(Op::Div, grid_.sizes[d], Value(tiles[d])));
  sizes.insert(sizes.end(), tiles.begin(), tiles.end());
  const std::vector<Value> all = unraveled(apply, number, sizes);
  std::vector<Value> index;
  for (std::size_t d = 0; d < tiles.size(); ++d)
    index.push_back(apply(Op::Add, apply(Op::Mul, all[d], Value(tiles[d])), all[tiles.size() + d]));
  return {index, step, steps_};
}

// ---- dynamic_scheduling_loop

// One thread takes indices from the counter, an iteration ahead, and hands each to all threads of
// the block, or of several of a cluster, through one of two slots of each block.
struct detail::DynamicLoop::State {
  static constexpr int slots = 2;

  [[noreturn]] void fail(const std::string& what) const {
    throw CompileError(at, "dynamic_scheduling_loop: " + what);
  }
  Value slot_of(const Value& step) const { return apply(Op::Rem, step, Value(slots)); }
  Ref ref(ValueId v) const { return recorder.ref(v); }
  Value taken() const { return Value(atomic_add(counter.at(0, at), Value(1))); }
  void put(const Value& step) const;
  Value got(const Value& step) const;
  Ref there(const Ref& memory, const std::vector<Value>& place) const;
  void hand_out(const Value& item, const Value& slot) const;
  std::vector<std::int64_t> sizes_along_cluster() const;

  Recorder& recorder;
  Location at;
  At apply;
  std::vector<Value> sizes = {};
  Value count = Value(1);
  Ref counter;
  bool is_shared = false;  // by several threads
  Value leads = {};        // whether this one takes
  ValueId items = graph::no_value, full = graph::no_value, empty = graph::no_value;
  std::vector<std::string> cluster_axes = {};  // along which blocks have the same items
};

void detail::DynamicLoop::State::put(const Value& step) const {
  when(Bound(leads, at), [&] {
    const Value slot = slot_of(step);
    when(Bound(apply(Op::Ge, step, Value(slots)), at),
         [&] { gpu::barrier_wait(ref(empty).at(slot, at), at); });
    if (!cluster_axes.empty()) return hand_out(taken(), slot);
    store(ref(items).at(slot, at), taken());
    gpu::barrier_arrive(ref(full).at(slot, at), at);
  });
}

// The same memory of the block that stands there along the axes.
Ref detail::DynamicLoop::State::there(const Ref& memory, const std::vector<Value>& place) const {
  const auto of = [&](std::size_t i) {
    return gpu::ClusterIndex{cluster_axes[i].c_str(), place[i]};
  };
  switch (place.size()) {
  case 1: return gpu::cluster_ref(memory, {of(0)}, at);
  case 2: return gpu::cluster_ref(memory, {of(0), of(1)}, at);
  default: return gpu::cluster_ref(memory, {of(0), of(1), of(2)}, at);
  }
}

std::vector<std::int64_t> detail::DynamicLoop::State::sizes_along_cluster() const {
  std::vector<std::int64_t> along;
  for (const std::string& name : cluster_axes)
    along.push_back(trace::literal(axis_size(name.c_str(), at)).integer);
  return along;
}

void detail::DynamicLoop::State::hand_out(const Value& item, const Value& slot) const {
  const std::vector<std::int64_t> along = sizes_along_cluster();
  for (std::int64_t block = 0; block < product(along); ++block) {
    std::vector<Value> place(along.size());
    std::int64_t rest = block;
    for (std::size_t d = along.size(); d-- > 0; rest /= along[d]) place[d] = Value(rest % along[d]);
    gpu::async_store_smem(Operand(item, at), there(ref(items).at(slot, at), place),
                          ref(full).at(slot, at));
  }
}

Value detail::DynamicLoop::State::got(const Value& step) const {
  const Value slot = slot_of(step);
  gpu::barrier_wait(ref(full).at(slot, at), at);
  const Value item = load(ref(items).at(slot, at));
  if (cluster_axes.empty()) {
    gpu::barrier_arrive(ref(empty).at(slot, at), at);
    return item;
  }
  // At the barrier of the block whose thread takes.
  const Ref first = there(ref(items), std::vector<Value>(cluster_axes.size(), Value(0)));
  const ValueId rank = recorder.graph[recorder.id(first, "dynamic_scheduling_loop", at)].args[1];
  recorder.builder().add(
      Op::BarrierArrive,
      {empty, recorder.i32_scalar(slot, "dynamic_scheduling_loop", "the slot", at), rank},
      trace::Attr{}, {}, at);
  recorder.note_write(empty);
  return item;
}

detail::DynamicLoop::DynamicLoop(std::vector<std::string> grid_names,
                                 gpu::DynamicSchedulingOptions options, Location at) {
  Recorder& recorder = trace::recorder_by_hand("dynamic_scheduling_loop", at);
  Ref counter = get_global(gpu::GMEM({1}, i32), at);
  state_ = new State{.recorder = recorder, .at = at, .apply = {at}, .counter = counter};
  State& s = *state_;
  for (const std::string& name : grid_names) s.sizes.push_back(axis_size(name.c_str(), at));
  s.count = product_of(s.apply, s.sizes);
  const trace::Threads& threads = recorder.threads[recorder.body];
  s.cluster_axes = options.cluster_axes;
  s.is_shared = threads.count > 1 || !s.cluster_axes.empty();
  if (!s.is_shared) return;
  if (threads.count > 1 && options.thread_axis != threads.name)
    s.fail("all threads of the block run it: expected .thread_axis = \"" + threads.name +
           "\", given \"" + options.thread_axis + "\"");
  (void)trace::cluster_axes(recorder, s.cluster_axes, "dynamic_scheduling_loop", at);
  std::vector<Value> numbers;
  if (threads.count > 1) numbers.push_back(axis_index(threads.name.c_str(), at));
  for (const std::string& axis : s.cluster_axes) numbers.push_back(axis_index(axis.c_str(), at));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Value is_first = s.apply(Op::Eq, numbers[i], Value(0));
    s.leads = i == 0 ? is_first : s.apply(Op::And, s.leads, is_first);
  }
  const auto blocks = static_cast<int>(product(s.sizes_along_cluster()));
  s.items = recorder.share(Type::ref(i32, {State::slots}, Space::smem), at);
  s.full = recorder.share(Type::ref(u64, {State::slots}, Space::barrier, 1), at);
  s.empty =
      recorder.share(Type::ref(u64, {State::slots}, Space::barrier, threads.count * blocks), at);
}

detail::DynamicLoop::~DynamicLoop() { delete state_; }
Location detail::DynamicLoop::location() const { return state_->at; }

Value detail::DynamicLoop::first() {
  if (!state_->is_shared) return state_->taken();
  state_->put(Value(0));
  return state_->got(Value(0));
}

Value detail::DynamicLoop::is_there(const Value& item) const {
  return state_->apply(Op::Lt, item, state_->count);
}

gpu::NDLoopInfo detail::DynamicLoop::begin(const Value& item, const Value& step) {
  if (state_->is_shared) state_->put(state_->apply(Op::Add, step, Value(1)));
  return {unraveled(state_->apply, item, state_->sizes), step};
}

Value detail::DynamicLoop::next(const Value& step) {
  return state_->is_shared ? state_->got(state_->apply(Op::Add, step, Value(1))) : state_->taken();
}

// All have seen what is in the slots.
void detail::DynamicLoop::close(const Value& steps) {
  const State& s = *state_;
  if (!s.is_shared) return;
  const auto wait = [&](const Value& step) {
    gpu::barrier_wait(s.ref(s.empty).at(s.slot_of(step), s.at), s.at);
  };
  when(Bound(s.leads, s.at), [&] {
    wait(steps);
    when(Bound(s.apply(Op::Ge, steps, Value(1)), s.at),
         [&] { wait(s.apply(Op::Add, steps, Value(1))); });
  });
}

// ---- planar_snake

Values<2> gpu::planar_snake(const Value& lin_idx, const LoopGrid& shape, int minor_dim,
                            int tile_width) {
  const At apply{shape.at};
  const auto fail = [&](const std::string& what) {
    throw CompileError(shape.at, "planar_snake: " + what);
  };
  if (shape.sizes.size() != 2)
    fail("expected a plane of rows and columns, given " + std::to_string(shape.sizes.size()) +
         " dimensions");
  if (minor_dim != 0 && minor_dim != 1)
    fail("minor_dim is 0 or 1, given " + std::to_string(minor_dim));
  if (tile_width < 1) fail("tile_width is 1 or more, given " + std::to_string(tile_width));
  const Value major_size = shape.sizes[static_cast<std::size_t>(1 - minor_dim)];
  const Value minor_size = shape.sizes[static_cast<std::size_t>(minor_dim)];
  const Value width = Value(tile_width);
  const Value strip = apply(Op::Div, lin_idx, apply(Op::Mul, width, major_size));
  // The last strip may be narrower.
  const Value left = apply(Op::Sub, minor_size, apply(Op::Mul, strip, width));
  const Value wide = apply(Op::Min, width, left);
  const Value within =
      apply(Op::Sub, lin_idx, apply(Op::Mul, apply(Op::Mul, strip, width), major_size));
  const Value along = apply(Op::Div, within, wide);
  const Value back = apply(Op::Sub, apply(Op::Sub, major_size, Value(1)), along);
  const Value turns = apply(Op::Ne, apply(Op::Rem, strip, Value(2)), Value(0));
  const Value major = trace::selected("planar_snake", turns, back, along, shape.at);
  const Value minor = apply(Op::Add, apply(Op::Mul, strip, width), apply(Op::Rem, within, wide));
  return minor_dim == 0 ? carry(minor, major) : carry(major, minor);
}

}  // namespace palladium
