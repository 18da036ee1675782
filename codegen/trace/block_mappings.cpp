// The arrays of a call and what their specifications make of them: block mappings, still without
// index maps, and aliases.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/trace/operands.hpp"
#include "codegen/trace/tracer.hpp"

namespace palladium::trace {
namespace {

/// The whole array, in global memory.
const BlockSpec& index_operand_spec() {
  static const BlockSpec whole({.memory_space = {Space::gmem}}, Location{});
  return whole;
}

std::size_t count_of(const std::vector<BlockSpec>& specs) {
  std::size_t n = 0;
  for (const BlockSpec& s : specs) n += s.components.empty() ? 1 : count_of(s.components);
  return n;
}

const BlockSpec& spec_of(const std::vector<BlockSpec>& specs, int i) {
  return specs.empty() ? whole_array() : specs[static_cast<std::size_t>(i)];
}

}  // namespace

std::string text(const std::vector<BlockDim>& block) {
  std::string result = "[";
  for (const BlockDim& d : block) {
    if (result.size() > 1) result += ",";
    switch (d.kind) {
    case BlockDim::Kind::blocked: result += std::to_string(d.size); break;
    case BlockDim::Kind::squeezed: result += "squeezed"; break;
    case BlockDim::Kind::element: result += "Element(" + std::to_string(d.size) + ")"; break;
    case BlockDim::Kind::bounded_slice:
      result += "BoundedSlice(" + std::to_string(d.size) + ")";
      break;
    case BlockDim::Kind::whole: result += "all"; break;
    case BlockDim::Kind::bounded: result += "bounded(" + std::to_string(d.size) + ")"; break;
    case BlockDim::Kind::indirect: result += "Indirect(" + std::to_string(d.size) + ")"; break;
    }
  }
  return result + "]";
}

const BlockSpec& whole_array() {
  static const BlockSpec whole;
  return whole;
}

void Tracer::map_operands() {
  graph::Graph& g = recorder_.graph;
  const int prefetched = call_.num_scalar_prefetch;
  check_prefetched(prefetched);
  int arrays = -prefetched, scalars = 0;
  for (const ArgumentType& a : arguments_) (a.is_scalar ? scalars : arrays) += 1;
  check_count(call_.in_specs, static_cast<std::size_t>(arrays), "in_specs",
              prefetched > 0 ? "array argument behind the index operands" : "array argument");
  check_count(call_.out_specs, call_.out_type.list().size(), "out_specs", "output");

  std::vector<ArrayOperand> inputs, outputs;
  int scalar = 0;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const ArgumentType& a = arguments_[i];
    const std::string origin = "args[" + std::to_string(i) + "]";
    if (a.is_scalar) {
      if (a.type.shape.rank() != 0)
        fail(origin + ": a scalar has shape [], given " + to_string(a.type));
      g.arguments.push_back({graph::Argument::Kind::scalar, scalar++, a.type.dtype});
      continue;
    }
    if (a.is_ref && !is_meshed())
      fail(origin +
           " is an ArrayRef, which pl::kernel takes; pallas_call takes the array, with "
           "input_output_aliases to write it");
    g.arguments.push_back(
        {graph::Argument::Kind::input, static_cast<int>(inputs.size()), a.type.dtype});
    inputs.push_back({a.type, origin, a.dense, a.alignment});
  }
  for (const ShapeDtype& type : call_.out_type.list())
    outputs.push_back({type, "outputs[" + std::to_string(outputs.size()) + "]"});
  num_visible_ = static_cast<int>(outputs.size());
  g.mapping.num_index_operands = prefetched;
  std::span<const ArrayOperand> rest = inputs;
  for (int i = 0; i < prefetched; ++i) map_operand(rest, index_operand_spec());
  map_operands(rest, call_.in_specs);
  g.mapping.num_inputs = static_cast<int>(g.mapping.block_mappings.size());
  rest = outputs;
  map_operands(rest, call_.out_specs);
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const ArgumentType& a = arguments_[i];
    if (!a.is_ref) continue;
    const ArrayOperand ref{a.type, "args[" + std::to_string(i) + "]", a.dense, a.alignment};
    rest = {&ref, 1};
    map_operand(rest, whole_array());
    g.aliases.push_back({g.arguments[i].index, num_visible_ + static_cast<int>(g.aliases.size())});
  }
  g.mapping.num_outputs = static_cast<int>(g.mapping.block_mappings.size()) - g.mapping.num_inputs;
  g.mapping = g.mapping.to_lojax();
}

