// What a kernel's emitted program asks of a multiprocessor, counted before anything runs.
#pragma once

#include <string>
#include <vector>

#include "palladium/error.hpp"

namespace palladium {

/// One access of the emitted text, of the first warp of the first program in the first turn of each
/// loop. What only a call knows (a symbolic size, a run-time stride) counts as the least number of
/// its class from 4096 on.
struct AccessReport {
  Location at;           // the user's line
  std::string function;  // of the device library
  bool shared = false;   // shared memory, else global
  bool store = false;
  int bytes = 0;     // that a thread moves at once
  double times = 0;  // that a thread makes it
  /// Sectors of 32 bytes of global memory that the warp's access touches, and the fewest that its
  /// bytes need; of shared memory wavefronts: touched / needed is the degree of bank conflicts.
  /// Both 0 where the addresses depend on data.
  int touched = 0, needed = 0;
};

/// What one thread executes, loops counted by their trips; those whose trips a call decides once.
struct InstructionMix {
  double global_loads = 0, global_stores = 0, shared_loads = 0, shared_stores = 0;
  double operations = 0;  // arithmetic on values, tests and choices
  double special = 0;     // with an error bound: exp, sin, rsqrt, ...
  double products = 0;    // matrix products of blocks
  double exchanges = 0;   // shuffles, folds over lanes and warps
  double barriers = 0;
};

struct Report {
  std::vector<AccessReport> accesses = {};
  InstructionMix mix = {};
  double global_bytes = 0;       // between global memory and a thread
  bool depends_on_call = false;  // a loop's trips are known at a call only
};

}  // namespace palladium
