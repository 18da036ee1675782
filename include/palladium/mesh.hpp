// Meshes: what the body of a pl::kernel is run over.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "palladium/block_spec.hpp"

namespace palladium {

struct MeshAxis {
  std::string name = {};  ///< of grid and cluster perhaps empty
  Dim size = 1;
};

/// The protocol of a mesh: its axes, outermost first; where the Refs of arguments and outputs live,
/// and where memory may be; and whether its body can run in one launch with the body of another
/// (CompileError at `at` if not).
template <class M>
concept Mesh = requires(const M& mesh, Location at) {
  { mesh.shape() } -> std::same_as<std::vector<MeshAxis>>;
  { mesh.default_memory_space() } -> std::same_as<MemorySpace>;
  { mesh.supported_memory_spaces() } -> std::same_as<std::vector<MemorySpace>>;
  mesh.check_is_compatible_with(mesh, at);
};

namespace gpu {

/// Blocks of `num_threads` Pallas threads each, which are warpgroups of 128 CUDA threads. The grid
/// counts clusters; its last axis varies fastest.
struct PALLADIUM_API Mesh {
  std::vector<Dim> grid = {};
  std::vector<std::string> grid_names = {};
  std::vector<Dim> cluster = {};
  std::vector<std::string> cluster_names = {};
  int num_threads = 0;  ///< 0: one, without a name; else thread_name is given, too
  std::string thread_name = {};
  std::string kernel_name = {};

  /// CompileError at `at` for what no mesh can be.
  void check(Location at = here()) const;
  /// Grid axes, cluster axes, thread axis.
  std::vector<MeshAxis> shape(Location at = here()) const;
  MemorySpace default_memory_space() const { return {Space::gmem}; }
  std::vector<MemorySpace> supported_memory_spaces() const {
    return {{Space::gmem}, {Space::smem}, {Space::regs}};
  }
  /// Bodies of one launch stand in the same blocks: grid and cluster must be equal, and axes of
  /// one name.
  void check_is_compatible_with(const Mesh& other, Location at = here()) const;

  int threads() const { return num_threads == 0 ? 1 : num_threads; }
};

/// The four warps of a Pallas thread: what runs over it, in a body, is run by each of them at the
/// same time, between two barriers of the thread. There it knows scalars and Refs, and no arrays.
struct PALLADIUM_API WarpMesh {
  std::string axis_name = {};  ///< that pl::axis_index takes; or empty

  static constexpr int warps = 4;
  std::vector<MeshAxis> shape() const { return {{axis_name, warps}}; }
  MemorySpace default_memory_space() const { return {Space::gmem}; }
  std::vector<MemorySpace> supported_memory_spaces() const {
    return {{Space::gmem}, {Space::smem}};
  }
  /// CompileError: it is inside of a body, not beside one.
  void check_is_compatible_with(const WarpMesh& other, Location at = here()) const;
};

}  // namespace gpu

/// One mesh, `.mesh = plgpu::Mesh{...}`, or one for each body, `.mesh = {mesh0, mesh1}`.
class Meshes {
 public:
  Meshes() = default;
  Meshes(const Meshes&) = default;
  Meshes(Meshes&&) = default;
  Meshes& operator=(const Meshes&) = default;  // alone: clang finds `mesh = {}` ambiguous with two
  Meshes(gpu::Mesh mesh) : list{std::move(mesh)} {}
  Meshes(std::initializer_list<gpu::Mesh> meshes) : list(meshes), is_list(true) {}
  Meshes(std::vector<gpu::Mesh> meshes) : list(std::move(meshes)), is_list(true) {}
  template <std::same_as<gpu::WarpMesh> M>
  Meshes(const M&) {
    static_assert(
        detail::never<M>,
        "palladium: a WarpMesh has the warps of one Pallas thread, so it is the mesh of a "
        "part of a body: pl::core_map(plgpu::WarpMesh{...})([&] { ... });");
  }

  std::vector<gpu::Mesh> list = {};
  bool is_list = false;
};

}  // namespace palladium
