// emit_pipeline: a loop whose blocks are copied ahead, spelled with barriers and copies.
#include "palladium/gpu/pipeline.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "codegen/trace/body.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "palladium/ops.hpp"

namespace palladium::detail {

using graph::SubscriptDim;
using trace::Attr;
using trace::Extents;
using trace::Op;
using trace::Recorder;
using trace::Type;
using trace::ValueId;

namespace {

/// An array, and how the pipeline cuts it.
struct Operand {
  std::string name;  // "args[0]"
  BlockSpec spec;
  ValueId array;
  Type type;      // of the array
  Extents block;  // of a block: what the body gets
  bool is_whole;  // the body gets the array
  // Of the blocks, and the number of the room of an output.
  ValueId rooms = graph::no_value, slot = graph::no_value;
};

}  // namespace

struct Pipeline::State {
  State(Recorder& recorder, const gpu::EmitPipelineOptions& options, Location at)
      : recorder(recorder), options(options), at(at) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw CompileError(at, "emit_pipeline: " + what);
  }
  Value apply(Op op, const Value& a, const Value& b) const {
    return trace::elementwise(op, {a, b}, at);
  }
  Value slot_of(const Value& step) const { return apply(Op::Rem, step, Value(slots)); }
  Ref barrier(const Value& step) const {
    return recorder.ref(barriers).at({thread, slot_of(step)}, at);
  }
  Ref room(const Operand& o, const Value& number) const {
    return recorder.ref(o.rooms).at(number, at);
  }
  Ref number_of_room(const Operand& o) const { return recorder.ref(o.slot).at(0, at); }

  void add(const BlockSpec& spec, const Ref& array, std::string name);
  void set_steps();
  std::vector<Value> indices_of(const Value& step) const;
  std::vector<Value> starts_of(const Operand& o, const Value& step) const;
  Ref view_of(const Operand& o, const Value& step) const;
  void fetch(const Value& step);
  void send(Operand& o, const Value& step);
  Value is_last(const Operand& o, const Value& step) const;
  bool has_staged(std::size_t begin, std::size_t end) const {
    return std::any_of(operands.begin() + static_cast<std::ptrdiff_t>(begin),
                       operands.begin() + static_cast<std::ptrdiff_t>(end),
                       [](const Operand& o) { return !o.is_whole; });
  }
  bool fetches() const { return has_staged(0, inputs); }
  bool sends() const { return has_staged(inputs, operands.size()); }

  Recorder& recorder;
  const gpu::EmitPipelineOptions& options;
  Location at;
  std::vector<Operand> operands;  // inputs first
  std::size_t inputs = 0;
  int slots = 1;
  std::optional<std::int64_t> known_steps = {};
  Value steps, thread = Value(0);
  ValueId barriers = graph::no_value;
  std::vector<Value> indices;  // of this step
  std::vector<Ref> blocks;
  std::vector<Value> rooms;  // of outputs: which of them this step has
};

// ---- what there is

void Pipeline::State::add(const BlockSpec& spec, const Ref& array, std::string name) {
  const ValueId id = recorder.id(array, "emit_pipeline", at);
  const Type type = recorder.graph[id].type;
  if (type.space != Space::gmem) fail(name + " is " + graph::to_string(type) + ", and not in GMEM");
  const bool is_whole = spec.whole || spec.memory_space.space == Space::gmem;
  Operand o{std::move(name), spec, id, type, {}, is_whole};
  if (!is_whole && spec.block_shape.size() != type.shape.size())
    fail(o.name + ": the block has " + std::to_string(spec.block_shape.size()) +
         " dimensions, and the array is " + graph::to_string(type));
  for (std::size_t d = 0; !is_whole && d < type.shape.size(); ++d) {
    const BlockDim& b = spec.block_shape[d];
    const std::string where = o.name + ": dimension " + std::to_string(d) + " of the block ";
    if (b.kind == BlockDim::Kind::bounded_slice || b.kind == BlockDim::Kind::indirect ||
        b.pad_lo + b.pad_hi > 0)
      fail(where + "is a number of elements, pl::squeezed, or pl::Element without padding");
    if (b.kind == BlockDim::Kind::blocked && type.shape[d] % b.size != 0)
      fail(where + "has " + std::to_string(b.size) + " elements, which do not divide the " +
           std::to_string(type.shape[d]) + " of the array");
    if (b.kind != BlockDim::Kind::squeezed) o.block.push_back(b.size);
  }
  operands.push_back(std::move(o));
}