void Tracer::map_operands(std::span<const ArrayOperand> arrays,
                          const std::vector<BlockSpec>& specs) {
  for (int i = 0; !arrays.empty(); ++i) map_operand(arrays, spec_of(specs, i));
}

void Tracer::map_operand(std::span<const ArrayOperand>& next, const BlockSpec& spec) {
  recorder_.graph.mapping.block_mappings.push_back(operand(next, spec));
}

BlockMapping Tracer::operand(std::span<const ArrayOperand>& next, const BlockSpec& spec) {
  BlockMapping m;
  if (spec.components.empty()) {
    m = mapping_of(next.front(), spec);
    next = next.subspan(1);
    return m;
  }
  m.origin = next.front().origin;
  for (const BlockSpec& component : spec.components)
    m.components.push_back(operand(next, component));
  return m;
}

void Tracer::check_prefetched(int count) const {
  const auto n = static_cast<int>(arguments_.size());
  if (count < 0 || count > n)
    fail("num_scalar_prefetch is " + std::to_string(count) + ", but the call has " +
         std::to_string(n) + (n == 1 ? " argument" : " arguments"));
  for (int i = 0; i < count; ++i)
    if (arguments_[static_cast<std::size_t>(i)].is_scalar)
      fail("num_scalar_prefetch is " + std::to_string(count) + ", but args[" + std::to_string(i) +
           "] is a scalar: an index operand is an array");
}

void Tracer::check_count(const std::vector<BlockSpec>& specs, std::size_t operands,
                         const char* field, const char* what) {
  const std::size_t n = count_of(specs);
  if (specs.empty() || n == operands) return;
  fail(std::string(field) + " has " + std::to_string(n) + (n == 1 ? " entry" : " entries") +
       " for " + std::to_string(operands) + " " + what + (operands == 1 ? "" : "s"));
}

BlockMapping Tracer::mapping_of(const ArrayOperand& array, const BlockSpec& spec) {
  const ShapeDtype& type = array.type;
  const std::string& origin = array.origin;
  if (type.dtype == DType()) fail(spec.at, origin + " has no dtype");
  BlockMapping m;
  m.array_aval = type;
  m.origin = origin;
  m.memory_space = is_meshed() ? Space::gmem : spec.memory_space.space;
  set_fill(m, spec);
  m.buffers = spec.pipeline_mode.buffer_count;
  if (spec.pipeline_mode.given && m.buffers < 1)
    fail(spec.at,
         origin + ": pl::Buffered has at least one buffer, given " + std::to_string(m.buffers));
  if (spec.delay_release != 0 || !spec.transforms.empty())
    fail(spec.at,
         origin + ": delay_release and transforms are of blocks of a plgpu::emit_pipeline");
  m.dense = array.dense;
  m.alignment = std::max(array.alignment, type.dtype.bytes());
  if (m.memory_space == Space::regs)
    fail(spec.at, origin + ": a block cannot be pinned to registers; use GMEM or SMEM");
  if (spec.whole) {
    set_whole(m, spec);
  } else {
    m.block_shape = spec.block_shape;
  }
  if (m.block_shape.size() != static_cast<std::size_t>(type.shape.rank()))
    fail(spec.at, "block shape for " + origin + " (= " + text(m.block_shape) +
                      ") must have the same number of dimensions as the array shape " +
                      to_string(type.shape));
  if (set_empty(m)) empty_.push_back(specs_.size());
  for (const BlockDim& d : m.block_shape) {
    if (d.size < 1)
      fail(spec.at, "block shape for " + origin + " (= " + text(m.block_shape) +
                        ") must have at least one element in each dimension");
    if (d.kind == BlockDim::Kind::squeezed && d.size != 1)
      fail(spec.at, "block shape for " + origin + ": a squeezed dimension has one element, given " +
                        std::to_string(d.size));
    if (d.kind != BlockDim::Kind::element && (d.pad_lo != 0 || d.pad_hi != 0))
      fail(spec.at, "block shape for " + origin + " (= " + text(m.block_shape) +
                        "): only an Element has padding");
    if (d.pad_lo < 0 || d.pad_hi < 0)
      fail(spec.at, "block shape for " + origin + ": padding must not be negative, given {" +
                        std::to_string(d.pad_lo) + ", " + std::to_string(d.pad_hi) + "}");
  }
  for (const Dim& d : type.shape)
    if (d.is_static() && d.value() < 0)
      fail(spec.at, origin + " has a negative extent: " + to_string(type));
  set_bounded(m, spec);
  set_indirect(m, spec);
  set_packed(m, spec);
  check_size(m, spec.at);
  specs_.push_back(&spec);
  return m;
}

