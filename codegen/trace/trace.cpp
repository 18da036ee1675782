#include "codegen/trace/trace.hpp"

#include <optional>

#include "codegen/graph/batch.hpp"
#include "codegen/graph/classes.hpp"
#include "codegen/graph/grid_env.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/graph/transform.hpp"
#include "codegen/trace/mesh.hpp"
#include "codegen/trace/operands.hpp"
#include "codegen/trace/over_meshes.hpp"
#include "codegen/trace/tracer.hpp"

namespace palladium::trace {

Tracer::Tracer(const PallasCallOptions& options, std::span<const ArgumentType> arguments,
               Location at, const DimBinding* binding, std::span<const BatchType> batches,
               const OverMeshes& over)
    : options_(options),
      arguments_(arguments),
      at_(at),
      binding_(binding),
      batches_(batches),
      over_(over),
      recorder_(options.name.empty() ? "kernel" : options.name) {}

graph::Graph Tracer::run(std::span<const Body> bodies) {
  check_name();
  if (is_meshed()) check_meshes(bodies.size(), over_.is_list, *over_.meshes, at_);
  call_ = spelled(options_, over_.meshes, recorder_.graph.name, at_);
  graph::Graph& g = recorder_.graph;
  g.at = at_;
  g.fma = options_.compiler_params.fma;
  g.approx_math = options_.compiler_params.approx_math;
  g.fast_accumulation = options_.compiler_params.fast_accumulation;
  g.allow_revisit = options_.compiler_params.allow_revisit;
  g.persistent = options_.compiler_params.persistent;
  g.no_auto_barriers = options_.compiler_params.unsafe_no_auto_barriers;
  set_grid_order();
  set_split();
  g.lineinfo = options_.compiler_params.lineinfo;
  g.mapping.debug = options_.debug;
  g.cost = options_.cost_estimate;
  g.metadata = options_.metadata;
  set_expectation();
  set_profile();
  g.whole_arrays = is_meshed();
  set_grid();
  set_threads(bodies.size());
  map_operands();
  if (const std::string problem = connect_arguments(g, arguments_); !problem.empty()) fail(problem);
  set_aliases();
  set_scratch();
  trace_grid_env();
  trace_index_maps();
  for (std::size_t b = 0; b < bodies.size(); ++b) trace_body(b, bodies[b]);
  check_persistent();
  if (is_meshed()) {
    check_accesses(recorder_, call_.scratch, over_.must_write, at_);
    add_captured();
    add_globals(recorder_);
    add_shared(recorder_);
    settle_turns(g);
    specs_.resize(g.mapping.block_mappings.size(), &whole_array());
  }
  graph::bind_grid(g);
  add_batches();
  resolve_dims();
  settle_extents();
  find_symbols();

  graph::Graph result = graph::canonicalize(g);
  check_empty(result);
  set_class(result);
  graph::check_updated(result);
  check_memory_scopes(result);
  result.semantics = graph::grid_order(result, wanted_order());
  check_grid_order(result);
  graph::check_static_grid(result, at_);
  result.mapping.check_invariants();
  graph::verify(result, "trace");
  if (graph::has_packed(result)) (void)graph::in_bytes(result);  // refuses what cannot be
  return result;
}

std::vector<ArrayRef> Tracer::captured() const {
  std::vector<ArrayRef> arrays;
  for (const Captured& c : recorder_.captured) arrays.push_back(new_ref(c.array, c.at));
  return arrays;
}

// A persistent block goes through programs one after the other: they cannot run at once.
void Tracer::check_persistent() const {
  const graph::Graph& g = recorder_.graph;
  if (!g.persistent) return;
  const std::string wanted = "compiler_params.persistent is for the programs of a grid of blocks; ";
  if (is_meshed()) fail(wanted + "a kernel over a mesh goes through its work by a loop of its own");
  if (!g.cluster.empty())
    fail(wanted + "those of a cluster run at once, given cluster = " + text(call_.cluster));
}

void Tracer::check_name() const {
  const std::size_t at = options_.name.find('\0');
  if (at != std::string::npos)
    throw CompileError(at_, "a kernel's name ends at its NUL character, given one at position " +
                                std::to_string(at) + " of " + std::to_string(options_.name.size()) +
                                ": '" + options_.name.substr(0, at) + "...'");
}

void Tracer::add_batches() {
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

void Tracer::resolve_dims() {
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

void Tracer::find_symbols() {
  for (const std::uint32_t s : graph::symbols_in_order(recorder_.graph))
    symbols_.push_back({s, binding_ ? binding_->required(s) : DimSizes{}});
  for (const BlockMapping& m : recorder_.graph.mapping.block_mappings)
    for (std::size_t d = 0; d < m.block_shape.size(); ++d)
      if (m.block_shape[d].kind == BlockDim::Kind::bounded)
        narrow(m.array_aval.shape[static_cast<int>(d)], {.most = m.block_shape[d].size});
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
    narrow(is, promised(d));
  }
}

void Tracer::narrow(const Dim& d, const DimSizes& sizes) {
  if (d.is_static()) return;
  const DimNode n = dim_node(d);
  for (SymbolOrigin& s : symbols_)
    if (n.op == detail::DimOp::symbol && n.symbol == s.symbol) s.sizes.narrow(sizes);
}

void Tracer::set_class(graph::Graph& g) const {
  std::vector<std::int64_t> multiples;
  std::vector<DimSizes> sizes;
  for (const SymbolOrigin& s : symbols_) {
    multiples.push_back(s.sizes.multiple);
    sizes.push_back(s.sizes);
  }
  graph::set_multiples(g, std::move(multiples));
  g.short_offsets = graph::has_runtime_reach(g) && graph::has_short_offsets(g, sizes);
  g.box_extents = !g.short_offsets && graph::has_box_extents(g, sizes);
}

std::vector<std::optional<graph::Semantics>> Tracer::wanted_order() const {
  std::vector<std::optional<graph::Semantics>> wanted;
  if (options_.compiler_params.dimension_semantics.empty()) return wanted;
  wanted.resize(batches_.size());
  for (const Semantics s : options_.compiler_params.dimension_semantics)
    wanted.push_back(s == Semantics::parallel ? graph::Semantics::parallel
                                              : graph::Semantics::sequential);
  return wanted;
}

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