void Pipeline::State::set_steps() {
  slots = options.max_concurrent_steps;
  if (slots < 1) fail("max_concurrent_steps must be 1 or more, given " + std::to_string(slots));
  std::int64_t product = 1;
  bool is_known = true;
  steps = Value(1);
  for (const Value& size : options.grid) {
    if (trace::is_literal(size)) {
      const std::int64_t n = trace::literal(size).integer;
      if (n < 1)
        fail("All elements in the grid must be strictly positive, given " + std::to_string(n));
      product *= n;
    }
    is_known = is_known && trace::is_literal(size);
    steps = apply(Op::Mul, steps, size);
  }
  if (!is_known) return;
  if (product > INT32_MAX) fail("a pipeline has at most 2^31 - 1 steps");
  known_steps = product;
  steps = Value(product);
  slots = static_cast<int>(std::min<std::int64_t>(slots, product));
}

Pipeline::Pipeline(const gpu::EmitPipelineOptions& options, std::vector<Ref> arrays, Location at)
    : state_(new State(Recorder::current("emit_pipeline", at), options, at)) {
  State& s = *state_;
  const std::size_t inputs = options.in_specs.size();
  if (arrays.size() != inputs + options.out_specs.size())
    s.fail("expected " + std::to_string(inputs) + " inputs and " +
           std::to_string(options.out_specs.size()) +
           " outputs, as there are specifications, given " + std::to_string(arrays.size()) +
           " Refs");
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (i < inputs)
      s.add(options.in_specs[i], arrays[i], "args[" + std::to_string(i) + "]");
    else
      s.add(options.out_specs[i - inputs], arrays[i],
            "outputs[" + std::to_string(i - inputs) + "]");
  s.inputs = inputs;
  s.set_steps();
}

Pipeline::~Pipeline() { delete state_; }

ScratchTypes Pipeline::scratch() const {
  ScratchTypes all;
  const State& s = *state_;
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const Operand& o = s.operands[i];
    if (o.is_whole) continue;
    Extents rooms = o.block;
    rooms.insert(rooms.begin(), s.slots);
    all.list.push_back({"", gpu::SMEM(trace::to_shape(rooms), o.type.dtype, s.at)});
    if (i >= s.inputs) all.list.push_back({"", gpu::REGS({1}, i32, s.at)});
  }
  return all;
}

// ---- steps

// Row by row.
std::vector<Value> Pipeline::State::indices_of(const Value& step) const {
  std::vector<Value> found(options.grid.size());
  Value rest = step;
  for (std::size_t d = found.size(); d-- > 0;) {
    found[d] = d == 0 ? rest : apply(Op::Rem, rest, options.grid[d]);
    if (d > 0) rest = apply(Op::Div, rest, options.grid[d]);
  }
  return found;
}

// Of the block in each dimension of its array.
std::vector<Value> Pipeline::State::starts_of(const Operand& o, const Value& step) const {
  std::vector<BlockIndex> found;
  if (o.spec.index_map) {
    const std::vector<Value> ids = indices_of(step);
    IndexMapBase& map = *Access::function(o.spec.index_map);
    if (!map.call(ids.data(), static_cast<int>(ids.size()), nullptr, 0, found))
      fail(o.name + ": the index map takes a pl::Index per axis of the grid, of which there are " +
           std::to_string(ids.size()));
  } else {
    found.assign(o.type.shape.size(), BlockIndex(Value(0)));
  }
  if (found.size() != o.type.shape.size())
    fail(o.name + ": the index map returns " + std::to_string(found.size()) +
         " indices for a block of " + std::to_string(o.type.shape.size()) + " dimensions");
  std::vector<Value> starts;
  for (std::size_t d = 0; d < found.size(); ++d) {
    const BlockDim& b = o.spec.block_shape[d];
    const bool by_blocks = b.kind == BlockDim::Kind::blocked && b.size > 1;
    starts.push_back(by_blocks ? apply(Op::Mul, found[d].start, Value(b.size)) : found[d].start);
  }
  return starts;
}

Ref Pipeline::State::view_of(const Operand& o, const Value& step) const {
  graph::Subscript chosen;
  std::vector<ValueId> args{o.array};
  bool is_all = true;
  const std::vector<Value> starts = starts_of(o, step);
  for (std::size_t d = 0; d < starts.size(); ++d) {
    const BlockDim& b = o.spec.block_shape[d];
    const bool is_slice = b.kind != BlockDim::Kind::squeezed;
    SubscriptDim dim{.is_slice = is_slice, .size = is_slice ? b.size : 1};
    if (trace::is_literal(starts[d])) {
      dim.start = trace::literal(starts[d]).integer;
    } else {
      dim.dynamic = true;
      args.push_back(recorder.i32_scalar(starts[d], "emit_pipeline", "an index of a block", at));
    }
    is_all = is_all && is_slice && !dim.dynamic && dim.size == o.type.shape[d];
    chosen.dims.push_back(dim);
  }
  if (is_all) return recorder.ref(o.array);
  return recorder.ref(
      recorder.builder().add(Op::At, std::move(args), Attr{chosen.encode(), 0}, {}, at));
}

