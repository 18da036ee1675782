// Grid, cluster and threads, as options give them.
#include <algorithm>

#include "codegen/base/architecture.hpp"
#include "codegen/base/checked.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/trace/tracer.hpp"

namespace palladium::trace {

void Tracer::set_grid() {
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
  if (options_.compiler_params.num_stages != 0 &&
      options_.compiler_params.max_concurrent_steps != 0)
    fail("cannot specify both compiler_params.num_stages and max_concurrent_steps");
  if (const int n = options_.compiler_params.max_concurrent_steps; n < 0 || n > graph::most_stages)
    fail("compiler_params.max_concurrent_steps is 1 to " + std::to_string(graph::most_stages) +
         ", or 0 to let the compiler choose, given " + std::to_string(n));
  if (const int n = options_.compiler_params.reduction_scratch_bytes; n < 0)
    fail("compiler_params.reduction_scratch_bytes is 0 or more, given " + std::to_string(n));
  if (options_.compiler_params.unsafe_no_auto_barriers && !is_meshed())
    fail(
        "compiler_params.unsafe_no_auto_barriers is for a kernel over a mesh, whose body says who "
        "waits for whom");
  if (const int n = options_.interpret.params.num_cores_per_device; n < 0)
    fail(
        "interpret.num_cores_per_device is a number of OS threads, or 0 for one on each core, "
        "given " +
        std::to_string(n));
}

void Tracer::set_grid_order() {
  const std::optional<GridOrder> order = options_.compiler_params.grid_order;
  if (!order) return;
  if (order->rows < 1 || order->rows > graph::most_grid_rows)
    fail("compiler_params.grid_order has 1 to " + std::to_string(graph::most_grid_rows) +
         " rows at once, given pl::grouped(" + std::to_string(order->rows) + ")");
  recorder_.graph.grid_rows = order->rows;
}

void Tracer::set_split() {
  const int parts = options_.compiler_params.split_k;
  if (parts < 0 || parts > graph::most_split)
    fail("compiler_params.split_k is a number of blocks, 1 to " +
         std::to_string(graph::most_split) + ", or 0 for one, given " + std::to_string(parts));
  recorder_.graph.split_k = parts > 1 ? parts : 0;
}

void Tracer::set_profile() {
  const CompilerParams& p = options_.compiler_params;
  if ((p.profile_space != 0) == p.profile_dir.empty())
    fail(
        "either both compiler_params.profile_space and profile_dir must be set, or neither, "
        "given " +
        std::to_string(p.profile_space) + " and '" + p.profile_dir + "'");
  if (p.profile_space < 0 || p.profile_space > graph::most_scope_events)
    fail("compiler_params.profile_space is 1 to " + std::to_string(graph::most_scope_events) +
         " begins and ends of scopes, given " + std::to_string(p.profile_space));
  recorder_.profile = {.space = p.profile_space,
                       .of_warps = p.profile_trace_scope == gpu::TraceScope::WARP,
                       .cuts = p.profile_bounds_check};
  recorder_.graph.profile_dir = p.profile_dir;
}

void Tracer::set_expectation() {
  const Expectation& e = options_.compiler_params.expect;
  const auto known = architecture_names();
  if (!e.on.empty() && std::ranges::find(known, e.on) == known.end())
    fail("compiler_params.expect.on is '" + e.on + "'; kernels are compiled for " + listed(known));
  if (!(e.of_limit >= 0 && e.of_limit <= 1))
    fail("compiler_params.expect.of_limit is a fraction, given " + std::to_string(e.of_limit));
  if (e.registers < 0 || e.spills.value_or(0) < 0)
    fail("compiler_params.expect: registers and spills are 0 or more, given " +
         std::to_string(e.registers) + " and " + std::to_string(e.spills.value_or(0)));
  recorder_.graph.expect = e;
}

void Tracer::check_grid_order(const graph::Graph& g) const {
  const auto parallel = std::ranges::count(g.semantics, graph::Semantics::parallel);
  if (g.grid_rows > 1 && parallel < 2)
    fail("compiler_params.grid_order = pl::grouped(" + std::to_string(g.grid_rows) +
         ") takes rows of the last two parallel axes of the grid, which is " +
         text(g.mapping.grid) + " and has " + std::to_string(parallel));
}

void Tracer::set_cluster() {
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

void Tracer::set_threads(std::size_t bodies) {
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

void Tracer::check_names(const std::vector<std::string>& names, std::size_t axes,
                         const char* what) {
  if (!names.empty() && names.size() != axes)
    fail(std::string(what) + "_names must have the same length as " + what + ", given " +
         text(names) + " for " + std::to_string(axes) + (axes == 1 ? " axis" : " axes"));
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i))
      fail("axis name '" + names[i] + "' is given twice in " + what + "_names");
}

}  // namespace palladium::trace
