// emit_pipeline_warp_specialized: a thread that copies blocks to rings of rooms, others that use
// them; two barriers of each room say that it is ready, and that it has been consumed.
#include "palladium/gpu/pipeline_specialized.hpp"

#include <algorithm>
#include <string>

#include "codegen/trace/accumulators.hpp"
#include "codegen/trace/body.hpp"
#include "codegen/trace/clusters.hpp"
#include "codegen/trace/pipeline_blocks.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "palladium/gpu/barrier.hpp"
#include "palladium/gpu/registers.hpp"
#include "palladium/gpu/wgmma.hpp"
#include "palladium/ops.hpp"

namespace palladium {

using trace::Blocks;
using trace::CutArray;
using trace::Op;
using trace::Recorder;
using trace::Ring;
using trace::Type;

namespace {

constexpr const char* what = "emit_pipeline_warp_specialized";

Blocks blocks_of(Recorder& recorder, const gpu::EmitPipelineWarpSpecializedOptions& o,
                 const std::vector<Ref>& arrays, bool goes_on, Location at) {
  return {recorder,
          what,
          {o.grid, o.in_specs, o.out_specs, o.max_concurrent_steps,
           o.manual_ready_barriers || o.manual_consumed_barriers, goes_on},
          arrays,
          at};
}

gpu::PipelineAllocations allocate(Recorder& recorder, const Blocks& blocks, int computing,
                                  bool goes_on, Location at) {
  gpu::PipelineAllocations found;
  const auto share = [&](const Type& type) { return recorder.ref(recorder.share(type, at)); };
  for (const CutArray& o : blocks.operands)
    if (!o.is_whole) found.rooms.push_back(share(blocks.type_of_rooms(o)));
  for (const Ring& ring : blocks.rings) {
    found.ready.push_back(share(blocks.barriers({ring.slots}, ring.inputs.size())));
    // Rooms that several blocks fill are free when those of all of them are.
    Scoped readers = gpu::Barrier({.num_arrivals = computing});
    if (!ring.collective_axes.empty()) readers.collective_axes = {ring.collective_axes};
    const int arrivals = trace::arrivals_of(recorder, readers, at);
    found.consumed.push_back(
        share(blocks.barriers({ring.slots}, static_cast<std::size_t>(arrivals))));
    if (!ring.collective_axes.empty())
      recorder.cluster_barriers.emplace_back(recorder.id(found.consumed.back(), what, at),
                                             trace::cluster_groups(recorder, readers, at));
  }
  for (int i = 0; goes_on && i < 4; ++i)
    found.counts.push_back(recorder.ref(recorder.share_counter(at)));
  if (blocks.has_outputs() && computing > 1)
    found.meeting.push_back(share(blocks.barriers({1}, static_cast<std::size_t>(computing))));
  return found;
}

}  // namespace

namespace detail {

class SpecializedLoop {
 public:
  SpecializedLoop(Recorder& recorder, PipelineBody& body,
                  const gpu::EmitPipelineWarpSpecializedOptions& options,
                  const std::vector<Ref>& arrays, const gpu::PipelineAllocations* allocations,
                  Location at);
  void run();
  std::vector<Value> compute(const std::vector<Ref>& given, const std::vector<Value>& init);

 private:
  struct Steps {
    Value low, high;
    LoopOptions options = {};
  };

  /// Whether pipelines before have used the same rooms, and others will.
  bool goes_on() const { return goes_on_; }
  Value apply(Op op, const Value& a, const Value& b) const { return blocks_.apply(op, a, b); }
  void when_(const Value& condition, auto f) const { when(Bound(condition, at_), f); }

