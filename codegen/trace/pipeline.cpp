// emit_pipeline: a loop whose blocks are copied ahead, spelled with barriers and copies.
#include "palladium/gpu/pipeline.hpp"

#include <algorithm>
#include <string>

#include "codegen/trace/body.hpp"
#include "codegen/trace/pipeline_blocks.hpp"
#include "palladium/gpu.hpp"
#include "palladium/ops.hpp"

namespace palladium::detail {

using trace::Blocks;
using trace::CutArray;
using trace::Op;
using trace::Recorder;
using trace::Ring;

namespace {

class EmittedLoop {
 public:
  EmittedLoop(Recorder& recorder, PipelineBody& body, const gpu::EmitPipelineOptions& o,
              const std::vector<Ref>& arrays, Location at)
      : recorder_(recorder),
        body_(body),
        blocks_(recorder, "emit_pipeline",
                {o.grid, o.in_specs, o.out_specs, o.max_concurrent_steps}, arrays, at),
        at_(at) {}

  std::vector<Value> run(const std::vector<Value>& init);

 private:
  ScratchTypes scratch() const;
  void open(Refs scratch);
  void begin(const Value& step);
  void end(const Value& step);
  void store(const CutArray& o, std::size_t number, const Value& step);
  void refill(const Ring& ring, const Value& step);

  Value slot_of(int slots, const Value& step) const {
    return blocks_.apply(Op::Rem, step, Value(slots));
  }
  Ref barrier(const Ring& ring, const Value& slot) const {
    return recorder_.ref(ring.ready).at({thread_, slot}, at_);
  }
  Ref number_of_room(const CutArray& o) const { return recorder_.ref(o.room); }

