// What a lowered program does: loop nests, and statements around them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/layout/relayout.hpp"
#include "codegen/lowered/storage.hpp"

namespace palladium::lowered {

/// A register storage that a statement reads at coordinates, or in a layout, that it does not have:
/// reads of `first` by the map `second.map` go to the storage `second.storage` instead.
struct Redirect {
  StorageId storage = {};
  std::vector<int> map = {};
};
using Redirects = std::vector<std::pair<StorageId, Redirect>>;

/// storage (registers, or a scalar) = value.
struct Assign {
  StorageId storage = {};
};

/// How what is in global memory comes to shared memory: by way of registers, or by copies that
/// threads do not wait for before an Await. `zeros`: what lies out of bounds is 0 there.
struct CopyMode {
  bool asynchronous = false, zeros = false;
};

/// storage (shared) = value; zero where the coordinates are beyond `valid`. The value is a load, or
/// moves of one, where it is copied asynchronously.
struct Stage {
  StorageId storage = {};
  CopyMode by = {};
};

/// Memory of the view of `inst`, a Store or Swap, = value where its mask holds.
struct Store {
  ValueId inst = graph::no_value;
};

/// Memory of the view of `inst`, an Atomic, updated by value where its mask holds; storage (shared,
/// or none) = what it was.
struct Update {
  ValueId inst = graph::no_value;
  StorageId storage = {};
};

/// storage = value, folded over the dimensions `reduced` as `inst` says.
struct Reduce {
  ValueId inst = graph::no_value;
  StorageId storage = {};
  std::vector<int> reduced = {};
  StorageId scratch = {};  // storage in shared memory, between the warps

  double cost(const struct Program& l, const layout::Layout& all) const;
  std::int64_t scratch_elements(const Program& l, const layout::Layout& all) const;
  std::string along() const;                          // "[0,1]"
  static constexpr std::int64_t most_registers = 32;  // of the result of a run-time loop
};

/// storage = value, of each element the fold of all up to it along `dimension`.
struct Scan {
  ValueId inst = graph::no_value;
  StorageId storage = {};
  int dimension = 0;
  bool reverse = false;
  StorageId scratch = {};

