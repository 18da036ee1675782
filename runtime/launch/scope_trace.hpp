// What a launch tells of its scopes (codegen/device/common/profile.cuh), as a trace for Perfetto.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "codegen/graph/graph.hpp"
#include "runtime/build/launch_plan.hpp"

namespace palladium::runtime {

/// Whether the kernel writes it.
bool has_scopes(const LaunchPlan& plan);

/// Of a launch of so many blocks.
struct ScopeTrace {
  const graph::Graph& graph;
  int threads = 0;  // of a block
  std::int64_t blocks = 0;

  std::size_t numbers() const;
  /// Writes what the kernel, which has ended, has left there, which was zeros before, to a file of
  /// the kernel's name in its profile_dir; `device` and `clock` are said in it. Returns its path.
  /// CompileError where it has told more than there was room for and that is not to be cut off, and
  /// where the file cannot be written.
  std::string write(std::span<const std::uint64_t> told, const std::string& device,
                    const std::string& clock) const;
};

}  // namespace palladium::runtime
