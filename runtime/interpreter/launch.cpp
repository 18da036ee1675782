#include "runtime/interpreter/launch.hpp"

#include <algorithm>
#include <cstring>

#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/limits.hpp"
#include "palladium/error.hpp"
#include "runtime/race/unwritten.hpp"

namespace palladium::interpreter {
namespace {

using graph::Argument;
using graph::Inst;
using graph::RegionId;
using graph::Semantics;
using graph::ValueId;

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string result;
  for (const std::string& part : parts) result += (result.empty() ? "" : separator) + part;
  return result;
}

std::string joined(std::span<const std::int64_t> numbers, const char* separator) {
  std::vector<std::string> parts;
  for (const std::int64_t n : numbers) parts.push_back(std::to_string(n));
  return joined(parts, separator);
}

// "(0, 3)"
std::string text(std::span<const std::int64_t> indices) {
  return "(" + joined(indices, ", ") + ")";
}

// Row-major, last dimension fastest.
std::vector<std::int64_t> unraveled(std::uint64_t number,
                                    const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> index(extents.size());
  for (std::size_t d = index.size(); d > 0; --d) {
    const auto extent = static_cast<std::uint64_t>(extents[d - 1]);
    index[d - 1] = static_cast<std::int64_t>(number % extent);
    number /= extent;
  }
  return index;
}

}  // namespace

Launch::Launch(const graph::Graph& g, const Invocation& call, const Options& options)
    : graph(g), call(call), options(options), plan(g) {
  connect_operands();
  measure_grid();
  share_memory();
  is_concurrent = graph::blocks_may_wait(graph);
}

void Launch::measure_grid() {
  for (const Dim& d : graph.mapping.grid) grid.push_back(evaluate(d, call.symbols));
  graph::check_grid(graph, grid, graph.at);
  for (std::size_t axis = 0; axis < graph.mapping.bounds.size(); ++axis)
    if (const int input = graph.mapping.bounds[axis]; input >= 0)
      grid[axis] = bound_of(axis, operands[static_cast<std::size_t>(input)]);
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    const bool sequential =
        axis < graph.semantics.size() && graph.semantics[axis] == Semantics::sequential;
    (sequential ? sequential_axes : parallel_axes).push_back(axis);
    (sequential ? sequential_sizes : parallel_sizes).push_back(grid[axis]);
  }
  for (const int n : graph.cluster) {
    cluster.push_back(n);
    cluster_blocks *= static_cast<std::uint32_t>(n);
  }
}

std::int64_t Launch::bound_of(std::size_t axis, const Operand& holder) const {
  const DType dtype = holder.mapping->array_aval.dtype;
  std::uint64_t bits = 0;
  std::memcpy(&bits, holder.data, static_cast<std::size_t>(dtype.bytes()));
  const std::int64_t programs = graph::to_int(dtype, bits);
  if (programs < 0 || programs > grid[axis])
    throw CompileError(
        graph.at,
        fmt::format("kernel '{}': grid axis {} has as many programs as {} says, at "
                    "most {}; it says {}",
                    graph.name, axis_name(axis), holder.mapping->origin, grid[axis], programs));
  return programs;
}

void Launch::connect_operands() {
  const GridMapping& mapping = graph.mapping;
  const std::size_t n = mapping.block_mappings.size();
  if (call.arrays.size() != n ||
      call.scalars.size() != static_cast<std::size_t>(graph.num_scalars()))
    throw InternalError(
        fmt::format("interpreter: kernel {} takes {} arrays and {} scalars, given {} and {}",
                    graph.name, n, graph.num_scalars(), call.arrays.size(), call.scalars.size()));
  for (std::size_t i = 0; i < n; ++i) {
    const BlockMapping& m = mapping.block_mappings[i];
    const Buffer& array = call.arrays[i];
    Operand operand;
    operand.mapping = &m;
    operand.graph = &graph;
    operand.data = static_cast<std::byte*>(array.data);
    for (const Dim& d : m.array_aval.shape) operand.shape.push_back(evaluate(d, call.symbols));
    if (array.shape != operand.shape)
      throw InternalError(
          fmt::format("interpreter: {} of kernel {} is {}, given an array of shape [{}]", m.origin,
                      graph.name, to_string(m.array_aval), joined(array.shape, ",")));
    operand.strides = array.strides.empty() ? dense_strides(operand.shape, 1) : array.strides;
    operand.is_dense = operand.strides == dense_strides(operand.shape, 1);
    operand.written = stores_to(i);
    operand.is_whole = graph.whole_arrays;
    operand.is_absent = graph::is_empty(m) && !graph::is_used(graph, i);
    operand.keeps_contents = i < static_cast<std::size_t>(mapping.num_inputs) ||
                             i + static_cast<std::size_t>(graph.num_globals) >= n;
    operands.push_back(std::move(operand));
  }
}

