// Plans that move a value from one layout to another: derived from the two maps, never written by
// hand per pair.
//
// Plans are plain data that a printer spells. Registers are numbers of `from` (sources) and of
// `to` (results); -1 stands for padding: as a source any bits will do, as a result nothing is kept.
// Registers of `to` that no part of a plan names hold padding only and stay undefined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/layout/layout.hpp"

namespace palladium::layout {

enum class Move {
  Noop,     // every register keeps its number
  Rename,   // result register k is source register sources[k]
  Shuffle,  // within warps, by Shuffles
  Shared,   // through shared memory, by SharedMoves: linear offsets, conflict-free
  Memory    // through shared memory, row-major, by MemoryMove: any two layouts
};

/// y[k] = (t >> lane_bit & 1) ? x[k ^ flip] : x[k], for all words k.
struct Select {
  int lane_bit = 0;
  int flip = 0;
};

/// word `to` of the result = word `from` of lane `source_lane(lane) ^ lane_flip`.
struct Round {
  int to = 0, from = 0;
  int lane_flip = 0;
};

/// One pass of the shuffle program over one repetition of the common tile. Elements e of word w
/// stand at [w * pack + e].
struct ShufflePass {
  std::vector<int> in;  // source register of each element of the words before
  std::vector<Round> rounds;
  std::vector<int> out;  // result register of each element of the words after
};

/// pack words, `before`, rounds, `after`, unpack.
struct Shuffles {
  int pack = 1;  // elements in a word: with 1, a word is an element
  int words_in = 1, words_out = 1;
  std::vector<Select> before, after;
  bool by_xor = true;  // source_lane is the identity: shfl_xor, nothing where lane_flip == 0
  Bits source_lane;    // else: images of the 5 lane bits, for shfl_idx
  std::vector<ShufflePass> passes;
  int shuffles = 0, selects = 0;  // instructions, on words
};

enum class SharedMode {
  Plain,            // vector load or store
  Matrix,           // ldmatrix / stmatrix
  MatrixTransposed  // the same with .trans
};

/// One vector access. Byte address = scratch + ((thread_offset(t) ^ flip) + offset).
struct SharedAccess {
  std::uint32_t flip = 0;
  std::uint32_t offset = 0;
  /// In memory order: `vector` of them. Matrix modes: pairs, each a 32-bit word; 8, 4 or 2
  /// registers for .x4, .x2, .x1.
  std::vector<int> registers;
  /// Loads only: some thread's elements may be padding that no one wrote.
  bool padded = false;
};

struct SharedSide {
  SharedMode mode = SharedMode::Plain;
  int vector = 1;      // elements per access
  Bits thread_offset;  // byte-offset images of the thread bits
};

/// The threads t with (t & mask) == value; all, if mask is 0.
struct ThreadTest {
  std::uint32_t mask = 0, value = 0;
};

/// Stores, a barrier, loads; another barrier before the next step. In the matrix modes a test
/// distinguishes whole warps only.
struct SharedStep {
  ThreadTest storing, loading;
  std::vector<SharedAccess> stores, loads;
};

struct SharedMoves {
  SharedSide store, load;
  std::vector<SharedStep> steps;
};

/// Address of an element of either side: offset + sum of index[d] * stride[d], in elements. Each
/// window [w * window, (w + 1) * window) of addresses is one step: its elements are stored, those
/// wanted are loaded; with one window no test of the address is needed. Accesses are predicated by
/// the domain where `pads`.
struct MemorySide {
  Extents strides;
  std::int64_t offset = 0;
  int vector = 1;
  std::uint32_t replicated = 0;
};

struct MemoryMove {
  MemorySide store, load;
  std::int64_t elements = 0;  // addresses used: [0, elements)
  std::int64_t window = 0;
  std::int64_t windows = 1;
};

struct Plan {
  Move kind = Move::Noop;
  Layout from = {}, to = {};
  int element_bytes = 4;
  double cost = 0;  // SM clocks, modelled
  /// Shared: no data crosses a warp, a warp barrier suffices.
  bool warp_barrier = false;
  std::int64_t scratch_bytes = 0;
  std::vector<int> sources = {};  // Noop, Rename
  Shuffles shuffle = {};
  SharedMoves shared = {};
  MemoryMove memory = {};
};

struct PlanOptions {
  std::int64_t scratch_limit = 16 * 1024;  // bytes of shared memory that a plan may use
  bool matrix_moves = true;                // ldmatrix (sm_75 on)
  bool matrix_stores = true;               // stmatrix (sm_90 on)
  bool shuffles = true;
};

/// From and to must have as many warps, and equal domains or equal numbers of elements (a row-major
/// reshape).
/// Element sizes 1, 2, 4 and 8.
Plan plan_relayout(const Layout& from, const Layout& to, int element_bytes,
                   const PlanOptions& options = {});

/// What plan_relayout's plan would cost; builds none.
double relayout_cost(const Layout& from, const Layout& to, int element_bytes,
                     const PlanOptions& options = {});

/// Through row-major shared memory with a view in between: `store` and `load` say where an element
/// of either layout stands. Slices (load.offset), concatenations (store.offset, several stores),
/// broadcasts (stride 0), transposes and reshapes that leave the algebra go this way. `vector`s
/// are filled in.
Plan plan_through_memory(const Layout& from, const Layout& to, int element_bytes, MemorySide store,
                         MemorySide load, std::int64_t elements, const PlanOptions& options = {});

/// Strides, in elements, of a dense row-major array.
Extents row_major_strides(const Extents& shape);

/// "st.v4 / ld.v4, 2 steps of 16384 B": one comment line for emitted text.
std::string describe(const Plan& plan);

}  // namespace palladium::layout