bool Tracer::set_empty(BlockMapping& m) {
  bool is_empty = false;
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    BlockDim& b = m.block_shape[d];
    const Dim& extent = m.array_aval.shape[static_cast<int>(d)];
    if (b.size != 0 || b.kind != BlockDim::Kind::blocked || number_of(extent) != 0) continue;
    is_empty = true;
    b.size = m.array_aval.dtype.is_packed() && d + 1 == m.block_shape.size() ? 2 : 1;
  }
  // Whether there is a program is then known at the trace.
  if (is_empty)
    for (Dim& size : recorder_.graph.mapping.grid)
      if (const std::optional<std::int64_t> n = number_of(size)) size = *n;
  return is_empty;
}

void Tracer::check_empty(const graph::Graph& g) const {
  const auto is_zero = [](const Dim& d) { return d.same(0); };
  if (std::ranges::any_of(g.mapping.grid, is_zero) || graph::writes_nothing(g)) return;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const BlockMapping& m = g.mapping.block_mappings[i];
    const bool has_none =
        std::ranges::find(empty_, i) != empty_.end() || (specs_[i]->whole && graph::is_empty(m));
    if (!has_none || !graph::is_used(g, i)) continue;
    fail(specs_[i]->at, "block shape for " + m.origin +
                            " must have at least one element in each dimension: the body asks for "
                            "elements of " +
                            to_string(m.array_aval) + ", which has none");
  }
}

std::optional<std::int64_t> Tracer::number_of(const Dim& d) {
  try {
    return d.value();
  } catch (const CompileError&) {
    return {};
  }
}

void Tracer::set_bounded(BlockMapping& m, const BlockSpec& spec) const {
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    BlockDim& b = m.block_shape[d];
    if (b.kind != BlockDim::Kind::bounded) continue;
    const Dim& extent = m.array_aval.shape[static_cast<int>(d)];
    const Dim length = b.length == 0 ? extent : Dim::of_expression(b.length);
    const auto resolved = [&](const Dim& x) { return binding_ ? binding_->resolve(x) : x; };
    const std::string who = m.origin + ": pl::bounded(" + to_string(length) + ", " +
                            std::to_string(b.size) + ") is along dimension " + std::to_string(d) +
                            ", where " + to_string(m.array_aval) + " has '" + to_string(extent) +
                            "' elements";
    if (!resolved(length).same(resolved(extent)))
      fail(spec.at, who + ": the two are one extent, or pl::require_equal says so");
    const auto given = peeked(extent);
    if (const std::int64_t most = given.value_or(0); most > b.size)
      fail(spec.at, who + ", which are " + std::to_string(most) + " here: at most " +
                        std::to_string(b.size) + " are possible");
    b.length = 0;
  }
}

std::optional<std::int64_t> Tracer::peeked(const Dim& d) const {
  if (d.is_static()) return d.value();
  return binding_ && binding_->can_peek(d) ? std::optional(binding_->peek(d)) : std::nullopt;
}

