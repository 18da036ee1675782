// What a multiprocessor has, how many of them a GPU has, and how many blocks of a kernel they take
// at once.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/graph/graph.hpp"
#include "palladium/resources.hpp"

namespace palladium::thread {

struct Multiprocessor {
  int compute_capability = 0;  // from this on, up to the next row
  int warps = 0, blocks = 0;   // that reside at once
  std::int64_t shared_bytes = 0;
  std::int64_t block_shared_bytes = 0;  // that one block may use
  // A GPU of the architecture, by which it is judged, and how many of them it has.
  const char* device = "";
  int count = 0;
};

/// Of 10 * major + minor.
const Multiprocessor& multiprocessor(int compute_capability);

/// Of a kernel of so many threads per block; by nothing but registers, shared memory and places:
/// clusters may take fewer.
Occupancy occupancy(int compute_capability, int threads, const Resources& resources);

/// How many blocks, in whole clusters of so many, the table's GPU of the architecture takes at
/// once.
std::int64_t resident_blocks(int compute_capability, int threads, int cluster_blocks,
                             const Resources& resources);

/// How many programs a call has, those of clusters among them; none where the grid is no number.
std::optional<std::int64_t> programs_of_call(const graph::Graph& g);

/// How many blocks of a call come to each multiprocessor of the table's GPU, in turn or at once;
/// INT_MAX where the grid is no number.
int blocks_of_call(const graph::Graph& g, int compute_capability);

}  // namespace palladium::thread
