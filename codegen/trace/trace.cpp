#include "codegen/trace/trace.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "codegen/base/checked.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/batch.hpp"
#include "codegen/graph/classes.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/trace/body.hpp"
#include "codegen/trace/operands.hpp"
#include "codegen/trace/over_meshes.hpp"
#include "codegen/trace/recorder.hpp"
#include "codegen/trace/spelled.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

using detail::Access;

template <class T>
std::string text(const std::vector<T>& list) {
  std::string result = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if constexpr (std::is_same_v<T, std::string>)
      result += (i ? "," : "") + list[i];
    else if constexpr (std::is_same_v<T, Dim>)
      result += (i ? "," : "") + to_string(list[i]);
    else
      result += (i ? "," : "") + std::to_string(list[i]);
  }
  return result + "]";
}

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
    case BlockDim::Kind::indirect: result += "Indirect(" + std::to_string(d.size) + ")"; break;
    }
  }
  return result + "]";
}

// What is refused without knowing a line, such as a shape of too many dimensions, is refused at
// `at`.
template <class F>
void blaming(Location at, F f) try {
  f();
} catch (const CompileError& error) {
  if (error.at().line != 0) throw;
  throw CompileError(at, error.what());
}

class Tracer {
 public:
  Tracer(const PallasCallOptions& options, std::span<const ArgumentType> arguments, Location at,
         const DimBinding* binding, std::span<const BatchType> batches, const OverMeshes& over)
      : options_(options),
        arguments_(arguments),
        at_(at),
        binding_(binding),
        batches_(batches),
        over_(over),
        recorder_(options.name.empty() ? "kernel" : options.name) {}

  graph::Graph run(std::span<const Body> bodies) {
    check_name();
    if (is_meshed()) check_meshes(bodies.size(), over_.is_list, *over_.meshes, at_);
    call_ = spelled(options_, over_.meshes, recorder_.graph.name, at_);
    graph::Graph& g = recorder_.graph;
    g.at = at_;
    g.fma = options_.compiler_params.fma;
    g.approx_math = options_.compiler_params.approx_math;
    g.allow_revisit = options_.compiler_params.allow_revisit;
    g.persistent = options_.compiler_params.persistent;
    if (g.persistent && is_meshed())
      fail(
          "compiler_params.persistent is for the programs of a grid of blocks; a kernel over a "
          "mesh goes through its work by a loop of its own");
    set_grid_order();
    g.lineinfo = options_.compiler_params.lineinfo;
    g.mapping.debug = options_.debug;
    g.cost = options_.cost_estimate;
    g.metadata = options_.metadata;
    g.whole_arrays = is_meshed();
    set_grid();
    set_threads(bodies.size());
    map_operands();
    if (const std::string problem = connect_arguments(g, arguments_); !problem.empty())
      fail(problem);
    set_aliases();
    set_scratch();
    trace_grid_env();
    trace_index_maps();
    for (std::size_t b = 0; b < bodies.size(); ++b) trace_body(b, bodies[b]);
    if (is_meshed()) {
      check_accesses(recorder_, call_.scratch, over_.must_write, at_);
      add_captured();
      add_globals(recorder_);
      add_shared(recorder_);
      specs_.resize(g.mapping.block_mappings.size(), &spec({}, 0));
    }
    graph::bind_grid(g);
    add_batches();
    resolve_dims();
    find_symbols();

    graph::Graph result = graph::canonicalize(g);
    set_class(result);
    graph::check_updated(result);
    result.semantics = graph::grid_order(result, wanted_order());
    check_grid_order(result);
    graph::check_static_grid(result, at_);
    result.mapping.check_invariants();
    graph::verify(result, "trace");
    if (graph::has_packed(result)) (void)graph::in_bytes(result);  // refuses what cannot be
    return result;
  }
  std::vector<SymbolOrigin> symbols() && { return std::move(symbols_); }
  DebugMet debug() const { return {recorder_.debug_asked, recorder_.debug_recorded}; }
  std::vector<ArrayRef> captured() const {
    std::vector<ArrayRef> arrays;
    for (const Captured& c : recorder_.captured) arrays.push_back(new_ref(c.array, c.at));
    return arrays;
  }

 private:
  bool is_meshed() const { return over_.meshes != nullptr; }
  [[noreturn]] void fail(const std::string& what) const { fail(at_, what); }
  [[noreturn]] void fail(Location at, const std::string& what) const {
    throw CompileError(at.line ? at : at_, "kernel '" + recorder_.graph.name + "': " + what);
  }

  // Messages are C strings: what is said of such a kernel would end within its name.
  void check_name() const {
    const std::size_t at = options_.name.find('\0');
    if (at != std::string::npos)
      throw CompileError(at_, "a kernel's name ends at its NUL character, given one at position " +
                                  std::to_string(at) + " of " +
                                  std::to_string(options_.name.size()) + ": '" +
                                  options_.name.substr(0, at) + "...'");
  }