void Tracer::set_indirect(BlockMapping& m, const BlockSpec& spec) {
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    if (m.block_shape[d].kind != BlockDim::Kind::indirect) continue;
    const std::string who = "block shape for " + m.origin + " (= " + text(m.block_shape) + "): ";
    if (m.memory_space == Space::smem)
      fail(spec.at, who + "what Indirect chooses stays in global memory, given SMEM");
    if (options_.local_grid_env)
      fail(spec.at, who + "Indirect needs program ids, which local_grid_env hides");
    Dim& extent = m.array_aval.shape[static_cast<int>(d)];
    pin(extent, spec, who + "along an Indirect dimension the array has");
    m.block_shape[d].size = extent.value();
    m.memory_space = Space::gmem;
  }
}

void Tracer::pin(Dim& extent, const BlockSpec& spec, const std::string& what) const {
  try {
    extent = extent.value();
  } catch (const CompileError&) {
    fail(spec.at, what + " a static extent, given '" + to_string(extent) + "'");
  }
}

void Tracer::set_packed(BlockMapping& m, const BlockSpec& spec) const {
  if (m.array_aval.dtype.is_packed() && m.array_aval.shape.rank() > 0)
    pin(m.array_aval.shape[-1], spec,
        m.origin + " is " + to_string(m.array_aval) +
            ", two elements of which share a byte: along its last dimension it has");
}

void Tracer::set_fill(BlockMapping& m, const BlockSpec& spec) const {
  if (!spec.fill) return;
  m.fill = bits_of_fill(*spec.fill, m.array_aval.dtype);
  if (m.fill) return;
  fail(spec.at, fmt::format("{}: .fill is {}, which no {} is", m.origin, *spec.fill,
                            m.array_aval.dtype.name()));
}

void Tracer::check_size(const BlockMapping& m, Location at) const {
  const std::string large = graph::too_large(m.array_aval, m.block_shape);
  if (!large.empty())
    fail(at, m.origin + " is " + to_string(m.array_aval) + " in blocks of " + text(m.block_shape) +
                 ": " + large);
}

void Tracer::set_whole(BlockMapping& m, const BlockSpec& spec) {
  set_packed(m, spec);
  for (Dim& d : m.array_aval.shape) {
    if (m.memory_space == Space::smem)
      pin(d, spec, m.origin + " is copied to SMEM as a whole: its array has");
    m.block_shape.push_back(BlockDim::all_of(binding_ ? binding_->resolve(d) : d));
  }
}

void Tracer::set_aliases() {
  graph::Graph& g = recorder_.graph;
  const auto outside = [&](const InputOutputAlias& a, const char* what, int index, int count) {
    if (index < 0 || index >= count)
      fail("input_output_aliases contains the mapping '" + std::to_string(a.input) + ":" +
           std::to_string(a.output) + "' with " + what + " index " + std::to_string(index) +
           " outside the range [0, " + std::to_string(count) + ")");
  };
  for (const InputOutputAlias& a : options_.input_output_aliases) {
    outside(a, "input", a.input, g.mapping.num_inputs);
    outside(a, "output", a.output, g.mapping.num_outputs);
    const ShapeDtype in = mapping(a.input).array_aval;
    const ShapeDtype out = mapping(g.mapping.num_inputs + a.output).array_aval;
    const std::string pair = "input_output_aliases contains the mapping '" +
                             std::to_string(a.input) + ":" + std::to_string(a.output) + "'";
    if (!(in == out))
      fail(pair + " of " + mapping(a.input).origin + ", which is " + to_string(in) + ", to " +
           mapping(g.mapping.num_inputs + a.output).origin + ", which is " + to_string(out));
    if (a.input < g.mapping.num_index_operands)
      fail(pair + ", but " + mapping(a.input).origin + " is an index operand, which is read only");
    if (std::ranges::find(g.mapping.bounds, a.input) != g.mapping.bounds.end())
      fail(pair + ", but " + mapping(a.input).origin + " holds a size of the grid");
    for (const graph::Alias& other : g.aliases)
      if (other.input == a.input || other.output == a.output)
        fail(pair + ", whose input or output has an alias already");
    g.aliases.push_back({a.input, a.output});
  }
}

}  // namespace palladium::trace