void Pipeline::State::fetch(const Value& step) {
  for (std::size_t i = 0; i < inputs; ++i)
    if (const Operand& o = operands[i]; !o.is_whole) {
      const Ref from = view_of(o, step), to = room(o, slot_of(step)), done = barrier(step);
      gpu::copy_gmem_to_smem(from, to, done, {}, at);
    }
}

// Whether the step behind has another block, or there is none.
Value Pipeline::State::is_last(const Operand& o, const Value& step) const {
  const Value next = apply(Op::Add, step, Value(1));
  Value last = apply(Op::Ge, next, steps);
  const std::vector<Value> here = starts_of(o, step), there = starts_of(o, next);
  for (std::size_t d = 0; d < here.size(); ++d)
    if (!trace::is_literal(here[d]) || !trace::is_literal(there[d]))
      last = apply(Op::Or, last, apply(Op::Ne, here[d], there[d]));
  return last;
}

void Pipeline::open(Refs scratch) {
  State& s = *state_;
  int next = 0;
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    Operand& o = s.operands[i];
    if (o.is_whole) continue;
    o.rooms = s.recorder.id(scratch[next++], "emit_pipeline", s.at);
    if (i < s.inputs) continue;
    o.slot = s.recorder.id(scratch[next++], "emit_pipeline", s.at);
    store(s.number_of_room(o), Value(0));
  }
  if (!s.fetches()) return;
  Recorder& recorder = s.recorder;
  const trace::Threads& threads = recorder.threads[recorder.body];
  if (threads.count > 1) s.thread = axis_index(threads.name.c_str(), s.at);
  const auto staged =
      std::count_if(s.operands.begin(), s.operands.begin() + static_cast<std::ptrdiff_t>(s.inputs),
                    [](const Operand& o) { return !o.is_whole; });
  const Extents all{threads.count, s.slots};
  s.barriers = recorder.share(Type::ref(u64, all, Space::barrier, static_cast<int>(staged)), s.at);
  for (int step = 0; step < s.slots; ++step)
    if (s.known_steps)
      s.fetch(Value(step));
    else
      when(s.apply(Op::Lt, Value(step), s.steps), [&] { s.fetch(Value(step)); });
}

Value Pipeline::steps() const { return state_->steps; }
const std::vector<Value>& Pipeline::indices() const { return state_->indices; }
const Ref& Pipeline::block(std::size_t number) const { return state_->blocks[number]; }

void Pipeline::begin(const Value& step) {
  State& s = *state_;
  s.indices = s.indices_of(step);
  s.blocks.clear();
  s.rooms.assign(s.operands.size(), Value(0));
  if (s.fetches()) gpu::barrier_wait(s.barrier(step), s.at);
  if (s.sends()) gpu::wait_smem_to_gmem(s.slots - 1, {.wait_read_only = true}, s.at);
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const Operand& o = s.operands[i];
    if (!o.is_whole) s.rooms[i] = i < s.inputs ? s.slot_of(step) : Value(load(s.number_of_room(o)));
    s.blocks.push_back(o.is_whole ? s.recorder.ref(o.array) : s.room(o, s.rooms[i]));
  }
}

void Pipeline::end(const Value& step) {
  State& s = *state_;
  if (s.sends()) {
    gpu::commit_smem(s.at);
    for (std::size_t i = s.inputs; i < s.operands.size(); ++i) {
      const Operand& o = s.operands[i];
      if (o.is_whole) continue;
      when(s.is_last(o, step), [&] {
        gpu::copy_smem_to_gmem(s.blocks[i], s.view_of(o, step), {.commit_group = false}, s.at);
        const Value next = s.slot_of(s.apply(Op::Add, s.rooms[i], Value(1)));
        store(s.number_of_room(o), next);
      });
    }
    gpu::commit_smem_to_gmem_group(s.at);
  }
  if (!s.fetches() || s.known_steps == s.slots) return;
  const Value ahead = s.apply(Op::Add, step, Value(s.slots));
  when(s.apply(Op::Lt, ahead, s.steps), [&] { s.fetch(ahead); });
}

void Pipeline::close() {
  if (state_->sends()) gpu::wait_smem_to_gmem(0, {}, state_->at);
}

}  // namespace palladium::detail