// An output and the inputs that are aliased to it are one memory.
void Launch::share_memory() {
  const GridMapping& mapping = graph.mapping;
  for (const graph::Alias& alias : graph.aliases) {
    Operand& output = operands[static_cast<std::size_t>(mapping.num_inputs + alias.output)];
    output.keeps_contents = output.aliased = true;
    operands[static_cast<std::size_t>(alias.input)].aliased = true;
  }
  for (int o = 0; o < mapping.num_outputs; ++o) {
    Operand& output = operands[static_cast<std::size_t>(mapping.num_inputs + o)];
    writers_.emplace_back(static_cast<std::size_t>(graph::element_count(output.shape)));
    output.writers = &writers_.back();
    output.many_writers = graph.allow_revisit;
    const bool has_readers = (output.aliased || output.is_whole) && !graph.allow_revisit;
    if (has_readers) output.readers = &readers_.emplace_back(output.writers->elements());
    for (const graph::Alias& alias : graph.aliases) {
      if (alias.output != o) continue;
      Operand& input = operands[static_cast<std::size_t>(alias.input)];
      input.writers = output.writers;
      input.readers = output.readers;
    }
  }
}

// Parameter of a body's region that is block mapping i's Ref.
std::size_t Launch::parameter_of(std::size_t i) const {
  const auto inputs = static_cast<std::size_t>(graph.mapping.num_inputs);
  if (i >= inputs) return graph.arguments.size() + i - inputs;
  for (std::size_t a = 0; a < graph.arguments.size(); ++a)
    if (graph.arguments[a].kind == Argument::Kind::input &&
        static_cast<std::size_t>(graph.arguments[a].index) == i)
      return a;
  throw InternalError(fmt::format("interpreter: no argument of kernel {} is {}", graph.name,
                                  graph.mapping.block_mappings[i].origin));
}

bool Launch::stores_to(std::size_t mapping) const {
  const std::size_t parameter = parameter_of(mapping);
  for (const Inst& inst : graph.insts)
    for (const graph::Body& body : graph.bodies)
      if (graph.writes(inst, graph[body.region].params[parameter])) return true;
  return false;
}

std::uint64_t Launch::num_places() const {
  if (std::ranges::find(grid, 0) != grid.end()) return 0;
  std::uint64_t n = 1;
  for (const std::int64_t size : parallel_sizes) n *= static_cast<std::uint64_t>(size);
  return n;
}

std::vector<std::int64_t> Launch::index_of(std::uint64_t place) const {
  return unraveled(place, parallel_sizes);
}

void Launch::forget_accesses() {
  for (race::WriterMap& w : writers_) w = race::WriterMap(w.elements());
  for (race::ReaderMap& r : readers_) r = race::ReaderMap(r.elements());
}

void Launch::find_unwritten() const {
  for (const Operand& output : operands) {
    if (output.keeps_contents) continue;
    const race::Unwritten unwritten =
        race::find_unwritten(*output.writers, output.shape, dense_strides(output.shape, 1));
    if (unwritten.count > 0 && options.poison_unwritten) poison_unwritten(output);
    race::tell(unwritten, graph.name, output.mapping->origin, options.unwritten_is_error, graph.at);
  }
}

void Launch::poison_unwritten(const Operand& output) {
  const DType dtype = output.mapping->array_aval.dtype;
  const std::size_t end = output.writers->elements();
  for (std::size_t at = 0; (at = output.writers->next_unwritten(at, end)) < end; ++at)
    fill(output.data + at * static_cast<std::size_t>(dtype.bytes()), 1, dtype.bytes(),
         poison_bits(dtype));
}

// ---- messages