  Recorder& recorder_;
  PipelineBody& body_;
  Blocks blocks_;
  Location at_;
  Value thread_ = Value(0);
  std::vector<Value> rooms_;  // that this step has of each operand
};

ScratchTypes EmittedLoop::scratch() const {
  ScratchTypes all;
  for (std::size_t i = 0; i < blocks_.operands.size(); ++i) {
    const CutArray& o = blocks_.operands[i];
    if (o.is_whole) continue;
    all.list.push_back({"", blocks_.rooms_of(o)});
    if (i >= blocks_.inputs) all.list.push_back({"", gpu::REGS({}, i32, at_)});
  }
  return all;
}

// Asks for the blocks of the first steps.
void EmittedLoop::open(Refs scratch) {
  int next = 0;
  for (std::size_t i = 0; i < blocks_.operands.size(); ++i) {
    CutArray& o = blocks_.operands[i];
    if (o.is_whole) continue;
    o.rooms = recorder_.id(scratch[next++], "emit_pipeline", at_);
    if (i < blocks_.inputs) continue;
    o.room = recorder_.id(scratch[next++], "emit_pipeline", at_);
    palladium::store(number_of_room(o), Value(0));
  }
  if (blocks_.rings.empty()) return;
  const trace::Threads& threads = recorder_.threads[recorder_.body];
  if (threads.count > 1) thread_ = axis_index(threads.name.c_str(), at_);
  for (Ring& ring : blocks_.rings) {
    const trace::Extents all{threads.count, ring.slots};
    ring.ready = recorder_.share(blocks_.barriers(all, ring.inputs.size()), at_);
    for (int step = 0; step < ring.slots; ++step) {
      const auto fetch = [&] { blocks_.fetch(ring, step, step, barrier(ring, step)); };
      if (blocks_.known_steps || !ring.follows_grid)
        fetch();
      else
        when(blocks_.apply(Op::Lt, Value(step), blocks_.steps), fetch);
    }
  }
  for (const Ring& ring : blocks_.rings)
    if (!ring.follows_grid) gpu::barrier_wait(barrier(ring, Value(0)), at_);
}

void EmittedLoop::begin(const Value& step) {
  for (const Ring& ring : blocks_.rings)
    if (ring.follows_grid) gpu::barrier_wait(barrier(ring, slot_of(ring.slots, step)), at_);
  int rooms = 0;
  for (std::size_t i = blocks_.inputs; i < blocks_.operands.size(); ++i)
    if (const CutArray& o = blocks_.operands[i]; !o.is_whole)
      rooms = rooms == 0 ? o.slots : std::min(rooms, o.slots);
  if (rooms > 0) gpu::wait_smem_to_gmem(rooms - 1, {.wait_read_only = true}, at_);
  rooms_.assign(blocks_.operands.size(), Value(0));
  for (std::size_t i = 0; i < blocks_.operands.size(); ++i) {
    const CutArray& o = blocks_.operands[i];
    if (o.is_whole) continue;
    if (i >= blocks_.inputs)
      rooms_[i] = load(number_of_room(o));
    else if (o.follows_grid)
      rooms_[i] = slot_of(o.slots, step);
  }
}

// Copies back what no step behind this one has, to go on with the next room.
void EmittedLoop::store(const CutArray& o, std::size_t number, const Value& step) {
  when(blocks_.is_last(o, step), [&] {
    blocks_.store(o, rooms_[number], step, false);
    const Value next = slot_of(o.slots, blocks_.apply(Op::Add, rooms_[number], Value(1)));
    palladium::store(number_of_room(o), next);
  });
}

// The room of the step `delay` before this one gets the block of the step that has it next.
void EmittedLoop::refill(const Ring& ring, const Value& step) {
  if (!ring.follows_grid || blocks_.known_steps == ring.slots) return;
  const Value ahead = blocks_.apply(Op::Add, step, Value(ring.slots - ring.delay));
  Value is_there = blocks_.apply(Op::Lt, ahead, blocks_.steps);
  if (ring.delay > 0)
    is_there = blocks_.apply(Op::And, is_there, blocks_.apply(Op::Ge, step, Value(ring.delay)));
  when(is_there, [&] {
    const Value slot = slot_of(ring.slots, ahead);
    blocks_.fetch(ring, ahead, slot, barrier(ring, slot));
  });
}

void EmittedLoop::end(const Value& step) {
  if (blocks_.has_outputs()) {
    gpu::commit_smem(at_);
    for (std::size_t i = blocks_.inputs; i < blocks_.operands.size(); ++i)
      if (!blocks_.operands[i].is_whole) store(blocks_.operands[i], i, step);
    gpu::commit_smem_to_gmem_group(at_);
  }
  for (const Ring& ring : blocks_.rings) refill(ring, step);
}

std::vector<Value> EmittedLoop::run(const std::vector<Value>& init) {
  for (const CutArray& o : blocks_.operands)
    if (!o.spec.collective_axes.empty())
      blocks_.fail(o.name +
                   " has collective_axes; what blocks share a thread of its own copies: "
                   "plgpu::emit_pipeline_warp_specialized");
  const auto count = static_cast<int>(init.size());
  std::vector<Value> last(init.size());
  const Expression expression(at_);
  Building scope(scratch(), {}, expression);
  const Parameter all{Parameter::Kind::rest, 0};
  int first = 0;
  scope.operands().match(&all, 1, &first);
  open(scope.operands().rest(first));
  {
    const Bound lo(0, at_), hi(blocks_.steps, at_);
    Building loop(lo, hi, {}, init.data(), count);
    const Value step = loop.index();
    std::vector<Value> carries;
    for (int i = 0; i < count; ++i) carries.push_back(loop.carry(i));
    begin(step);
    const std::vector<Value> next = trace::call_body(body_, blocks_, blocks_.indices_of(step),
                                                     blocks_.blocks_of(rooms_), carries);
    end(step);
    loop.close(next.data(), count);
    for (int i = 0; i < count; ++i) last[static_cast<std::size_t>(i)] = loop.result(i);
  }
  if (blocks_.has_outputs()) gpu::wait_smem_to_gmem(0, {}, at_);
  scope.close(last.data(), count);
  for (int i = 0; i < count; ++i) last[static_cast<std::size_t>(i)] = scope.result(i);
  return last;
}

}  // namespace

std::vector<Value> emit_pipeline(PipelineBody& body, const gpu::EmitPipelineOptions& options,
                                 const std::vector<Ref>& arrays, Location at) {
  Recorder& recorder = Recorder::current("emit_pipeline", at);
  return EmittedLoop(recorder, body, options, arrays, at).run(options.init_carry);
}

}  // namespace palladium::detail
