#include "codegen/trace/pipeline_blocks.hpp"

#include <algorithm>

#include "codegen/base/dim.hpp"
#include "codegen/trace/accumulators.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "palladium/gpu/pipeline.hpp"

namespace palladium::trace {

using detail::Access;
using graph::SubscriptDim;

namespace {

/// Whether the extent is a multiple of n in every call.
bool are_multiples(const Dim& extent, std::int64_t n) {
  if (extent.is_static()) return extent.value() % n == 0;
  const DimBinding* const binding = DimBinding::current();
  const Dim is = binding ? binding->resolve(extent) : extent;
  const DimNode node = dim_node(is);
  const bool is_asked = binding && node.op == palladium::detail::DimOp::symbol &&
                        binding->required(node.symbol).multiple % n == 0;
  return is_asked || promised(extent).multiple % n == 0 || multiple_of(is, DimFacts{}) % n == 0;
}

}  // namespace

void Blocks::fail(const std::string& problem) const {
  throw CompileError(at_, what_ + ": " + problem);
}

Blocks::Blocks(Recorder& recorder, const char* what, const Cut& cut, const std::vector<Ref>& arrays,
               Location at)
    : inputs(cut.in_specs.size()), recorder_(recorder), what_(what), grid_(cut.grid), at_(at) {
  if (arrays.size() != inputs + cut.out_specs.size())
    fail("expected " + std::to_string(inputs) + " inputs and " +
         std::to_string(cut.out_specs.size()) + " outputs, as there are specifications, given " +
         std::to_string(arrays.size()) + " Refs");
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (i < inputs)
      add(cut.in_specs[i], arrays[i], "args[" + std::to_string(i) + "]");
    else
      add(cut.out_specs[i - inputs], arrays[i], "outputs[" + std::to_string(i - inputs) + "]");
  set_steps(cut.max_concurrent_steps);
  for (CutArray& o : operands) o.follows_grid = !o.is_whole && finds_grid_in(o);
  set_slots(cut);
  set_rings(cut.one_ring_each);
}

// ---- what there is

void Blocks::add(const BlockSpec& spec, const Ref& array, std::string name) {
  const ValueId id = recorder_.id(array, what_.c_str(), at_);
  const bool is_whole = spec.whole || spec.memory_space.space == Space::gmem;
  const Type type = recorder_.graph[id].type;
  const Shape shape = recorder_.shape_of(id);
  if (type.space != Space::gmem) fail(name + " is " + graph::to_string(type) + ", and not in GMEM");
  CutArray o{.name = std::move(name),
             .spec = spec,
             .array = id,
             .type = type,
             .block = {},
             .is_whole = is_whole};
  if (!is_whole && spec.block_shape.size() != type.shape.size())
    fail(o.name + ": the block has " + std::to_string(spec.block_shape.size()) +
         " dimensions, and the array is " + graph::to_string(type));
  for (std::size_t d = 0; !is_whole && d < type.shape.size(); ++d) {
    const BlockDim& b = spec.block_shape[d];
    const std::string where = o.name + ": dimension " + std::to_string(d) + " of the block ";
    if (b.kind == BlockDim::Kind::bounded_slice || b.kind == BlockDim::Kind::indirect ||
        b.kind == BlockDim::Kind::bounded || b.pad_lo + b.pad_hi > 0)
      fail(where + "is a number of elements, pl::squeezed, or pl::Element without padding");
    o.leaves |=
        b.kind == BlockDim::Kind::blocked && !are_multiples(shape[static_cast<int>(d)], b.size);
    if (b.kind != BlockDim::Kind::squeezed) o.block.push_back(b.size);
  }
  if (o.leaves && spec.fill.value_or(0) != 0)
    fail(o.name + ": beyond the array blocks of a pipeline hold zeros, and no other number");
  operands.push_back(std::move(o));
}

void Blocks::set_steps(int slots) {
  if (slots < 1) fail("max_concurrent_steps must be 1 or more, given " + std::to_string(slots));
  std::int64_t product = 1;
  bool is_known = true;
  steps = Value(1);
  for (const Value& size : grid_) {
    if (is_literal(size)) {
      const std::int64_t n = literal(size).integer;
      if (n < 1)
        fail("All elements in the grid must be strictly positive, given " + std::to_string(n));
      product *= n;
    }
    is_known = is_known && is_literal(size);
    // Who counts steps over several pipelines counts none for less than none.
    steps = apply(Op::Mul, steps, is_literal(size) ? size : apply(Op::Max, size, Value(0)));
  }
  if (!is_known) return;
  if (product > INT32_MAX) fail("a pipeline has at most 2^31 - 1 steps");
  known_steps = product;
  steps = Value(product);
}

void Blocks::set_slots(const Cut& cut) {
  for (CutArray& o : operands) {
    const Buffered& said = o.spec.pipeline_mode;
    if (said.given && said.buffer_count < 1)
      fail(o.name + ": pl::Buffered has at least one buffer, given " +
           std::to_string(said.buffer_count));
    o.slots = said.given ? said.buffer_count : o.follows_grid ? cut.max_concurrent_steps : 1;
    if (o.spec.delay_release < 0)
      fail(o.name + ": delay_release is 0 or more, given " + std::to_string(o.spec.delay_release));
    if (o.follows_grid && o.slots <= o.spec.delay_release)
      fail(o.name + ": max_concurrent_steps, " + std::to_string(o.slots) +
           ", must be greater than delay_release, " + std::to_string(o.spec.delay_release));
    if (!o.follows_grid && !cut.goes_on) o.slots = 1;  // it is filled once
    if (known_steps && !cut.goes_on)
      o.slots = static_cast<int>(std::min<std::int64_t>(o.slots, *known_steps));
  }
}

void Blocks::set_rings(bool one_each) {
  for (std::size_t i = 0; i < inputs; ++i) {
    const CutArray& o = operands[i];
    if (o.is_whole) continue;
    const auto same = std::ranges::find_if(rings, [&](const Ring& r) {
      return !one_each && r.slots == o.slots && r.delay == o.spec.delay_release &&
             r.follows_grid == o.follows_grid && r.collective_axes == o.spec.collective_axes;
    });
    if (same != rings.end())
      same->inputs.push_back(i);
    else
      rings.push_back({{i}, o.slots, o.spec.delay_release, o.follows_grid, o.spec.collective_axes});
  }
}

bool Blocks::has_outputs() const {
  return std::any_of(operands.begin() + static_cast<std::ptrdiff_t>(inputs), operands.end(),
                     [](const CutArray& o) { return !o.is_whole; });
}

Scoped Blocks::rooms_of(const CutArray& o) const {
  Extents rooms = o.block;
  rooms.insert(rooms.begin(), o.slots);
  return gpu::SMEM(to_shape(rooms), o.type.dtype, {.transforms = o.spec.transforms}, at_);
}

Type Blocks::type_of_rooms(const CutArray& o) const {
  const Scoped rooms = rooms_of(o);
  if (const std::string problem = transform_problem(rooms); !problem.empty())
    fail("the block of " + o.name + " " + problem);
  return Type::ref(o.type.dtype, extents(rooms.type.shape), Space::smem, 0, swizzle_given(rooms));
}

Ref Blocks::room(const CutArray& o, const Value& number) const {
  return recorder_.ref(o.rooms).at(number, at_);
}

// ---- steps

std::vector<Value> Blocks::indices_of(const Value& step) const {
  std::vector<Value> found(grid_.size());
  Value rest = step;
  for (std::size_t d = found.size(); d-- > 0;) {
    found[d] = d == 0 ? rest : apply(Op::Rem, rest, grid_[d]);
    if (d > 0) rest = apply(Op::Div, rest, grid_[d]);
  }
  return found;
}

// Of the block in each dimension of its array.
std::vector<Value> Blocks::starts_of(const CutArray& o, const std::vector<Value>& indices) const {
  std::vector<BlockIndex> found;
  if (o.spec.index_map) {
    detail::IndexMapBase& map = *Access::function(o.spec.index_map);
    if (!map.call(indices.data(), static_cast<int>(indices.size()), nullptr, 0, found))
      fail(o.name + ": the index map takes a pl::Index per axis of the grid, of which there are " +
           std::to_string(indices.size()));
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

// Whether the map makes anything of what stands for the indices here: what nobody uses in the end.
bool Blocks::finds_grid_in(const CutArray& o) const {
  std::vector<ValueId> indices;
  std::vector<Value> values;
  for (std::size_t d = 0; d < grid_.size(); ++d) {
    indices.push_back(recorder_.builder().constant(i32, 0, {}, at_));
    values.push_back(recorder_.value(indices.back()));
  }
  std::vector<ValueId> from;
  for (const Value& start : starts_of(o, values))
    if (!is_literal(start)) from.push_back(recorder_.id(start, what_.c_str(), at_));
  std::vector<bool> seen(recorder_.graph.insts.size());
  while (!from.empty()) {
    const ValueId v = from.back();
    from.pop_back();
    if (seen[graph::index(v)]) continue;
    seen[graph::index(v)] = true;
    const graph::Inst& inst = recorder_.graph[v];
    if (std::ranges::find(indices, v) != indices.end() || inst.op == Op::Get) return true;
    from.insert(from.end(), inst.args.begin(), inst.args.end());
  }
  return false;
}

Ref Blocks::view_of(const CutArray& o, const Value& step) const {
  graph::Subscript chosen;
  std::vector<ValueId> args{o.array};
  bool is_all = true;
  const std::vector<Value> starts = starts_of(o, indices_of(step));
  for (std::size_t d = 0; d < starts.size(); ++d) {
    const BlockDim& b = o.spec.block_shape[d];
    const bool is_slice = b.kind != BlockDim::Kind::squeezed;
    SubscriptDim dim{.is_slice = is_slice, .size = is_slice ? b.size : 1};
    if (is_literal(starts[d])) {
      dim.start = literal(starts[d]).integer;
    } else {
      dim.dynamic = true;
      args.push_back(recorder_.i32_scalar(starts[d], what_.c_str(), "an index of a block", at_));
    }
    is_all = is_all && is_slice && !dim.dynamic && dim.size == o.type.shape[d];
    chosen.dims.push_back(dim);
  }
  if (is_all) return recorder_.ref(o.array);
  return recorder_.ref(
      recorder_.builder().add(Op::At, std::move(args), Attr{chosen.encode(), 0}, {}, at_));
}

Value Blocks::is_last(const CutArray& o, const Value& step) const {
  const Value next = apply(Op::Add, step, Value(1));
  Value last = apply(Op::Ge, next, steps);
  if (!o.follows_grid) return last;
  const std::vector<Value> here = starts_of(o, indices_of(step));
  const std::vector<Value> there = starts_of(o, indices_of(next));
  for (std::size_t d = 0; d < here.size(); ++d)
    if (!is_literal(here[d]) || !is_literal(there[d]))
      last = apply(Op::Or, last, apply(Op::Ne, here[d], there[d]));
  return last;
}

void Blocks::fetch(const Ring& ring, const Value& step, const Value& slot, const Ref& ready) const {
  for (const std::size_t i : ring.inputs) {
    const Ref from = view_of(operands[i], step), to = room(operands[i], slot);
    const gpu::OOBFillMode beyond =
        operands[i].leaves ? operands[i].spec.oob_fill_mode : gpu::OOBFillMode::PROMISE_IN_BOUNDS;
    gpu::copy_gmem_to_smem(from, to, ready,
                           {.collective_axes = ring.collective_axes, .oob_mode = beyond}, at_);
  }
}

void Blocks::store(const CutArray& o, const Value& from, const Value& step,
                   bool commit_group) const {
  gpu::copy_smem_to_gmem(room(o, from), view_of(o, step),
                         {.commit_group = commit_group, .clipped = o.leaves}, at_);
}

std::vector<Ref> Blocks::blocks_of(const std::vector<Value>& rooms) const {
  std::vector<Ref> blocks;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const CutArray& o = operands[i];
    blocks.push_back(o.is_whole ? recorder_.ref(o.array) : room(o, rooms[i]));
  }
  return blocks;
}

std::vector<Value> call_body(detail::PipelineBody& body, const Blocks& blocks,
                             const std::vector<Value>& indices, const std::vector<Ref>& refs,
                             const std::vector<Value>& carries) {
  std::vector<Value> next;
  if (!body.call(indices, refs, carries, next))
    blocks.fail("the body takes the indices, then " + std::to_string(refs.size()) + " Refs and " +
                std::to_string(carries.size()) +
                " carries (pl::Value; a generic lambda takes no carries)");
  return next;
}

}  // namespace palladium::trace