std::string Launch::axis_name(std::size_t axis) const {
  const std::vector<std::string>& names = graph.mapping.grid_names;
  return axis < names.size() && !names[axis].empty() ? fmt::format("{} (\"{}\")", axis, names[axis])
                                                     : std::to_string(axis);
}

std::string Launch::text_of_place(std::uint64_t place) const {
  const std::vector<std::int64_t> index = index_of(place);
  std::vector<std::string> id(grid.size(), "*");
  for (std::size_t i = 0; i < index.size(); ++i) id[parallel_axes[i]] = std::to_string(index[i]);
  return fmt::format("({})", joined(id, ", "));
}

std::string Launch::text_of_position(const Position& position) const {
  std::string result = text(position.grid);
  if (cluster_blocks > 1) result += " block " + text(position.cluster);
  return result;
}

std::string Launch::program_text(std::uint32_t program) const {
  std::string result = text_of_place(program / cluster_blocks);
  if (cluster_blocks > 1) result += fmt::format(" block {}", program % cluster_blocks);
  return result;
}

void Launch::refuse_outside(const Window& window, const std::vector<std::int64_t>& id,
                            int dimension) const {
  const Operand& operand = *window.operand();
  const BlockMapping& m = *operand.mapping;
  const auto d = static_cast<std::size_t>(dimension);
  const BlockDim::Kind kind = m.block_shape[d].kind;
  const bool blocked = kind == BlockDim::Kind::blocked || kind == BlockDim::Kind::bounded;
  Location where = graph.at;
  if (m.index_map != no_region) {
    const Location at = graph.location(graph[RegionId{m.index_map}].yields[d]);
    if (!(at == Location{})) where = at;
  }
  if (m.block_shape[d].kind == BlockDim::Kind::bounded_slice) {
    const auto before =
        std::count_if(m.block_shape.begin(), m.block_shape.begin() + dimension,
                      [](const BlockDim& b) { return b.kind == BlockDim::Kind::bounded_slice; });
    throw CompileError(
        where,
        fmt::format("{}: in program {} the index map gives along dimension {} the slice of start "
                    "{} and size {}, of a BoundedSlice({}) of {} elements of the array: it leaves "
                    "the array, or is longer than that",
                    m.origin, text(id), dimension, window.indices()[d],
                    window.indices()[m.block_shape.size() + static_cast<std::size_t>(before)],
                    m.block_shape[d].size, operand.shape[d]));
  }
  throw CompileError(
      where, fmt::format("{}: in program {} block {} lies wholly out of bounds of the array of "
                         "shape [{}]: in dimension {} it starts at {}{}",
                         m.origin, text(id), text(window.indices()), joined(operand.shape, ","),
                         dimension, window.starts()[d],
                         blocked ? fmt::format(" = {} * {} (an index map returns block indices, "
                                               "not element offsets)",
                                               window.indices()[d], m.block_shape[d].size)
                                 : std::string()));
}

void Launch::refuse_clash(const Operand& operand, const Clash& clash) const {
  const race::Conflict& both = clash.accesses;
  std::vector<std::string> axes;
  const auto first = index_of(both.first.program / cluster_blocks);
  const auto second = index_of(both.second.program / cluster_blocks);
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i] != second[i]) axes.push_back("parallel axis " + axis_name(parallel_axes[i]));
  if (axes.empty()) axes.push_back("the cluster's blocks");
  const std::string element = joined(unraveled(both.element, operand.shape), ",");
  const std::string what =
      clash.first_reads || clash.second_reads
          ? fmt::format("program {} reads element [{}], program {} writes it",
                        program_text((clash.first_reads ? both.first : both.second).program),
                        element,
                        program_text((clash.first_reads ? both.second : both.first).program))
          : fmt::format("programs {} and {} write the same element [{}]",
                        program_text(both.first.program), program_text(both.second.program),
                        element);
  const Location earlier = graph.location(ValueId{both.first.tag});
  throw CompileError(
      graph.location(ValueId{both.second.tag}),
      fmt::format("{}: {}, and they run in any order: they differ along {}{}",
                  operand.mapping->origin, what, joined(axes, " and "),
                  both.first.tag == both.second.tag || earlier == Location{}
                      ? std::string()
                      : fmt::format("; the first {} it at {}", clash.first_reads ? "read" : "wrote",
                                    to_string(earlier))));
}

}  // namespace palladium::interpreter