  void set_grid() {
    graph::Graph& g = recorder_.graph;
    g.mapping.grid = call_.grid.sizes;
    if (g.mapping.grid.size() > detail::max_grid_rank)
      fail("a grid has at most " + std::to_string(detail::max_grid_rank) + " axes, given " +
           text(g.mapping.grid));
    for (const Dim& size : g.mapping.grid)
      if (size.is_static() && size.value() < 0)
        fail("a grid has no negative sizes, given " + text(g.mapping.grid));
    if (!call_.grid.names.empty() && !call_.grid_names.empty())
      fail("the grid's axes are named twice: in grid and in grid_names");
    g.mapping.grid_names = call_.grid.names.empty() ? call_.grid_names : call_.grid.names;
    check_names(g.mapping.grid_names, g.mapping.grid.size(), "grid");
    graph::check_static_axes(g, at_);
    recorder_.grid_axes = g.mapping.trace_env();

    set_cluster();
    g.cluster_names = call_.cluster_names;
    check_names(g.cluster_names, g.cluster.size(), "cluster");
    for (const std::string& name : g.cluster_names)
      if (std::find(g.mapping.grid_names.begin(), g.mapping.grid_names.end(), name) !=
          g.mapping.grid_names.end())
        fail("axis name '" + name + "' is both a grid and a cluster axis");
    const std::size_t wanted = options_.compiler_params.dimension_semantics.size();
    if (wanted != 0 && wanted != g.mapping.grid.size())
      fail("dimension_semantics has " + std::to_string(wanted) + " entries for a grid of " +
           std::to_string(g.mapping.grid.size()) + " axes");
    if (const int n = options_.compiler_params.num_warps; n != 0 && !graph::is_width(n))
      fail("compiler_params.num_warps is 4, 8 or 16, or 0 to let the compiler choose, given " +
           std::to_string(n));
    if (const int n = options_.compiler_params.num_stages; n < 0 || n > graph::most_stages)
      fail("compiler_params.num_stages is 1 to " + std::to_string(graph::most_stages) +
           ", or 0 to let the compiler choose, given " + std::to_string(n));
    if (const int n = options_.interpret.params.num_cores_per_device; n < 0)
      fail(
          "interpret.num_cores_per_device is a number of OS threads, or 0 for one on each core, "
          "given " +
          std::to_string(n));
  }

  void set_grid_order() {
    const std::optional<GridOrder> order = options_.compiler_params.grid_order;
    if (!order) return;
    if (order->rows < 1 || order->rows > graph::most_grid_rows)
      fail("compiler_params.grid_order has 1 to " + std::to_string(graph::most_grid_rows) +
           " rows at once, given pl::grouped(" + std::to_string(order->rows) + ")");
    recorder_.graph.grid_rows = order->rows;
  }

  // What is sequential is known at the end.
  void check_grid_order(const graph::Graph& g) const {
    const auto parallel = std::ranges::count(g.semantics, graph::Semantics::parallel);
    if (g.grid_rows > 1 && parallel < 2)
      fail("compiler_params.grid_order = pl::grouped(" + std::to_string(g.grid_rows) +
           ") takes rows of the last two parallel axes of the grid, which is " +
           text(g.mapping.grid) + " and has " + std::to_string(parallel));
  }

  void set_cluster() {
    graph::Graph& g = recorder_.graph;
    if (call_.cluster.size() > 3) fail("cluster must be at most 3D, given " + text(call_.cluster));
    Checked blocks = 1;
    for (const Dim& size : call_.cluster) {
      if (size.value() < 1) fail("a cluster's sizes are positive, given " + text(call_.cluster));
      blocks *= size.value();
    }
    if (!blocks.within(1, graph::most_cluster_blocks))
      fail("a cluster has at most " + std::to_string(graph::most_cluster_blocks) +
           " blocks (8 on every GPU that knows clusters), given " + text(call_.cluster));
    for (const Dim& size : call_.cluster) g.cluster.push_back(static_cast<int>(size.value()));
  }

  void set_threads(std::size_t bodies) {
    recorder_.threads.resize(bodies);
    if (!is_meshed()) return;
    int first = 0;
    for (std::size_t b = 0; b < bodies; ++b) {
      const gpu::Mesh& mesh = over_.meshes->list[b];
      recorder_.threads[b] = {mesh.thread_name, first, mesh.threads()};
      first += mesh.threads();
    }
    recorder_.graph.thread_name = recorder_.threads[0].name;
    if (const int n = options_.compiler_params.num_warps; n != 0 && n != 4)
      fail("a Pallas thread of a mesh has 4 warps, given compiler_params.num_warps = " +
           std::to_string(n));
  }

