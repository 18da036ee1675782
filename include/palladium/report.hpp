// What a kernel asks of a multiprocessor: its emitted program, counted before anything runs, and
// what ptxas made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palladium/error.hpp"
#include "palladium/resources.hpp"

namespace palladium {

/// One access of the emitted text, of the first warp of the first program in the first iteration of
/// each loop. What only a call knows (a symbolic size, a run-time stride) counts as the least
/// number of its class from 4096 on.
struct AccessReport {
  Location at;           // the user's line
  std::string function;  // of the device library
  bool shared = false;   // shared memory, else global
  bool store = false;
  int bytes = 0;          // that a thread moves at once
  int element_bytes = 0;  // of them, an element's
  double times = 0;       // that a thread makes it
  /// Sectors of 32 bytes of global memory that the warp's access touches, and the fewest that its
  /// bytes need; of shared memory wavefronts: touched / needed is the degree of bank conflicts.
  /// Both 0 where the addresses depend on data.
  int touched = 0, needed = 0;
  /// Different bytes that the warp takes, and those of all that it touches: sectors of 32 bytes,
  /// wavefronts of 128; of loads that follow one another in sectors each has a share of these.
  int useful_bytes = 0, moved_bytes = 0;
  /// Moved for each element that the warp takes; an element's own where nothing is in vain.
  double bytes_per_element() const {
    return useful_bytes == 0 ? 0 : 1.0 * moved_bytes * element_bytes / useful_bytes;
  }
};

/// A decision about the kernel that costs speed, or that somebody may want to know of.
struct Remark {
  Location at;  // the user's line; none: of the whole kernel
  std::string text;
};

/// A pass of the compiler as it ran, and the program behind it.
struct PassDump {
  /// By the warps of a Pallas thread, "4" or "8", and "4-unstaged" where windows may have no copy
  /// in shared memory: lowering tries one, then others that may be better.
  std::string attempt;
  std::string pass;
  double ms = 0;        ///< what it took
  bool chosen = false;  ///< its attempt is what is emitted
  std::string text;
};

/// What one thread executes, loops counted by their trips; those whose trips a call decides once.
struct InstructionMix {
  double global_loads = 0, global_stores = 0, shared_loads = 0, shared_stores = 0;
  double operations = 0;  // arithmetic on values, tests and choices
  double special = 0;     // with an error bound: exp, sin, rsqrt, ...
  double products = 0;    // matrix products of blocks
  double exchanges = 0;   // shuffles, folds over lanes and warps
  double barriers = 0;
  double multiply_adds = 0;  // of products, by FMA
};

/// For how many clocks one block keeps each part of a multiprocessor busy, counted from its text:
/// a roofline, with loops whose trips a call decides counted once. The largest is what a block
/// takes if it waits for nothing else, and others, or other blocks, hide the rest.
struct Prediction {
  double issue = 0;    ///< four instructions of 32 threads in a clock
  double special = 0;  ///< 16 results in a clock
  double tensor = 0;   ///< multiply-adds of tensor cores
  double shared = 0;   ///< a wavefront of 128 bytes in a clock
  double memory =
      0;  ///< bytes that are moved, by a multiprocessor's share of what the L2 cache gives
  double clocks() const;
  std::string device;  ///< whose figures these are: "H100 SXM"
  /// Of a call: all blocks, a wave on all multiprocessors after the other, and no less than its
  /// arrays take to and from the device's memory, each once. 0 where a call alone knows its sizes.
  double microseconds = 0;
};
inline double Prediction::clocks() const {
  double most = issue;
  for (const double part : {special, tensor, shared, memory}) most = part > most ? part : most;
  return most;
}

/// What a run of a kernel costs, as its options say or Lowered::estimate_cost() counts.
struct CostEstimate {
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t bytes_accessed = 0;  ///< of global memory
  bool operator==(const CostEstimate&) const = default;
};

/// What a kernel is to become, where it is compiled for the architecture `on`. That changes neither
/// the kernel nor its key; where it does not become so there is a warning, or an error
/// (PALLADIUM_EXPECT), with what the compiler remarks of the kernel.
struct Expectation {
  std::string on = {};        ///< "sm_90a"; empty: every architecture
  bool tensor_cores = false;  ///< products by the best of them for their elements: wgmma where the
                              ///< architecture has it, serialised nowhere, else mma.sync
  bool tma = false;           ///< blocks are brought to shared memory by TMA, not by threads
  std::optional<int> spills = {};  ///< bytes of code for stores and loads of registers, at most
  int registers = 0;               ///< of a thread, at most; 0: any number
  /// Of the time, for which tensor cores or memory are at their limit, that is predicted at least
  /// for each loop: Timeline::Loop::fraction.
  double of_limit = 0;
  bool operator==(const Expectation&) const = default;
};

/// One multiprocessor in the steady state of a kernel's loops, as llvm-mca looks at a basic block:
/// what is under way when, and who waits for what. Each statement takes what its instructions,
/// bytes and products take of parts that all share, and waits as the kernel says. Read off the
/// emitted program; how long it takes on a GPU is what counts.
struct Timeline {
  /// From one cycle to another, counted from the first that is shown.
  struct Span {
    double begin = 0, end = 0;
    std::string what = {};
    Location at = {};  // the user's line; none: nobody's
    bool waits = false;
  };
  /// Warpgroups of agents ("consumers 1"), then what works for them: "tensor cores", "TMA".
  struct Lane {
    std::string name = {};
    std::vector<Span> spans = {};  // in order, none over another
  };
  /// For how many cycles of an iteration somebody waits.
  struct Wait {
    std::string agent = {};
    std::string what = {};
    Location at = {};  // of what is waited for
    double cycles = 0;
  };
  struct Use {
    std::string part = {};  // "tensor cores", "L2 cache", ...
    double share = 0;       // of the time for which it is busy
  };
  struct Loop {
    Location
        at;  // the user's line; of a kernel without loops, whose blocks follow one another, its own
    bool is_kernel = false;  // it is the kernel, an iteration a block
    double cycles = 0;       // that an iteration of a block takes ...
    int blocks = 1;          // ... of so many that are at it side by side
    /// Of a block alone, that it takes in front of the first iteration and behind the last, or of a
    /// loop that begins again and again from one to the next; 0 of several blocks, and of a kernel.
    double around = 0;
    std::vector<Lane> lanes = {};  // of two iterations, of the first four blocks
    std::vector<Wait> waits = {};  // longest first
    std::vector<Use> uses = {};    // most first
    std::string bound_by = {};     // the part that is busy all the time, or the longest wait
    double fraction = 0;  // of the time for which tensor cores, or memory, are at their limit
  };
  std::string device = {};   ///< whose figures these are: "H100 SXM"
  std::string unknown = {};  ///< why there are no loops; "" where there are
  /// Of a call, all of whose arrays are in the L2 cache, at the clock that a device at work has; 0
  /// where only a call knows its grid, or how often a loop goes round.
  double microseconds = 0;
  std::vector<Loop> loops = {};
};

struct Report {
  /// What the kernel's options say, all 0 where they say nothing.
  CostEstimate cost_estimate = {};
  std::vector<AccessReport> accesses = {};
  /// Why blocks are not fetched, loops not pipelined, programs wider, ..., in the order in which it
  /// was decided.
  std::vector<Remark> remarks = {};
  InstructionMix mix = {};
  double global_bytes = 0;       // between global memory and a thread
  bool depends_on_call = false;  // a loop's trips are known at a call only
  /// Of the first warp and global memory: bytes that it takes and that are moved for it, and the
  /// elements that it stores. Accesses whose addresses depend on data are not among them.
  double useful_bytes = 0, moved_bytes = 0, stored_elements = 0;
  /// Moved for each element that is stored: of a copy twice the element's bytes, more of what reads
  /// again and again, or in pieces of sectors. 0 where the warp stores nothing.
  double bytes_per_element() const {
    return stored_elements == 0 ? 0 : moved_bytes / stored_elements;
  }
  Prediction prediction = {};
  Timeline timeline = {};

  /// What ptxas made of it; where the kernel is not compiled all 0, and why stands here.
  std::string not_compiled = {};
  Resources resources = {};
  Occupancy occupancy = {};
};

}  // namespace palladium