  // Of a ring: how many times rooms of it have been filled before that of a step, ever and since
  // all of them were free, its room, its barriers.
  Value number(const Ring& ring, const Value& step) const;
  Value number_since_start(const Ring& ring, const Value& step) const;
  Value room_of(const Ring& ring, const Value& step) const {
    if (turn_.has_value() && ring.follows_grid) return *turn_;
    return apply(Op::Rem, number(ring, step), Value(ring.slots));
  }
  /// Of the step that is so many before.
  Value room_before(const Ring& ring, const Value& step, int back) const {
    if (back == 0) return room_of(ring, step);
    const bool is_in_turn = turn_.has_value();
    const Value behind = apply(Op::Add, is_in_turn ? *turn_ : step, Value(ring.slots - back));
    return is_in_turn ? apply(Op::Rem, behind, Value(ring.slots)) : room_of(ring, behind);
  }
  Ref ready(std::size_t ring, const Value& room) const {
    return allocations_.ready[ring].at(room, at_);
  }
  Ref consumed(std::size_t ring, const Value& room) const {
    return allocations_.consumed[ring].at(room, at_);
  }
  // If the pipeline is alone, as it is where nothing is said, or its state is this one.
  void when_alone_or(int state, auto f) const {
    if (!goes_on() || !Access::given(options_.pipeline_state)) return f();
    const Value& given = Access::value(options_.pipeline_state);
    const Value alone = apply(Op::Eq, given, Value(gpu::PipelinePipeline::ALONE));
    when_(apply(Op::Or, apply(Op::Eq, given, Value(state)), alone), f);
  }

  void take_rooms();
  void begin_counts();
  void end_counts() const;
  void copy_ahead() const;
  void fill(std::size_t ring, const Value& step) const;
  void await_all(std::size_t ring) const;
  void take_numbers(Building& scope);
  std::vector<Value> repeat(const std::vector<Ref>& given, std::vector<Value> carries);
  std::vector<Value> repeat(const Value& low, const Value& high, const std::vector<Ref>& given,
                            const std::vector<Value>& init);
  Value end_of_groups(const Value& first, int rooms) const;
  std::vector<Value> repeat_groups(const Value& first, const Value& rest, int rooms,
                                   const std::vector<Ref>& given, const std::vector<Value>& init);
  /// Hands on what each gives to the next; of the last.
  std::vector<Value> each_of(const Steps& steps, const std::vector<Value>& init,
                             const auto& body) const;
  std::vector<Value> one_step(const Value& step, const std::vector<Ref>& given,
                              const std::vector<Value>& carries);
  int rooms_in_turn() const;
  void begin(const Value& step);
  void await_ready(std::size_t ring, const Value& room) const;
  bool has_turns(const Ring& ring) const;
  std::vector<Ref> refs(const Value& step) const;
  void end(const Value& step);
  void release(std::size_t ring, const Value& step) const;
  void release_last() const;
  void store(std::size_t output, const Value& step);
  void meet() const;

  ScratchTypes numbers() const;
  Ref number_of_room(const CutArray& o) const { return recorder_.ref(o.room); }

