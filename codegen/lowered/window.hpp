// What a program sees of its arrays, and its scratch.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/lowered/ids.hpp"

namespace palladium::lowered {

/// The block is accessed in global memory.
struct Direct {
  bool synchronised = false;  // threads read what others wrote: barriers around stores
};
/// It is private to the program until its last visit, or is scratch.
struct Resident {
  StorageId storage = {};
  bool fill = false;   // loaded from global memory before the first use
  bool flush = false;  // stored to global memory after the last
};
struct InRegisters : Resident {};
struct InShared : Resident {};
/// It is in global memory, which nobody writes, and read from a copy in shared memory.
struct Staged {
  StorageId storage = {};
  std::int64_t lead = 0;    // elements in front of each of its rows, so that vectors of ...
  std::int64_t vector = 1;  // ... so many are aligned in global memory
  bool zeros = false;       // what lies out of bounds is 0, and nobody asks whether it does
  bool turned = false;      // all reads of it are along other dimensions than its rows
};

/// The alternatives of where a block lives, by their order.
enum class Residency : std::uint8_t { direct, registers, shared, staged };

/// A root Ref.
struct Window {
  ValueId root = graph::no_value;
  int mapping = -1;                 // block mapping; -1: scratch
  int body = 0;                     // whose it is
  ValueId scope = graph::no_value;  // scratch: the run_scoped whose it is, or the body
  std::variant<Direct, InRegisters, InShared, Staged> in = Direct{};
  int depth = 0;                     // number of sequential loops in which its block is constant
  bool stored = false;               // the kernel stores to its array through it
  bool read_only = false;            // nobody writes its memory while the kernel runs
  std::vector<bool> in_bounds = {};  // per array dimension: the window is proved to be inside

  Residency residency() const { return static_cast<Residency>(in.index()); }
  bool is_direct() const { return residency() == Residency::direct; }
  bool is_staged() const { return residency() == Residency::staged; }
  /// nullptr: it is not. `staged` is for what is staged: InternalError of others.
  Resident* resident();
  const Resident* resident() const;
  const Staged& staged() const;
  /// For windows that live anywhere. None: it is direct.
  StorageId storage() const;
  bool fills() const;    // before the first use, from global memory
  bool flushes() const;  // after the last, to global memory
  bool is_synchronised() const;
};

}  // namespace palladium::lowered
