#include "codegen/trace/spelled.hpp"

#include "palladium/error.hpp"

namespace palladium::trace {
namespace {

bool has_any(const GridSpec& spec) {
  return !spec.grid.empty() || !spec.in_specs.empty() || !spec.out_specs.empty() ||
         !spec.scratch_shapes.empty() || spec.num_scalar_prefetch != 0;
}

void check_spellings(const PallasCallOptions& options, const std::string& kernel, Location at) {
  const auto fail = [&](const std::string& what) {
    throw CompileError(at, "kernel '" + kernel + "': " + what);
  };
  const auto one_of = [&](bool has_new, bool has_old, const char* fresh, const char* old) {
    if (has_new && has_old)
      fail(std::string("cannot specify both ") + old + " and " + fresh + "; use " + fresh);
  };
  one_of(!options.out_type.empty(), !options.out_shape.empty(), "out_type", "out_shape");
  one_of(!options.scratch_types.empty(), !options.scratch_shapes.empty(), "scratch_types",
         "scratch_shapes");
  const bool has_spec = has_any(options.grid_spec);
  const auto without_spec = [&](bool given, const char* field) {
    if (has_spec && given)
      fail(std::string("if grid_spec is given, then ") + field + " must not be");
  };
  without_spec(options.num_scalar_prefetch != 0, "num_scalar_prefetch");
  without_spec(!options.grid.empty(), "grid");
  without_spec(!options.in_specs.empty(), "in_specs");
  without_spec(!options.out_specs.empty(), "out_specs");
  without_spec(!options.scratch_types.empty(), "scratch_types");
  without_spec(!options.scratch_shapes.empty(), "scratch_shapes");
}

}  // namespace

Spelled spelled(const PallasCallOptions& options, const Meshes* meshes, const std::string& kernel,
                Location at) {
  check_spellings(options, kernel, at);
  const GridSpec& spec = options.grid_spec;
  const bool has_spec = has_any(spec);
  Spelled call{.grid = has_spec ? spec.grid : options.grid,
               .in_specs = has_spec ? spec.in_specs : options.in_specs,
               .out_specs = has_spec ? spec.out_specs : options.out_specs,
               .scratch = has_spec                        ? spec.scratch_shapes
                          : options.scratch_types.empty() ? options.scratch_shapes
                                                          : options.scratch_types,
               .out_type = options.out_type.empty() ? options.out_shape : options.out_type,
               .num_scalar_prefetch =
                   has_spec ? spec.num_scalar_prefetch : options.num_scalar_prefetch,
               .cluster = options.cluster,
               .grid_names = options.grid_names,
               .cluster_names = options.cluster_names};
  if (meshes) {
    const gpu::Mesh& mesh = meshes->list[0];
    call.grid.sizes = mesh.grid;
    call.grid_names = mesh.grid_names;
    call.cluster = mesh.cluster;
    call.cluster_names = mesh.cluster_names;
  }
  return call;
}

}  // namespace palladium::trace
