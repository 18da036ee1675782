// What a program sees of its arrays, and its scratch.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/lowered/storage.hpp"

namespace palladium::lowered {

enum class Residency : std::uint8_t {
  direct,     // in global memory
  registers,  // resident: private to the program until its last visit
  shared,
  staged,  // in global memory, which nobody writes, and read from a copy in shared memory
};

/// A root Ref.
struct Window {
  ValueId root = graph::no_value;
  int mapping = -1;                 // block mapping; -1: scratch
  int body = 0;                     // whose it is
  ValueId scope = graph::no_value;  // scratch: the run_scoped whose it is, or the body
  Residency residency = Residency::direct;
  StorageId storage = {};            // if not direct
  int depth = 0;                     // number of sequential loops in which its block is constant
  bool fill = false;                 // resident: loaded from global memory before the first use
  bool flush = false;                // resident: stored to global memory after the last
  bool stored = false;               // the kernel stores to its array through it
  bool read_only = false;            // nobody writes its memory while the kernel runs
  bool synchronised = false;         // threads read what others wrote: barriers around stores
  std::vector<bool> in_bounds = {};  // per array dimension: the window is proved to be inside
  std::int64_t lead = 0;    // staged: elements in front of each of its rows, so that vectors of ...
  std::int64_t vector = 1;  // ... so many are aligned in global memory
  bool zeros = false;       // staged: what lies out of bounds is 0, and nobody asks whether it does
  bool turned = false;      // staged: all reads of it are along other dimensions than its rows
};

}  // namespace palladium::lowered
