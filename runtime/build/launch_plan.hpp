// How an emitted kernel is launched: what is left of cuda::Emitted once its text is compiled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/base/tensor_map.hpp"
#include "codegen/cuda/emit.hpp"

namespace palladium::runtime {

struct LaunchPlan {
  std::string entry = {};
  std::vector<cuda::Parameter> parameters = {};
  Dim blocks = 1;           // over the graph's canonical symbols
  bool persistent = false;  // no more blocks than are resident at once
  int threads = 128;
  int cluster_blocks = 1;
  std::int64_t shared_bytes = 0;  // dynamic
};

LaunchPlan plan_of(const cuda::Emitted& emitted);

/// The plan for a call whose symbols have other numbers: by number of the plan's that of the
/// call's.
void renumber_symbols(LaunchPlan& plan, std::span<const std::uint32_t> numbers);

/// What a parameter of kind reciprocal is where its symbol is so much.
std::uint64_t reciprocal_of(std::int64_t symbol);

/// What TMA is told of an array that a parameter of kind tensor_map wants: its elements' type,
/// where it is, its shape and strides in elements.
TensorMapSpec tensor_map_of(const cuda::Parameter& parameter, DType dtype, void* data,
                            std::span<const std::int64_t> shape,
                            std::span<const std::int64_t> strides);

/// For the metadata of a cache entry.
std::string to_json(const LaunchPlan& plan);
/// False for text that to_json() did not write.
bool from_json(const std::string& json, LaunchPlan& plan);

}  // namespace palladium::runtime
