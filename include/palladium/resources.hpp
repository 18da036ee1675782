// What a compiled kernel uses of a multiprocessor, what ptxas complained about, and how long it
// took.
#pragma once

#include <string>
#include <vector>

#include "palladium/api.hpp"

namespace palladium {

struct Resources {
  int registers = 0;          // per thread
  int shared_bytes = 0;       // shared memory per block
  int stack_bytes = 0;        // local memory per thread
  int spill_store_bytes = 0;  // of all functions together
  int spill_load_bytes = 0;
  int barriers = 0;
  /// What means lost speed or worse: all that the assembler says beside figures (wgmma that it
  /// serialized, waits that it injected, advice), with the line where it tells one; local memory.
  std::vector<std::string> warnings = {};

  bool operator==(const Resources&) const = default;
};

/// How many blocks of a kernel a multiprocessor takes at once: the least of what its registers, its
/// shared memory, its places for warps and its places for blocks allow.
struct Occupancy {
  int blocks = 0;
  int warps = 0, most_warps = 0;  // of those blocks, and that a multiprocessor has places for
  int by_registers = 0, by_shared_memory = 0, by_warps = 0, by_slots = 0;

  bool operator==(const Occupancy&) const = default;
};

/// Milliseconds of a compile's steps; 0 for those that a cache hit spared.
struct CompileTimes {
  double trace = 0, find = 0, lower = 0, nvrtc = 0;
};

}  // namespace palladium