  void check_names(const std::vector<std::string>& names, std::size_t axes, const char* what) {
    if (!names.empty() && names.size() != axes)
      fail(std::string(what) + "_names must have the same length as " + what + ", given " +
           text(names) + " for " + std::to_string(axes) + (axes == 1 ? " axis" : " axes"));
    for (std::size_t i = 0; i < names.size(); ++i)
      if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
          names.begin() + static_cast<std::ptrdiff_t>(i))
        fail("axis name '" + names[i] + "' is given twice in " + what + "_names");
  }

  // Arguments and outputs: their block mappings, still without index maps.
  void map_operands() {
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
    for (int i = 0; i < prefetched; ++i) map_operand(rest, index_operand());
    map_operands(rest, call_.in_specs);
    g.mapping.num_inputs = static_cast<int>(g.mapping.block_mappings.size());
    rest = outputs;
    map_operands(rest, call_.out_specs);
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const ArgumentType& a = arguments_[i];
      if (!a.is_ref) continue;
      const ArrayOperand ref{a.type, "args[" + std::to_string(i) + "]", a.dense, a.alignment};
      rest = {&ref, 1};
      map_operand(rest, spec({}, 0));
      g.aliases.push_back(
          {g.arguments[i].index, num_visible_ + static_cast<int>(g.aliases.size())});
    }
    g.mapping.num_outputs =
        static_cast<int>(g.mapping.block_mappings.size()) - g.mapping.num_inputs;
    g.mapping = g.mapping.to_lojax();
  }

  /// An array of the call, or an output.
  struct ArrayOperand {
    ShapeDtype type;
    std::string origin;
    bool dense = true;
    int alignment = 16;
  };

  // A specification may be for several of them.
  void map_operands(std::span<const ArrayOperand> arrays, const std::vector<BlockSpec>& specs) {
    for (int i = 0; !arrays.empty(); ++i) map_operand(arrays, spec(specs, i));
  }

  void map_operand(std::span<const ArrayOperand>& next, const BlockSpec& spec) {
    recorder_.graph.mapping.block_mappings.push_back(operand(next, spec));
  }

  // Takes the arrays of the specification from the front.
  BlockMapping operand(std::span<const ArrayOperand>& next, const BlockSpec& spec) {
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

  void check_prefetched(int count) const {
    const auto n = static_cast<int>(arguments_.size());
    if (count < 0 || count > n)
      fail("num_scalar_prefetch is " + std::to_string(count) + ", but the call has " +
           std::to_string(n) + (n == 1 ? " argument" : " arguments"));
    for (int i = 0; i < count; ++i)
      if (arguments_[static_cast<std::size_t>(i)].is_scalar)
        fail("num_scalar_prefetch is " + std::to_string(count) + ", but args[" + std::to_string(i) +
             "] is a scalar: an index operand is an array");
  }

  /// The whole array, in global memory.
  static const BlockSpec& index_operand() {
    static const BlockSpec whole({.memory_space = {Space::gmem}}, Location{});
    return whole;
  }

  static std::size_t count_of(const std::vector<BlockSpec>& specs) {
    std::size_t n = 0;
    for (const BlockSpec& s : specs) n += s.components.empty() ? 1 : count_of(s.components);
    return n;
  }

  void check_count(const std::vector<BlockSpec>& specs, std::size_t operands, const char* field,
                   const char* what) {
    const std::size_t n = count_of(specs);
    if (specs.empty() || n == operands) return;
    fail(std::string(field) + " has " + std::to_string(n) + (n == 1 ? " entry" : " entries") +
         " for " + std::to_string(operands) + " " + what + (operands == 1 ? "" : "s"));
  }

  static const BlockSpec& spec(const std::vector<BlockSpec>& specs, int i) {
    static const BlockSpec whole;
    return specs.empty() ? whole : specs[static_cast<std::size_t>(i)];
  }

  BlockMapping mapping_of(const ArrayOperand& array, const BlockSpec& spec) {
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
    m.dense = array.dense;
    m.alignment = std::max(array.alignment, type.dtype.bytes());
    if (m.memory_space == Space::regs)
      fail(spec.at, origin + ": a block cannot be pinned to registers; use GMEM or SMEM");
    if (spec.whole) {
      for (const Dim& d : type.shape) m.block_shape.push_back(size_of(d, spec.at, origin));
    } else {
      m.block_shape = spec.block_shape;
    }
    if (m.block_shape.size() != static_cast<std::size_t>(type.shape.rank()))
      fail(spec.at, "block shape for " + origin + " (= " + text(m.block_shape) +
                        ") must have the same number of dimensions as the array shape " +
                        to_string(type.shape));
    for (const BlockDim& d : m.block_shape) {
      if (d.size < 1)
        fail(spec.at, "block shape for " + origin + " (= " + text(m.block_shape) +
                          ") must have at least one element in each dimension");
      if (d.kind == BlockDim::Kind::squeezed && d.size != 1)
        fail(spec.at, "block shape for " + origin +
                          ": a squeezed dimension has one element, given " +
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
    set_indirect(m, spec);
    set_packed(m, spec);
    check_size(m, spec.at);
    specs_.push_back(&spec);
    return m;
  }

  // The block is all of the array along the dimension, where it is.
  void set_indirect(BlockMapping& m, const BlockSpec& spec) {
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

  void pin(Dim& extent, const BlockSpec& spec, const std::string& what) const {
    try {
      extent = extent.value();
    } catch (const CompileError&) {
      fail(spec.at, what + " a static extent, given '" + to_string(extent) + "'");
    }
  }

  // Which elements share a byte is known where rows begin.
  void set_packed(BlockMapping& m, const BlockSpec& spec) const {
    if (m.array_aval.dtype.is_packed() && m.array_aval.shape.rank() > 0)
      pin(m.array_aval.shape[-1], spec,
          m.origin + " is " + to_string(m.array_aval) +
              ", two elements of which share a byte: along its last dimension it has");
  }

  void set_fill(BlockMapping& m, const BlockSpec& spec) const {
    if (!spec.fill) return;
    m.fill = bits_of_fill(*spec.fill, m.array_aval.dtype);
    if (m.fill) return;
    fail(spec.at, fmt::format("{}: .fill is {}, which no {} is", m.origin, *spec.fill,
                              m.array_aval.dtype.name()));
  }

  void check_size(const BlockMapping& m, Location at) const {
    const std::string large = graph::too_large(m.array_aval, m.block_shape);
    if (!large.empty())
      fail(at, m.origin + " is " + to_string(m.array_aval) + " in blocks of " +
                   text(m.block_shape) + ": " + large);
  }

  std::int64_t size_of(const Dim& d, Location at, const std::string& origin) {
    if (d.is_static()) return d.value();
    try {
      return d.value();
    } catch (const CompileError&) {
      fail(at, origin + " has a symbolic dimension '" + to_string(d) + "'" +
                   (is_meshed() ? "; pl::kernel takes whole arrays, and Refs have static shapes"
                                : " and no block shape; blocks have static shapes: give a "
                                  "pl::BlockSpec"));
    }
  }

  void set_aliases() {
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
        fail(pair + ", but " + mapping(a.input).origin +
             " is an index operand, which is read only");
      if (std::ranges::find(g.mapping.bounds, a.input) != g.mapping.bounds.end())
        fail(pair + ", but " + mapping(a.input).origin + " holds a size of the grid");
      for (const graph::Alias& other : g.aliases)
        if (other.input == a.input || other.output == a.output)
          fail(pair + ", whose input or output has an alias already");
      g.aliases.push_back({a.input, a.output});
    }
  }

  BlockMapping& mapping(int i) {
    return recorder_.graph.mapping.block_mappings[static_cast<std::size_t>(i)];
  }

  void set_scratch() {
    GridMapping& m = recorder_.graph.mapping;
    for (std::size_t i = 0; i < call_.scratch.list.size(); ++i) {
      const NamedScoped& s = call_.scratch.list[i];
      const std::string who =
          s.name.empty() ? "scratch[" + std::to_string(i) + "]" : "scratch '" + s.name + "'";
      scratch_names_.push_back(s.name);
      if (s.type.space == Space::semaphore && is_meshed()) {
        set_semaphores(s.type, who);
        continue;
      }
      global_of_scratch_.push_back(-1);
      ShapeDtype type;
      if (const std::string problem = scratch_problem(s.type, who, type); !problem.empty())
        fail(s.type.at, problem);
      const std::size_t meshes = is_meshed() ? over_.meshes->list.size() : 0;
      if (const std::string problem = mesh_problem(s.type, who, meshes); !problem.empty())
        fail(s.type.at, problem);
      m.scratch_avals.push_back({type, true, s.type.space});
    }
  }

  // Counters of a block are memory of the launch: each block has its own part.
  void set_semaphores(const Scoped& scratch, const std::string& who) {
    Scoped as_scratch = scratch;
    as_scratch.space = Space::smem;
    ShapeDtype type;
    if (const std::string problem = scratch_problem(as_scratch, who, type); !problem.empty())
      fail(scratch.at, problem);
    global_of_scratch_.push_back(static_cast<int>(recorder_.globals.size()));
    std::vector<std::size_t> apart(recorder_.graph.cluster.size());
    std::iota(apart.begin(), apart.end(), std::size_t{0});
    recorder_.globals.push_back({type, Space::semaphore, true, std::move(apart), who, scratch.at});
  }

  void trace_index_maps() {
    GridMapping& m = recorder_.graph.mapping;
    const int rank = static_cast<int>(m.grid.size());
    m.index_map_tree = {rank, m.num_index_operands};
    m.index_map_avals.assign(static_cast<std::size_t>(rank), {ShapeDtype{{}, i32}});
    for (int i = 0; i < m.num_index_operands; ++i)
      m.index_map_avals.push_back({whole(mapping(i)), true, Space::gmem});
    for (auto i = static_cast<std::size_t>(m.num_index_operands); i < m.block_mappings.size(); ++i)
      m.block_mappings[i].index_map = trace_index_map(m.block_mappings[i], *specs_[i]);
  }

  static ShapeDtype whole(const BlockMapping& m) {
    return {to_shape(m.ref_shape()), m.array_aval.dtype};
  }

  // Of the options that say what bodies and index maps see of the grid.
  void trace_grid_env() {
    GridMapping& m = recorder_.graph.mapping;
    const std::size_t rank = m.grid.size();
    m.get_grid_indices = trace_grid_region(
        options_.get_grid_indices, "get_grid_indices", [&](std::size_t n) { return n == rank; },
        "an index for each grid axis");
    m.local_grid_env = trace_grid_region(
        options_.local_grid_env, "local_grid_env", [](std::size_t n) { return n % 2 == 0; },
        "an index and a size for each axis that kernels see");
    if (m.local_grid_env == no_region) return;
    const graph::Graph& g = recorder_.graph;
    const std::vector<ValueId>& yields = g[RegionId{m.local_grid_env}].yields;
    recorder_.grid_axes.clear();
    for (std::size_t i = 1; i < yields.size(); i += 2) {
      const graph::Inst& size = g[yields[i]];
      const bool is_static = size.op == Op::Constant;
      recorder_.grid_axes.push_back(
          {"", is_static ? Dim(graph::to_int(i32, size.attr.bits)) : dim("?"), is_static});
    }
  }

  template <class Fits>
  RegionIndex trace_grid_region(const IndexMap& map, const char* what, Fits fits,
                                const char* expected) {
    if (!map) return no_region;
    const RegionId region = recorder_.graph.add_region();
    recorder_.enter(region);
    const Location at = Access::at(map);
    const std::vector<Value> ids = program_ids(at);
    std::vector<BlockIndex> indices;
    bool takes = true;
    blaming(at, [&] {
      takes = Access::function(map)->call(ids.data(), static_cast<int>(ids.size()), nullptr, 0,
                                          indices);
    });
    if (!takes) fail(at, std::string(what) + " must take a pl::Index for each grid axis");
    if (!fits(indices.size()))
      fail(at, std::string(what) + " must return " + expected + ", given " +
                   std::to_string(indices.size()) + " values");
    std::vector<ValueId> yields;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i].is_slice)
        fail(at, std::string(what) + " must return integer scalars. Output[" + std::to_string(i) +
                     "] is a pl::Slice");
      yields.push_back(scalar_index(indices[i].start, std::string(what) + " must", i, at));
    }
    recorder_.builder().yield(std::move(yields));
    recorder_.leave();
    return graph::index(region);
  }

  std::vector<Value> program_ids(Location at) {
    std::vector<Value> ids;
    for (std::size_t i = 0; i < recorder_.graph.mapping.grid.size(); ++i)
      ids.push_back(recorder_.value(recorder_.builder().param(Type::value(i32), at)));
    return ids;
  }

  ValueId scalar_index(const Value& index, const std::string& who, std::size_t number,
                       Location at) {
    const ValueId v = recorder_.typed(index, who.c_str(), at);
    const Type& type = recorder_.graph[v].type;
    if (!type.is_scalar() || !type.dtype.is_integer())
      fail(at, who + " return integer scalars. Output[" + std::to_string(number) + "] has type " +
                   graph::to_string(type));
    return recorder_.as_i32(v, at);
  }

  // What the map gives for these ids and index operands, where it is recorded.
  std::vector<BlockIndex> indices_of(const BlockMapping& m, const BlockSpec& spec,
                                     const std::vector<Value>& ids, const std::vector<Ref>& refs) {
    std::vector<BlockIndex> indices;
    const Location at = Access::at(spec.index_map);
    if (spec.index_map) {
      detail::IndexMapBase& map = *Access::function(spec.index_map);
      bool fits = true;
      blaming(at, [&] {
        fits = map.call(ids.data(), static_cast<int>(ids.size()), refs.data(),
                        static_cast<int>(refs.size()), indices);
      });
      if (!fits) refuse_parameters(m, map.arity, at);
    } else {
      indices.assign(m.block_shape.size(), BlockIndex(Value(0)));
    }
    if (indices.size() != m.block_shape.size())
      fail(at, "index map function for " + m.origin + " must return " +
                   std::to_string(m.block_shape.size()) +
                   " values to match block_shape=" + text(m.block_shape) +
                   ". Currently returning " + std::to_string(indices.size()) + " values");
    return indices;
  }

  // The parameters are those that the mapping says index maps have.
  RegionIndex trace_index_map(const BlockMapping& m, const BlockSpec& spec) {
    graph::Graph& g = recorder_.graph;
    const RegionId region = g.add_region();
    recorder_.enter(region);
    const Location at = Access::at(spec.index_map);
    const IndexMapTree::Parameters parameters =
        g.mapping.index_map_tree.unflatten(g.mapping.index_map_avals);
    std::vector<Value> ids;
    for (const AbstractValue& id : parameters.program_ids)
      ids.push_back(recorder_.value(recorder_.builder().param(Type::value(id.type.dtype), at)));
    std::vector<Ref> refs;
    for (const AbstractValue& operand : parameters.index_operands)
      refs.push_back(index_operand(operand, at));

    std::vector<ValueId> yields, sizes;
    const std::vector<BlockIndex> indices = indices_of(m, spec, ids, refs);
    const std::string who = "index map function for " + m.origin + " must";
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const BlockDim& block = m.block_shape[i];
      const bool bounded = block.kind == BlockDim::Kind::bounded_slice;
      check_kind(m, indices[i], i, spec.index_map ? at : spec.at);
      if (block.kind == BlockDim::Kind::indirect)
        yields.push_back(recorder_.builder().constant(i32, 0, {}, at));
      else
        yields.push_back(scalar_index(indices[i].start, who, i, at));
      if (bounded) sizes.push_back(scalar_index(indices[i].size, who, i, at));
    }
    yields.insert(yields.end(), sizes.begin(), sizes.end());
    recorder_.builder().yield(std::move(yields));
    recorder_.leave();
    return graph::index(region);
  }

  void check_kind(const BlockMapping& m, const BlockIndex& index, std::size_t i,
                  Location at) const {
    const BlockDim& block = m.block_shape[i];
    const auto refuse = [&](const std::string& given, const char* expected) {
      fail(at, "index_map of " + m.origin + " returned " + given + " at position " +
                   std::to_string(i) + " with block dimension " + text({block}) +
                   " when it should be " + expected);
    };
    if (block.kind != BlockDim::Kind::bounded_slice) {
      if (index.is_slice)
        refuse("a pl::Slice",
               block.kind == BlockDim::Kind::indirect ? "an array of indices" : "a scalar");
      return;
    }
    if (!index.is_slice) refuse("an index", "pl::Slice, pl::ds(start, size)");
    if (index.stride != 1)
      refuse("a slice of stride " + std::to_string(index.stride), "one of stride 1");
    if (!is_literal(index.size)) return;
    if (const std::int64_t n = literal(index.size).integer; n < 0 || n > block.size)
      refuse("a slice of " + std::to_string(n) + " elements", "one of at most that many");
  }

  // The view that an index map's arrays of indices choose, chained dimension by dimension.
  ValueId chosen(ValueId ref, const BlockMapping& m, const BlockSpec& spec,
                 const std::vector<Ref>& operands) {
    if (std::ranges::find(m.block_shape, BlockDim::Kind::indirect, &BlockDim::kind) ==
        m.block_shape.end())
      return ref;
    const Location at = Access::at(spec.index_map);
    if (!spec.index_map)
      fail(spec.at, "block shape for " + m.origin + ": Indirect needs an index map");
    std::vector<Value> ids;
    for (std::size_t i = 0; i < recorder_.graph.mapping.grid.size(); ++i)
      ids.push_back(program_id(static_cast<int>(i), at));
    const std::vector<BlockIndex> indices = indices_of(m, spec, ids, operands);
    std::size_t dimension = 0;  // of the Ref
    for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
      if (m.block_shape[d].kind == BlockDim::Kind::indirect)
        ref = chosen_along(ref, dimension, indices[d], m, spec.block_shape[d].size, d, at);
      dimension += m.block_shape[d].kind != BlockDim::Kind::squeezed;
    }
    return ref;
  }

  ValueId chosen_along(ValueId ref, std::size_t dimension, const BlockIndex& indices,
                       const BlockMapping& m, std::int64_t count, std::size_t position,
                       Location at) {
    graph::Graph& g = recorder_.graph;
    const std::string who = "index map of " + m.origin;
    const ValueId array = recorder_.typed(indices.start, who.c_str(), at);
    const Type& type = g[array].type;
    if (!type.is_value() || !type.dtype.is_integer() || type.shape != Extents{count})
      fail(at, "index_map of " + m.origin + " returned " + graph::to_string(type) +
                   " at position " + std::to_string(position) + " with block dimension Indirect(" +
                   std::to_string(count) + ") when it should be an array of that many integers");
    graph::Subscript subscript;
    for (const std::int64_t extent : g[ref].type.shape) subscript.dims.push_back({.size = extent});
    subscript.dims[dimension] = {.is_slice = false, .dynamic = true, .array = true};
    const ValueId as_i32 = recorder_.builder().cast(array, i32, at);
    return recorder_.builder().at(ref, subscript, {as_i32}, at);
  }

  Ref index_operand(const AbstractValue& operand, Location at) {
    const ValueId ref = recorder_.builder().param(
        Type::ref(operand.type.dtype, extents(operand.type.shape), operand.memory_space), at);
    recorder_.read_only.push_back(ref);
    return recorder_.ref(ref);
  }

  [[noreturn]] void refuse_parameters(const BlockMapping& m, int arity, Location at) const {
    const GridMapping& grid = recorder_.graph.mapping;
    const auto axes = static_cast<int>(grid.grid.size());
    const std::string of_grid = "the grid " + text(grid.grid) + " has " + std::to_string(axes) +
                                (axes == 1 ? " axis" : " axes");
    if (grid.num_index_operands == 0)
      fail(at, "index map function for " + m.origin + " takes " +
                   (arity < 0 ? "another number of" : std::to_string(arity)) +
                   " program ids, but " + of_grid);
    fail(at, "index map function for " + m.origin + " takes " +
                 (arity < 0 ? "parameters of no type" : std::to_string(arity) + " parameters") +
                 ", but a pl::Index for each axis and then a pl::Ref for each index operand are " +
                 "expected: " + of_grid + ", and num_scalar_prefetch is " +
                 std::to_string(grid.num_index_operands));
  }

  // Of an argument that is an ArrayRef the body gets the output.
  void trace_body(std::size_t number, const Body& body) {
    graph::Graph& g = recorder_.graph;
    const RegionId region = g.add_region();
    const Threads& threads = recorder_.threads[number];
    g.bodies.push_back({.region = region,
                        .warpgroups = threads.count,
                        .num_warps = is_meshed() ? 0 : options_.compiler_params.num_warps,
                        .num_stages = options_.compiler_params.num_stages,
                        .warp_specialize = options_.compiler_params.warp_specialize});
    recorder_.body = number;
    recorder_.may_capture = is_meshed();
    recorder_.enter(region);
    graph::Builder builder = recorder_.builder();
    std::vector<BodyOperand> operands;
    const auto block = [&](const BlockMapping& m) {
      const Type type = Type::ref(m.array_aval.dtype, m.ref_shape(), m.memory_space);
      const ValueId ref = builder.param(type, at_);
      if (m.fill) recorder_.filled.emplace_back(ref, &m);
      if (&m - g.mapping.block_mappings.data() < g.mapping.num_index_operands)
        recorder_.read_only.push_back(ref);
      return BodyOperand{m.origin, false, ref};
    };
    std::vector<std::size_t> refs;  // operands
    for (std::size_t i = 0; i < g.arguments.size(); ++i) {
      const graph::Argument& a = g.arguments[i];
      if (arguments_[i].is_ref) refs.push_back(operands.size());
      if (a.kind == graph::Argument::Kind::input)
        operands.push_back(block(mapping(a.index)));
      else
        operands.push_back(
            {"args[" + std::to_string(i) + "]", true, builder.param(Type::value(a.dtype), at_)});
    }
    for (int i = 0; i < g.mapping.num_outputs; ++i) {
      const BodyOperand output = block(mapping(g.mapping.num_inputs + i));
      if (i < num_visible_)
        operands.push_back(output);
      else
        operands[refs[static_cast<std::size_t>(i - num_visible_)]] = output;
    }
    std::size_t next = 0;
    std::vector<ValueId> scratch(global_of_scratch_.size());
    for (std::size_t i = 0; i < scratch.size(); ++i) {
      if (global_of_scratch_[i] >= 0) continue;
      const AbstractValue& s = g.mapping.scratch_avals[next++];
      scratch[i] =
          builder.param(Type::ref(s.type.dtype, extents(s.type.shape), s.memory_space), at_);
    }
    for (std::size_t i = 0; i < scratch.size(); ++i)
      if (const int global = global_of_scratch_[i]; global >= 0)
        scratch[i] = recorder_.global(static_cast<std::size_t>(global));
    for (std::size_t i = 0; i < scratch.size(); ++i) {
      const ValueId v = scratch[i];
      operands.push_back({scratch_names_[i].empty() ? "scratch[" + std::to_string(i) + "]"
                                                    : "scratch '" + scratch_names_[i] + "'",
                          false, v});
      if (scratch_names_[i].empty()) continue;
      g.names.resize(graph::index(v) + 1);
      g.names[graph::index(v)] = scratch_names_[i];
    }
    choose(operands);
    blaming(body.at(), [&] { call_body(body, recorder_, operands, scratch_names_); });
    recorder_.leave();
    recorder_.may_capture = false;
  }

  // What the body gets of the arrays of which Indirect chooses.
  void choose(std::vector<BodyOperand>& operands) {
    const graph::Graph& g = recorder_.graph;
    if (is_meshed()) return;
    std::vector<Ref> index_operands;
    for (std::size_t i = 0; i < g.arguments.size(); ++i)
      if (!operands[i].is_scalar && g.arguments[i].index < g.mapping.num_index_operands)
        index_operands.push_back(recorder_.ref(operands[i].param));
    const auto choose = [&](BodyOperand& operand, int number) {
      operand.param = chosen(operand.param, mapping(number),
                             *specs_[static_cast<std::size_t>(number)], index_operands);
    };
    for (std::size_t i = 0; i < g.arguments.size(); ++i)
      if (!operands[i].is_scalar) choose(operands[i], g.arguments[i].index);
    for (int o = 0; o < num_visible_; ++o)
      choose(operands[g.arguments.size() + static_cast<std::size_t>(o)], g.mapping.num_inputs + o);
  }

  // Behind the arguments of the call, and behind its outputs.
  void add_captured() {
    graph::Graph& g = recorder_.graph;
    for (std::size_t c = 0; c < recorder_.captured.size(); ++c) {
      const Captured& captured = recorder_.captured[c];
      const std::string origin = "captured[" + std::to_string(c) + "]";
      std::vector<BlockMapping>& mappings = g.mapping.block_mappings;
      for (const bool is_output : {true, false}) {
        BlockMapping m = mapping_of({captured.array.type(), origin}, spec({}, 0));
        m.index_map = trace_index_map(m, *specs_.back());
        const auto at = static_cast<std::ptrdiff_t>(
            is_output ? mappings.size() : static_cast<std::size_t>(g.mapping.num_inputs));
        mappings.insert(mappings.begin() + at, std::move(m));
        std::rotate(specs_.begin() + at, specs_.end() - 1, specs_.end());
      }
      insert_captured(recorder_, c);
      g.arguments.push_back(
          {graph::Argument::Kind::input, g.mapping.num_inputs++, captured.array.dtype()});
      g.aliases.push_back({g.mapping.num_inputs - 1, g.mapping.num_outputs++});
    }
  }

  // The innermost first: what an outer one adds stands in front of it.
  void add_batches() {
    graph::Graph& g = recorder_.graph;
    for (std::size_t i = batches_.size(); i-- > 0;) {
      const BatchType& batch = batches_[i];
      if (g.mapping.grid.size() == detail::max_grid_rank)
        fail(batch.at, "vmap: the grid has " + std::to_string(detail::max_grid_rank) +
                           " axes already, the most that there are");
      std::vector<int> axes;
      for (std::size_t a = 0; a < g.arguments.size(); ++a)
        if (g.arguments[a].kind == graph::Argument::Kind::input)
          axes.push_back(a < batch.axes.size() ? batch.axes[a] : -1);  // behind them: captured
      if (const std::string problem = graph::add_batch_axis(g, batch.size, axes); !problem.empty())
        fail(batch.at, "vmap: " + problem);
    }
  }

  void resolve_dims() {
    GridMapping& m = recorder_.graph.mapping;
    for (const BlockMapping& b : m.block_mappings)
      for (const Dim& d : b.array_aval.shape)
        if (d.promise() != 0) promised_.push_back(d);
    if (!binding_) return;
    for (BlockMapping& b : m.block_mappings)
      for (int i = 0; i < b.array_aval.shape.rank(); ++i)
        b.array_aval.shape[i] = binding_->resolve(b.array_aval.shape[i]);
    for (Dim& d : m.grid) d = binding_->resolve(d);
    for (std::size_t i = 0; i < m.block_mappings.size(); ++i)
      check_size(m.block_mappings[i], specs_[i]->at);
  }

  // By their coming numbers, with what requirements and promises say of each.
  void find_symbols() {
    for (const std::uint32_t s : graph::symbols_in_order(recorder_.graph))
      symbols_.push_back({s, binding_ ? binding_->required(s) : DimSizes{}});
    for (const Dim& d : promised_) {
      const Dim is = binding_ ? binding_->resolve(d) : d;
      if (is.is_static()) {
        if (const DimSizes said = promised(d);
            is.value() % said.multiple != 0 || is.value() > said.most)
          fail("'" + to_string(d) + "' is " + to_string(is) +
               " here, against what pl::dim() was told of it: .multiple_of = " +
               std::to_string(said.multiple) + ", .at_most = " + std::to_string(said.most));
        continue;
      }
      const DimNode n = dim_node(is);
      for (SymbolOrigin& s : symbols_)
        if (n.op == detail::DimOp::symbol && n.symbol == s.symbol) s.sizes.narrow(promised(d));
    }
  }

  void set_class(graph::Graph& g) const {
    std::vector<std::int64_t> multiples;
    std::vector<DimSizes> sizes;
    for (const SymbolOrigin& s : symbols_) {
      multiples.push_back(s.sizes.multiple);
      sizes.push_back(s.sizes);
    }
    graph::set_multiples(g, std::move(multiples));
    g.short_offsets = graph::has_runtime_reach(g) && graph::has_short_offsets(g, sizes);
  }

  std::vector<std::optional<graph::Semantics>> wanted_order() const {
    std::vector<std::optional<graph::Semantics>> wanted;
    if (options_.compiler_params.dimension_semantics.empty()) return wanted;
    wanted.resize(batches_.size());
    for (const Semantics s : options_.compiler_params.dimension_semantics)
      wanted.push_back(s == Semantics::parallel ? graph::Semantics::parallel
                                                : graph::Semantics::sequential);
    return wanted;
  }

  const PallasCallOptions& options_;
  std::span<const ArgumentType> arguments_;
  Location at_;
  const DimBinding* binding_;
  std::span<const BatchType> batches_;
  const OverMeshes& over_;
  Recorder recorder_;
  Spelled call_;
  std::vector<const BlockSpec*> specs_;  // per block mapping
  std::vector<std::string> scratch_names_;
  std::vector<int> global_of_scratch_;  // of semaphores; -1: it is memory of the block
  int num_visible_ = 0;                 // outputs of the call
  std::vector<Dim> promised_;           // extents of arrays of which pl::dim() was told something
  std::vector<SymbolOrigin> symbols_;
};

}  // namespace

graph::Graph trace(std::span<const Body> bodies, const PallasCallOptions& options,
                   std::span<const ArgumentType> arguments, Location at, const DimBinding* binding,
                   std::vector<SymbolOrigin>* symbols, std::span<const BatchType> batches,
                   const OverMeshes& over, DebugMet* debug) {
  if (bodies.size() != 1 && !over.meshes)
    throw InternalError("trace: expected one body, given " + std::to_string(bodies.size()));
  graph::Graph result;
  blaming(at, [&] {
    Tracer tracer(options, arguments, at, binding, batches, over);
    result = tracer.run(bodies);
    if (symbols) *symbols = std::move(tracer).symbols();
    if (over.captured) *over.captured = tracer.captured();
    if (debug) *debug = tracer.debug();
  });
  return result;
}

bool tracing() { return Recorder::innermost() != nullptr; }

std::string traced_kernel() { return tracing() ? Recorder::innermost()->graph.name : ""; }

}  // namespace palladium::trace
