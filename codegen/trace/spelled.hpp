// Options of a kernel, whichever way they are spelled.
#pragma once

#include <string>
#include <vector>

#include "palladium/mesh.hpp"
#include "palladium/spec.hpp"

namespace palladium::trace {

struct Spelled {
  Grid grid;
  std::vector<BlockSpec> in_specs, out_specs;
  ScratchTypes scratch;
  OutType out_type;
  int num_scalar_prefetch = 0;
  std::vector<Dim> cluster;
  std::vector<std::string> grid_names, cluster_names;
};

/// Grid and cluster are those of the first mesh, where there are any. CompileError at `at` for what
/// is spelled twice.
Spelled spelled(const PallasCallOptions& options, const Meshes* meshes, const std::string& kernel,
                Location at);

}  // namespace palladium::trace
