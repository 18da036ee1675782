#include "codegen/trace/mesh.hpp"

#include <algorithm>

#include "palladium/error.hpp"

namespace palladium {
namespace {

std::string text(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return "(" + result + ")";
}

std::string text(const std::vector<Dim>& sizes) {
  std::string result;
  for (const Dim& size : sizes) result += (result.empty() ? "" : ", ") + to_string(size);
  return "(" + result + ")";
}

[[noreturn]] void fail(Location at, const std::string& what) {
  throw CompileError(at, "mesh: " + what);
}

bool are_same(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return std::ranges::equal(a, b, [](const Dim& x, const Dim& y) { return x.same(y); });
}

void check_repeated(const std::vector<MeshAxis>& axes, Location at) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (!axes[i].name.empty() && axes[i].name == axes[j].name)
        fail(at, "two axes are named '" + axes[i].name + "'");
}

}  // namespace

void gpu::Mesh::check(Location at) const {
  if (cluster.size() > 3) fail(at, "cluster= must be at most 3D, got " + text(cluster));
  const auto named = [&](const char* what, const std::vector<Dim>& sizes,
                         const std::vector<std::string>& names) {
    if (!names.empty() && names.size() != sizes.size())
      fail(at, std::string(what) + "_names must have the same length as " + what + ", got " +
                   text(names) + " for " + text(sizes));
  };
  named("grid", grid, grid_names);
  named("cluster", cluster, cluster_names);
  if (num_threads < 0 || (num_threads != 0) != !thread_name.empty())
    fail(at, "num_threads and thread_name must be either both set or both None, got num_threads=" +
                 std::to_string(num_threads) + " and thread_name='" + thread_name + "'");
  constexpr int most_threads = 16;
  if (num_threads > most_threads)
    fail(at,
         "Requested too many CUDA threads per block. Each Pallas thread corresponds to 128 CUDA "
         "threads. At most 16 are supported, got num_threads=" +
             std::to_string(num_threads));
}

std::vector<MeshAxis> gpu::Mesh::shape(Location at) const {
  check(at);
  std::vector<MeshAxis> axes;
  const auto add = [&](const std::vector<Dim>& sizes, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      axes.push_back({names.empty() ? "" : names[i], sizes[i]});
  };
  add(grid, grid_names);
  add(cluster, cluster_names);
  if (num_threads != 0) axes.push_back({thread_name, num_threads});
  check_repeated(axes, at);
  return axes;
}

void gpu::Mesh::check_is_compatible_with(const Mesh& other, Location at) const {
  const auto equal = [&](const char* what, const auto& mine, const auto& theirs, bool same) {
    if (!same)
      fail(at, std::string("the bodies of one launch stand in the same blocks, so their meshes "
                           "have one ") +
                   what + ", given " + text(mine) + " and " + text(theirs));
  };
  equal("grid", grid, other.grid, are_same(grid, other.grid));
  equal("list of grid_names", grid_names, other.grid_names, grid_names == other.grid_names);
  equal("cluster", cluster, other.cluster, are_same(cluster, other.cluster));
  equal("list of cluster_names", cluster_names, other.cluster_names,
        cluster_names == other.cluster_names);
  if (!thread_name.empty() && thread_name == other.thread_name && num_threads != other.num_threads)
    fail(at, "axis '" + thread_name + "' has the sizes " + std::to_string(num_threads) + " and " +
                 std::to_string(other.num_threads) + "; axes of one name have one size");
}

void gpu::WarpMesh::check_is_compatible_with(const WarpMesh&, Location at) const {
  fail(at,
       "a WarpMesh is that of a part of a body, pl::core_map(plgpu::WarpMesh{...}), and runs "
       "beside no other");
}

namespace trace {

void check_meshes(std::size_t bodies, bool is_list, const Meshes& meshes, Location at) {
  const auto refuse = [&](const char* what) {
    throw CompileError(at, std::string("pl::kernel: ") + what);
  };
  if (!is_list && meshes.is_list)
    refuse("mesh cannot be a sequence when body is a single callable");
  if (!is_list && meshes.list.empty()) refuse("a mesh is needed: .mesh = plgpu::Mesh{...}");
  if (is_list && !meshes.is_list)
    refuse("mesh must be a sequence when body is a sequence of callables");
  if (is_list && meshes.list.size() != bodies)
    refuse("body and mesh sequences must have the same length");
  if (is_list && bodies == 0) refuse("at least one mesh/function pair is required");
  for (const gpu::Mesh& mesh : meshes.list) (void)mesh.shape(at);
  for (std::size_t i = 0; i < meshes.list.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) meshes.list[j].check_is_compatible_with(meshes.list[i], at);
}

void check_factory_mesh(const Meshes& meshes, Location at) {
  if (meshes.is_list)
    throw CompileError(at,
                       "pl::kernel: mesh cannot be a sequence when using pl::kernel as a factory");
  check_meshes(1, false, meshes, at);
}

}  // namespace trace
}  // namespace palladium
