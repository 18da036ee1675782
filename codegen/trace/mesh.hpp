// What the meshes of a kernel must be, beside what each must be by itself.
#pragma once

#include <cstddef>
#include <string>

#include "palladium/mesh.hpp"

namespace palladium::trace {

/// CompileError unless so many bodies, given as a list or not, can run over these meshes in one
/// launch.
void check_meshes(std::size_t bodies, bool is_list, const Meshes& meshes, Location at);
/// That of a kernel whose body is still to come.
void check_factory_mesh(const Meshes& meshes, Location at);

/// The Pallas threads of one body among those of the block.
struct Threads {
  std::string name = {};  // of their axis, or empty
  int first = 0, count = 1;
};

}  // namespace palladium::trace
