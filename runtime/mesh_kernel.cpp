#include "palladium/mesh_kernel.hpp"

#include "codegen/trace/mesh.hpp"
#include "palladium/error.hpp"

namespace palladium {

detail::MeshCall detail::mesh_call(KernelOptions options, Location) {
  if (options.name.empty() && !options.mesh.list.empty())
    options.name = options.mesh.list[0].kernel_name;
  return {{.name = std::move(options.name),
           .out_type = std::move(options.out_type),
           .scratch_types = std::move(options.scratch_types),
           .interpret = options.interpret,
           .debug = options.debug,
           .compiler_params = std::move(options.compiler_params),
           .cost_estimate = options.cost_estimate,
           .metadata = std::move(options.metadata)},
          std::move(options.mesh)};
}

detail::MeshCall detail::mesh_call(gpu::KernelOptions options, Location at) {
  if (!options.name.empty() && !options.kernel_name.empty())
    throw CompileError(at, "plgpu::kernel: cannot specify both kernel_name and name; use name");
  gpu::Mesh mesh{.grid = std::move(options.grid),
                 .grid_names = std::move(options.grid_names),
                 .cluster = std::move(options.cluster),
                 .cluster_names = std::move(options.cluster_names),
                 .num_threads = options.num_threads,
                 .thread_name = std::move(options.thread_name)};
  MeshCall call = mesh_call(
      KernelOptions{.name = std::move(options.name.empty() ? options.kernel_name : options.name),
                    .out_type = std::move(options.out_type),
                    .mesh = std::move(mesh),
                    .scratch_types = std::move(options.scratch_types),
                    .interpret = options.interpret,
                    .debug = options.debug,
                    .compiler_params = std::move(options.compiler_params),
                    .cost_estimate = options.cost_estimate,
                    .metadata = std::move(options.metadata)},
      at);
  call.options.out_shape = std::move(options.out_shape);
  call.options.scratch_shapes = std::move(options.scratch_shapes);
  return call;
}

void CoreMap::operator()(Body body) const {
  detail::MeshCall call = detail::mesh_call(
      KernelOptions{
          .name = options_.name.empty() && mesh_.kernel_name.empty() ? "core_map" : options_.name,
          .mesh = mesh_,
          .scratch_types = options_.scratch_types,
          .interpret = options_.interpret,
          .debug = options_.debug,
          .compiler_params = options_.compiler_params,
          .cost_estimate = options_.cost_estimate,
          .metadata = options_.metadata},
      at_);
  call.options.scratch_shapes = options_.scratch_shapes;
  call.must_write = true;
  (void)detail::make_kernel({{std::move(body)}}, std::move(call), at_).call({}, at_);
}

void detail::refuse_options(bool are_given, Location at) {
  throw CompileError(
      at, are_given ? "kernel: options wait for a body, and no others stand beside them: "
                      "pl::kernel(options)(body)"
                    : "kernel: options stand beside a body: pl::kernel(body, {.out_type = ..., "
                      ".mesh = ...}), or a function of the arguments' types that returns them");
}

void detail::refuse_warp_options(Location at) {
  throw CompileError(at,
                     "core_map: a WarpMesh is that of a part of a body, which takes no options: "
                     "pl::core_map(plgpu::WarpMesh{...})([&] { ... });");
}

void detail::check_factory(const MeshCall& call, Location at) {
  trace::check_factory_mesh(call.meshes, at);
}

}  // namespace palladium