  /// From the low bits of the coordinate to the high ones: runs of `run` registers are continued
  /// over lanes and warps that differ in these bits, then over `count` runs of a thread. The first
  /// level is the runs themselves, `count` long. Lanes that differ in `distinct` still differ then.
  struct Level {
    std::int64_t run = 1, count = 1;
    std::uint32_t lanes = 0, warps = 0, distinct = 0;
  };
  /// None where bits of the coordinate are sums of bits.
  std::vector<Level> levels(const Program& l, const layout::Layout& all) const;
  double cost(const Program& l, const layout::Layout& all) const;
  std::int64_t scratch_elements(const Program& l, const layout::Layout& all) const;
  std::string along() const;  // "[1] reverse"
};

/// The elements of an array that a DebugPrint, whose HostCall has told of it, prints.
struct Print {
  ValueId inst = graph::no_value;
};

/// storage = the window's block in global memory.
struct Fill {
  WindowId window = {};
  StorageId storage = {};
  CopyMode by = {};
};

/// The window's block in global memory = storage `from`.
struct Flush {
  WindowId window = {};
  StorageId from = {};
};

/// storage (shared) = storage `from` (registers).
struct Spill {
  StorageId from = {}, storage = {};
};

/// What becomes of each element of a loop nest. Members of one name mean the same in all kinds:
/// `storage` is filled, `from` is read as it is, the block of `window` moves. A kind with a
/// `scratch` is a fold (folds.cpp): it says what it costs, takes of shared memory and is called,
/// and how it is expanded stands in a file of codegen/expand.
#define PALLADIUM_SINKS(of)                                                                \
  of(Assign), of(Stage), of(Store), of(Update), of(Reduce), of(Scan), of(Print), of(Fill), \
      of(Flush), of(Spill)
#define PALLADIUM_SINK(Kind) Kind
using Sink = std::variant<PALLADIUM_SINKS(PALLADIUM_SINK)>;
#undef PALLADIUM_SINK

/// None where the sink has none.
StorageId storage_filled(const Sink& sink);
StorageId storage_moved(const Sink& sink);
WindowId window_moved(const Sink& sink);
StorageId scratch_of(const Sink& sink);
inline bool is_fold(const Sink& sink) { return bool(scratch_of(sink)); }

/// The memory operation that the nest does: of a Store or an Update; no_value of any other.
ValueId accessed_by(const Sink& sink);

/// Of the loops around the vectors of a nest the one over the groups of a register tile; others go
/// over repetitions of the tile, along a dimension.
inline constexpr int over_groups = -1;

/// Neighbours that a thread reads of a row, `low` to `high` from where all its reads begin, by
/// accesses of `width`.
struct RowSpan {
  std::int64_t low = 0, high = 0;
  int width = 1;
  bool operator==(const RowSpan&) const = default;
};

/// A row of a staged window that several elements of a thread are read of, by accesses around
/// them. A nest has them in the order in which it evaluates what reads them first.
struct SharedRow {
  std::vector<RowSpan> spans = {};
};

/// Of a sum of integers the addends, by number, that stand in the same columns of several rows: row
/// by row. The rows are added up, and their columns then.
struct SharedColumns {
  ValueId sum = graph::no_value;
  std::vector<std::vector<int>> rows = {};
  bool operator==(const SharedColumns&) const = default;
};

/// A loop nest over the elements of `domain`, distributed by `layout`.
struct LoopNest {
  Sink sink = Assign{};
  ValueId value = graph::no_value;  // what is evaluated; none where the sink moves what exists
  Extents domain = {};              // what the layout covers
  Extents valid = {};               // elements that exist; the rest of the domain is padding
  LayoutVariableId variable = {};
  layout::Layout layout = {};
  std::vector<bool> rolled = {};  // per dimension: repetitions run in a run-time loop
  Redirects redirects = {};
  /// Divisions, operands first, each of which is made for a row in front of its elements. The loops
  /// around these then stand in this order, and so many of the innermost run along the rows.
  std::vector<ValueId> divided = {};
  std::vector<int> loops = {};
  int row_loops = 0;
  /// All blocks that it accesses are wholly inside of their arrays; or what holds only where these
  /// are is computed in two ways, and stored in one.
  bool whole = false;
  std::vector<WindowId> forked = {};
  /// Vectors beyond the end of their thread's row are read again from its begin, or are folded as
  /// what has been.
  bool repeats_first = false;
  std::vector<SharedRow> rows = {};
  std::vector<SharedColumns> columns = {};
};

struct Dot {
  ValueId inst = graph::no_value;
  StorageId a = {}, b = {}, result = {};  // storages: shared, or A in registers; shared; registers
  bool accumulates = false;               // adds to what `result` holds, else to zeros
  ValueId anew = graph::no_value;         // where this holds, to zeros all the same
  enum class Unit : std::uint8_t {
    fma,
    mma_16816,
    mma_1688,
    mma_16832,  // elements of 8 bits
    mma_tf32,
    wgmma
  } unit = Unit::fma;
  int warps_m = 4, warps_n = 1;  // of tensor cores
  /// So many products, this one last, may still run behind the statement, which awaits those before
  /// them; or it awaits none.
  int in_flight = 0;
  static constexpr int all_in_flight = -1;
};

/// Waits for the product that is in flight to the first of the storages; others are those of an A
/// in registers, and of products of which nobody knows that they are done. Products that were begun
/// last, as many as `in_flight`, may go on.
struct AwaitDot {
  std::vector<StorageId> storages = {};
  int in_flight = 0;
};

/// How TMA sees an array: the boxes of one of the kernel's tensor maps.
struct TensorBox {
  int mapping = -1;                    // block mapping
  std::vector<std::int32_t> box = {};  // elements per dimension of the array
  int swizzle = 0;
  bool tf32 = false;  // what it copies is rounded to tf32
  bool operator==(const TensorBox&) const = default;
};

/// storage (shared, in panels) = what `load` reads, copied by TMA; `barrier`, a storage, knows when
/// that is done: of a ring it has one for each slot. One thread issues it.
/// Or the block of `window`, row-major.
struct Fetch {
  struct Part {
    ValueId load = graph::no_value;
    StorageId storage = {};
    BoxId tensor_box = {};
    WindowId window = {};
  };
  std::vector<Part> parts = {};
  StorageId barrier = {};
  RingId ring = {};
};
/// All wait for the copies of a Fetch.
struct AwaitFetch {
  StorageId barrier = {};
  RingId ring = {};
};

/// Memory of the view of `store` = storage `from` (shared, in panels), copied by TMA. One thread
/// issues it; an AwaitSends is when it, and those before it, have read what they copy.
struct Send {
  ValueId store = graph::no_value;
  StorageId from = {};
  BoxId tensor_box = {};
};
struct AwaitSends {};

struct Relayout {
  StorageId from = {}, to = {};  // in registers
  StorageId scratch = {};        // storage in shared memory
  layout::Plan plan = {};
};

struct Statement;
using Statements = std::vector<Statement>;

/// Barrier of the Pallas thread.
struct Sync {
  bool for_async = false;  // what was stored to shared memory is read by the asynchronous proxy
};

/// storage (scalar) = value, outside of any loop nest.
struct Scalar {
  ValueId value = graph::no_value;
  StorageId storage = {};
  Redirects redirects = {};
};

/// storage `to` = storage `from`, of the same layout; or a scalar = one in shared memory.
struct CopyStorage {
  StorageId from = {}, to = {};
};

struct When {
  ValueId condition = graph::no_value;
  Statements body;
};

struct Loop {
  ValueId inst = graph::no_value;
  Statements body;
  RingId ring = {};  // that is unrolled in it
  /// Of a loop that is rotated, which begins at a constant: what its first iteration does instead
  /// of `body`, and what is left behind the last one. In `shared` storages are what one of them
  /// fills for the other.
  Statements prologue, epilogue;
  std::vector<StorageId> shared = {};
};

/// The first of `bodies` where these blocks are wholly inside of their arrays, else the second one.
struct IfWhole {
  std::vector<WindowId> windows = {};
  std::vector<Statements> bodies = {};
};

/// `body` for as long as the value that `test` ends with holds.
struct While {
  ValueId inst = graph::no_value;
  Statements test, body;
};

/// Scratch of its own for what stands in it.
struct Scope {
  ValueId inst = graph::no_value;
  Statements body;
  std::vector<WindowId> windows = {};
};

/// What each warp of the Pallas thread does for itself.
struct Warps {
  ValueId inst = graph::no_value;
  Statements body;
};

struct Switch {
  ValueId inst = graph::no_value;
  std::vector<Statements> bodies = {};  // as the instruction's regions
  std::vector<StorageId> results = {};  // storages that all of them fill
};

/// Waits for the thread's own asynchronous copies, but for the `pending` groups that it closed
/// last.
struct Await {
  int pending = 0;
  bool closes = false;  // what it has started since is a group, too
};

/// For an iteration of a loop that is to come: what its statements fill of a ring, in the slot of
/// that iteration, is a group of copies, or known to barriers. `first`: before the loop, for each
/// of its first `ahead` iterations; else in the loop, for the iteration that is so many ahead.
/// Nothing for iterations that the loop does not have.
struct Prefetch {
  RingId ring = {};
  int ahead = 0;
  bool first = false;
  bool closes = true;              // what it has copied, and others before it, is a group
  int axis = -1;                   // of which loop: over this axis, or ...
  ValueId loop = graph::no_value;  // ... this one
  Statements body;
};

/// The producer's: in the next slot of a ring, when it is free, what the statements fetch.
struct Produce {
  RingId ring = {};
  Statements body;
};

/// What stands behind it reads the next slot of the ring. A producer learns that this one is free;
/// or of products in flight the one before it, if this iteration is not the first; or nothing.
struct Consume {
  RingId ring = {};
  enum class Frees : std::uint8_t { this_one, one_before, none } frees = Frees::this_one;
};

/// A producer learns that the slot before this one of the ring is free, but in the first iteration
/// that the body of a rotated loop has, and behind such a loop whose body had none.
struct Release {
  RingId ring = {};
};

/// In place of a sequential axis, in front of all of these: the programs of the parallel axes,
/// which a persistent block goes through.
inline constexpr int programs_axis = -2;

/// Over a sequential grid axis.
struct GridLoop {
  int axis = -1;
  Statements body;
  RingId ring = {};  // that is unrolled in it
};

/// From here on the window's block is known.
struct EnterWindow {
  WindowId window = {};
};

/// A SemaphoreRead, SemaphoreSignal, SemaphoreWait or Delay by the whole Pallas thread.
struct Semaphore {
  ValueId inst = graph::no_value;
  StorageId storage = {};  // of what is read
  StorageId scratch = {};  // in shared memory, by which all threads learn of it
};

/// A DebugPrint or DebugCheck by the first thread of the Pallas thread; of an array that is
/// printed, the place where all threads put its elements.
struct HostCall {
  ValueId inst = graph::no_value;
  StorageId scratch = {};  // in shared memory, by which all threads learn of that place
};

struct Statement {
  std::variant<LoopNest, Dot, AwaitDot, Fetch, AwaitFetch, Send, AwaitSends, Relayout, Sync,
               Semaphore, HostCall, Scalar, CopyStorage, When, IfWhole, Loop, While, Switch, Scope,
               Warps, GridLoop, EnterWindow, Await, Prefetch, Produce, Consume, Release>
      what = Sync{};
  Location at = {};
};

/// Whether what stands inside of a statement may run several times.
inline bool repeats(const Statement& s) {
  return std::holds_alternative<Loop>(s.what) || std::holds_alternative<While>(s.what) ||
         std::holds_alternative<GridLoop>(s.what);
}

/// Calls f for the Statements that stand inside of a statement, in order; nothing in most.
template <class S, class F>
requires std::same_as<std::remove_const_t<S>, Statement>
void for_each_body(S& s, F&& f) {
  std::visit(
      [&](auto& what) {
        if constexpr (requires { what.test; }) f(what.test);
        if constexpr (requires { what.prologue; }) f(what.prologue);
        if constexpr (requires { what.body; }) f(what.body);
        if constexpr (requires { what.bodies; })
          for (auto& body : what.bodies) f(body);
        if constexpr (requires { what.epilogue; }) f(what.epilogue);
      },
      s.what);
}

}  // namespace palladium::lowered