  Recorder& recorder_;
  PipelineBody& body_;
  const gpu::EmitPipelineWarpSpecializedOptions& options_;
  Location at_;
  bool goes_on_, repeats_;
  Blocks blocks_;
  gpu::PipelineAllocations allocations_;
  Value thread_;
  Value steps_before_, runs_before_;      // over these allocations; none is 0
  Value steps_at_start_, runs_at_start_;  // of these those when all rooms were free
  std::vector<Value> rooms_;              // that this step has of each operand
  std::optional<Value> turn_;             // its number among those of a group, which is its room's
  bool has_computed_ = false;
};

SpecializedLoop::SpecializedLoop(Recorder& recorder, PipelineBody& body,
                                 const gpu::EmitPipelineWarpSpecializedOptions& o,
                                 const std::vector<Ref>& arrays,
                                 const gpu::PipelineAllocations* allocations, Location at)
    : recorder_(recorder),
      body_(body),
      options_(o),
      at_(at),
      goes_on_(allocations != nullptr),
      repeats_(recorder.repeats()),
      blocks_(blocks_of(recorder, o, arrays, goes_on_, at)),
      allocations_(allocations != nullptr
                       ? *allocations
                       : allocate(recorder, blocks_, std::max(1, o.num_compute_wgs), false, at)) {
  const trace::Threads& threads = recorder.threads[recorder.body];
  const int computing = o.num_compute_wgs;
  if (computing < 1)
    blocks_.fail("num_compute_wgs is 1 or more, given " + std::to_string(computing));
  if (o.wg_axis != threads.name || threads.count != computing + 1)
    blocks_.fail("expected .wg_axis to name a thread axis of " + std::to_string(computing + 1) +
                 " threads, those that compute and one that copies, given \"" + o.wg_axis +
                 "\"; the kernel has " + std::to_string(threads.count));
  if (o.memory_thread_idx.value_or(computing) != computing)
    blocks_.fail("Memory thread must be the last thread.");
  for (std::size_t i = blocks_.inputs; i < blocks_.operands.size(); ++i)
    if (!blocks_.operands[i].spec.collective_axes.empty())
      blocks_.fail(blocks_.operands[i].name + " is an output, which blocks do not share");
  if (blocks_.rings.empty()) blocks_.fail("expected an input that is copied");
  if (Access::given(o.pipeline_state) && allocations == nullptr)
    blocks_.fail("Pipeline state should not be set when using automatic allocation.");
  take_rooms();
  thread_ = axis_index(threads.name.c_str(), at);
}

void SpecializedLoop::take_rooms() {
  std::size_t next = 0;
  for (CutArray& o : blocks_.operands) {
    if (o.is_whole) continue;
    if (next == allocations_.rooms.size()) blocks_.fail("the allocations are of another pipeline");
    o.rooms = recorder_.id(allocations_.rooms[next++], what, at_);
    if (!(recorder_.graph[o.rooms].type == blocks_.type_of_rooms(o)))
      blocks_.fail("the allocations have " + graph::to_string(recorder_.graph[o.rooms].type) +
                   " for the blocks of " + o.name);
  }
  if (next != allocations_.rooms.size() || allocations_.ready.size() != blocks_.rings.size())
    blocks_.fail("the allocations are of another pipeline");
}

void SpecializedLoop::run() {
  begin_counts();
  when_(apply(Op::Eq, thread_, Value(options_.num_compute_wgs)), [&] { copy_ahead(); });
  when_(apply(Op::Ne, thread_, Value(options_.num_compute_wgs)), [&] {
    if (const int memory = options_.memory_registers; memory > 0) {
      const int rest = std::min(256, (512 - memory) / options_.num_compute_wgs);
      gpu::set_max_registers(rest / 8 * 8, {.action = "increase"}, at_);
    }
    if (options_.compute_context)
      options_.compute_context(gpu::PipelineRun(*this));
    else
      compute({}, {});
    if (!has_computed_) blocks_.fail("Pipeline was not called in `compute_context`");
  });
  end_counts();
}

// ---- what has been before

Value SpecializedLoop::number(const Ring& ring, const Value& step) const {
  if (!goes_on()) return ring.follows_grid ? step : Value(0);
  return ring.follows_grid ? apply(Op::Add, steps_before_, step) : runs_before_;
}

Value SpecializedLoop::number_since_start(const Ring& ring, const Value& step) const {
  if (!goes_on()) return number(ring, step);
  return apply(Op::Sub, number(ring, step), ring.follows_grid ? steps_at_start_ : runs_at_start_);
}

// Rooms have their turns one after the other whatever starts and stops, and so have the phases of
// their barriers.
void SpecializedLoop::begin_counts() {
  if (!goes_on()) return;
  const std::vector<Ref>& counts = allocations_.counts;
  steps_before_ = load(counts[0]);
  runs_before_ = load(counts[1]);
  when_alone_or(gpu::PipelinePipeline::START, [&] {
    palladium::store(counts[2], steps_before_);
    palladium::store(counts[3], runs_before_);
  });
  steps_at_start_ = load(counts[2]);
  runs_at_start_ = load(counts[3]);
}

void SpecializedLoop::end_counts() const {
  if (!goes_on()) return;
  const Value steps = apply(Op::Add, steps_before_, blocks_.steps);
  const Value runs = apply(Op::Add, runs_before_, Value(1));
  palladium::store(allocations_.counts[0], steps);
  palladium::store(allocations_.counts[1], runs);
}

// ---- the thread that copies

void SpecializedLoop::copy_ahead() const {
  if (options_.memory_registers > 0)
    gpu::set_max_registers(options_.memory_registers, {.action = "decrease"}, at_);
  const auto fill_all = [&](bool follow, const Value& step) {
    for (std::size_t r = 0; r < blocks_.rings.size(); ++r)
      if (blocks_.rings[r].follows_grid == follow) fill(r, step);
  };
  fill_all(false, Value(0));
  palladium::loop(Bound(0, at_), Bound(blocks_.steps, at_),
                  [&](Index step) { fill_all(true, step); });
  when_alone_or(gpu::PipelinePipeline::STOP, [&] {
    for (std::size_t r = 0; r < blocks_.rings.size(); ++r) await_all(r);
  });
}

// The first time a room is free.
void SpecializedLoop::fill(std::size_t r, const Value& step) const {
  const Ring& ring = blocks_.rings[r];
  const Value room = room_of(ring, step);
  const bool are_all_free =
      !goes_on() &&
      (!ring.follows_grid || (blocks_.known_steps && *blocks_.known_steps <= ring.slots));
  if (!are_all_free)
    when_(apply(Op::Ge, number_since_start(ring, step), Value(ring.slots)),
          [&] { gpu::barrier_wait(consumed(r, room), at_); });
  blocks_.fetch(ring, step, room, ready(r, room));
}

// Whoever fills rooms next finds them free: the last ones that were filled are awaited, the first
// of them first.
void SpecializedLoop::await_all(std::size_t r) const {
  const Ring& ring = blocks_.rings[r];
  const Value steps = blocks_.steps, own(ring.follows_grid ? 0 : 1);
  const Value all = apply(Op::Add, number(ring, steps), own);
  const Value filled = apply(Op::Add, number_since_start(ring, steps), own);
  for (int back = ring.slots; back > 0; --back)
    when_(apply(Op::Le, Value(back), filled), [&] {
      const Value room = apply(Op::Rem, apply(Op::Sub, all, Value(back)), Value(ring.slots));
      gpu::barrier_wait(consumed(r, room), at_);
    });
}

// ---- threads that compute

// Of outputs that have several rooms.
ScratchTypes SpecializedLoop::numbers() const {
  ScratchTypes all;
  for (std::size_t i = blocks_.inputs; i < blocks_.operands.size(); ++i)
    if (const CutArray& o = blocks_.operands[i]; !o.is_whole && o.slots > 1)
      all.list.push_back({"", gpu::REGS({}, i32, at_)});
  return all;
}

void SpecializedLoop::take_numbers(Building& scope) {
  const Parameter all{Parameter::Kind::rest, 0};
  int next = 0;
  scope.operands().match(&all, 1, &next);
  const Refs scratch = scope.operands().rest(next);
  next = 0;
  for (std::size_t i = blocks_.inputs; i < blocks_.operands.size(); ++i) {
    CutArray& o = blocks_.operands[i];
    if (o.is_whole || o.slots == 1) continue;
    o.room = recorder_.id(scratch[next++], what, at_);
    palladium::store(number_of_room(o), Value(0));
  }
}

std::vector<Value> SpecializedLoop::compute(const std::vector<Ref>& given,
                                            const std::vector<Value>& init) {
  if (std::exchange(has_computed_, true))
    blocks_.fail("Cannot call pipeline more than once in `compute_context`");
  const Expression expression(at_);
  Building scope(numbers(), {}, expression);
  take_numbers(scope);
  for (std::size_t r = 0; r < blocks_.rings.size(); ++r)
    if (!blocks_.rings[r].follows_grid)
      gpu::barrier_wait(ready(r, room_of(blocks_.rings[r], Value(0))), at_);
  std::vector<Value> last = repeat(given, init);
  release_last();
  if (blocks_.has_outputs()) {
    when_(apply(Op::Eq, thread_, Value(0)), [&] { gpu::wait_smem_to_gmem(0, {}, at_); });
    meet();
  }
  scope.close(last.data(), static_cast<int>(last.size()));
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = scope.result(static_cast<int>(i));
  return last;
}

// How many rooms each of the rings has that steps fill, where the text is to say which room it is:
// of products that go on behind their step, which is short then. 1: it is computed.
int SpecializedLoop::rooms_in_turn() const {
  int rooms = 0;
  bool goes_on_behind = false;
  for (const Ring& ring : blocks_.rings) {
    if (!ring.follows_grid) continue;
    if (rooms != 0 && ring.slots != rooms) return 1;
    rooms = ring.slots;
    goes_on_behind = goes_on_behind || ring.delay > 0;
  }
  const bool are_few = blocks_.known_steps && *blocks_.known_steps < 2 * rooms;
  return goes_on_behind && !are_few ? rooms : 1;
}

// Groups of steps that go through all rooms, and the steps that are left; before them, where a
// pipeline goes on, the steps until the first room has its turn, which have the same text.
std::vector<Value> SpecializedLoop::repeat(const std::vector<Ref>& given,
                                           std::vector<Value> carries) {
  const Value zero(0), &steps = blocks_.steps;
  const int rooms = rooms_in_turn();
  if (rooms == 1) return repeat(zero, steps, given, carries);
  if (!goes_on()) {
    const Value rest = end_of_groups(zero, rooms);
    carries = repeat_groups(zero, rest, rooms, given, carries);
    return repeat(rest, steps, given, carries);
  }
  const Value used = apply(Op::Rem, steps_before_, Value(rooms));
  const Value left = apply(Op::Rem, apply(Op::Sub, Value(rooms), used), Value(rooms));
  const auto behind = [](const Value& from, const Value& until, const std::vector<Value>& rest) {
    std::vector<Value> all{from, until};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  const std::vector<Value> init = behind(zero, apply(Op::Min, steps, left), carries);
  const auto count = static_cast<int>(init.size());
  Building loop(init.data(), count, Expression(at_));
  const Value is_left = apply(Op::Lt, loop.carry(0), steps);
  loop.close(&is_left, 1);
  const Value from = loop.carry(0), until = loop.carry(1);
  for (int i = 2; i < count; ++i) carries[static_cast<std::size_t>(i) - 2] = loop.carry(i);
  carries = repeat(from, until, given, carries);
  const Value rest = end_of_groups(until, rooms);
  loop.close(behind(rest, steps, repeat_groups(until, rest, rooms, given, carries)).data(), count);
  for (int i = 2; i < count; ++i) carries[static_cast<std::size_t>(i) - 2] = loop.result(i);
  return carries;
}

/// Behind the last whole group from `first` on.
Value SpecializedLoop::end_of_groups(const Value& first, int rooms) const {
  const Value groups = apply(Op::Div, apply(Op::Sub, blocks_.steps, first), Value(rooms));
  const Value end = apply(Op::Add, first, apply(Op::Mul, groups, Value(rooms)));
  return apply(Op::Min, end, blocks_.steps);  // as it is: of steps it is known that there is room
}

std::vector<Value> SpecializedLoop::repeat_groups(const Value& first, const Value& rest, int rooms,
                                                  const std::vector<Ref>& given,
                                                  const std::vector<Value>& init) {
  return each_of({first, rest, {.step = rooms}}, init,
                 [&](const Value& group, const std::vector<Value>& carries) {
                   const Steps turns{0, rooms, {.unroll = rooms}};
                   return each_of(turns, carries, [&](const Value& turn, const auto& carried) {
                     turn_ = turn;
                     std::vector<Value> next =
                         one_step(apply(Op::Add, group, turn), given, carried);
                     turn_.reset();
                     return next;
                   });
                 });
}

std::vector<Value> SpecializedLoop::repeat(const Value& low, const Value& high,
                                           const std::vector<Ref>& given,
                                           const std::vector<Value>& init) {
  return each_of({low, high}, init, [&](const Value& step, const std::vector<Value>& carries) {
    return one_step(step, given, carries);
  });
}

std::vector<Value> SpecializedLoop::each_of(const Steps& steps, const std::vector<Value>& init,
                                            const auto& body) const {
  const auto count = static_cast<int>(init.size());
  const Bound low(steps.low, at_), high(steps.high, at_);
  Building loop(low, high, steps.options, init.data(), count);
  std::vector<Value> carries, last;
  for (int i = 0; i < count; ++i) carries.push_back(loop.carry(i));
  const std::vector<Value> next = body(loop.index(), carries);
  loop.close(next.data(), count);
  for (int i = 0; i < count; ++i) last.push_back(loop.result(i));
  return last;
}

std::vector<Value> SpecializedLoop::one_step(const Value& step, const std::vector<Ref>& given,
                                             const std::vector<Value>& carries) {
  begin(step);
  std::vector<Ref> all = refs(step);
  for (const Ref& r : given) all.push_back(r);
  std::vector<Value> next =
      trace::call_body(body_, blocks_, blocks_.indices_of(step), all, carries);
  end(step);
  return next;
}

void SpecializedLoop::begin(const Value& step) {
  rooms_.assign(blocks_.operands.size(), Value(0));
  for (std::size_t r = 0; r < blocks_.rings.size(); ++r) {
    const Ring& ring = blocks_.rings[r];
    const Value room = room_of(ring, step);
    if (ring.follows_grid && !options_.manual_ready_barriers) await_ready(r, room);
    for (const std::size_t i : ring.inputs) rooms_[i] = room;
  }
  for (std::size_t i = blocks_.inputs; i < blocks_.operands.size(); ++i)
    if (const CutArray& o = blocks_.operands[i]; !o.is_whole && o.slots > 1)
      rooms_[i] = load(number_of_room(o));
}

// Blocks, then the barriers that the body itself knows of.
void SpecializedLoop::await_ready(std::size_t ring, const Value& room) const {
  if (has_turns(blocks_.rings[ring]))
    trace::wait_in_turn(ready(ring, room), "barrier_wait", at_);
  else
    gpu::barrier_wait(ready(ring, room), at_);
}

// Whether each first room follows a last one: steps go on with the next room, or end with the last.
bool SpecializedLoop::has_turns(const Ring& ring) const {
  if (ring.slots == 1) return false;
  return goes_on() || !repeats_ ||
         (blocks_.known_steps && *blocks_.known_steps % ring.slots == 0);
}

std::vector<Ref> SpecializedLoop::refs(const Value& step) const {
  std::vector<Ref> all = blocks_.blocks_of(rooms_);
  for (std::size_t r = 0; options_.manual_ready_barriers && r < blocks_.rings.size(); ++r)
    if (blocks_.rings[r].follows_grid) all.push_back(ready(r, room_of(blocks_.rings[r], step)));
  for (std::size_t r = 0; options_.manual_consumed_barriers && r < blocks_.rings.size(); ++r) {
    const Ring& ring = blocks_.rings[r];
    if (!ring.follows_grid) continue;
    all.push_back(consumed(r, room_before(ring, step, ring.delay)));
  }
  return all;
}

void SpecializedLoop::end(const Value& step) {
  for (std::size_t r = 0; r < blocks_.rings.size(); ++r)
    if (blocks_.rings[r].follows_grid && !options_.manual_consumed_barriers) release(r, step);
  for (std::size_t i = blocks_.inputs; i < blocks_.operands.size(); ++i)
    if (!blocks_.operands[i].is_whole) store(i, step);
}

// What the step `delay` before has read.
void SpecializedLoop::release(std::size_t r, const Value& step) const {
  const Ring& ring = blocks_.rings[r];
  const auto arrive = [&] {
    gpu::barrier_arrive(consumed(r, room_before(ring, step, ring.delay)), at_);
  };
  const Value delay(ring.delay);
  if (ring.delay == 0) return arrive();
  Value is_there = ring.delay == 1 ? apply(Op::Ne, step, Value(0)) : apply(Op::Ge, step, delay);
  // Where the text says the turn it says that of most.
  if (turn_.has_value()) is_there = apply(Op::Or, apply(Op::Ge, *turn_, delay), is_there);
  when_(is_there, arrive);
}

// Products of the last steps may be under way.
void SpecializedLoop::release_last() const {
  int most = 0;
  for (const Ring& ring : blocks_.rings) most = std::max(most, ring.delay);
  if (most > 0) gpu::wgmma_wait(0, at_);
  for (std::size_t r = 0; r < blocks_.rings.size(); ++r) {
    const Ring& ring = blocks_.rings[r];
    if (!ring.follows_grid) gpu::barrier_arrive(consumed(r, room_of(ring, Value(0))), at_);
    for (int left = ring.follows_grid ? ring.delay : 0; left > 0; --left)
      when_(apply(Op::Ge, blocks_.steps, Value(left)), [&] {
        const Value step = apply(Op::Sub, blocks_.steps, Value(left));
        gpu::barrier_arrive(consumed(r, room_of(ring, step)), at_);
      });
  }
}

void SpecializedLoop::meet() const {
  if (options_.num_compute_wgs == 1) return;
  gpu::barrier_arrive(allocations_.meeting[0].at(0, at_), at_);
  gpu::barrier_wait(allocations_.meeting[0].at(0, at_), at_);
}

// When all have stored their part, one copies it back. Then all know that the room that is next has
// been read.
void SpecializedLoop::store(std::size_t output, const Value& step) {
  const CutArray& o = blocks_.operands[output];
  const bool is_one = options_.num_compute_wgs == 1;
  const auto by_first = [&](auto f) {
    if (is_one)
      f();
    else
      when_(apply(Op::Eq, thread_, Value(0)), f);
  };
  const auto await = [&](int n) { gpu::wait_smem_to_gmem(n, {.wait_read_only = true}, at_); };
  when_(blocks_.is_last(o, step), [&] {
    gpu::commit_smem(at_);
    if (!is_one && o.slots > 1) by_first([&] { await(o.slots - 2); });
    meet();
    by_first([&] {
      blocks_.store(o, rooms_[output], step);
      if (is_one || o.slots == 1) await(o.slots - 1);
    });
    if (o.slots == 1) return meet();
    const Value next = apply(Op::Add, rooms_[output], Value(1));
    palladium::store(number_of_room(o), apply(Op::Rem, next, Value(o.slots)));
  });
}

gpu::PipelineAllocations pipeline_allocations(
    const gpu::EmitPipelineWarpSpecializedOptions& options, const std::vector<Ref>& arrays,
    Location at) {
  Recorder& recorder = trace::recorder_by_hand("get_allocations", at);
  const Blocks blocks = blocks_of(recorder, options, arrays, true, at);
  return allocate(recorder, blocks, options.num_compute_wgs, true, at);
}

void emit_pipeline_warp_specialized(PipelineBody& body,
                                    const gpu::EmitPipelineWarpSpecializedOptions& options,
                                    const std::vector<Ref>& arrays,
                                    const gpu::PipelineAllocations* allocations, Location at) {
  Recorder& recorder = trace::recorder_by_hand(what, at);
  SpecializedLoop(recorder, body, options, arrays, allocations, at).run();
}

}  // namespace detail

std::vector<Value> gpu::PipelineRun::run(const std::vector<Ref>& refs,
                                         const std::vector<Value>& init) const {
  return loop_->compute(refs, init);
}

}  // namespace palladium
