// What a lowered program does: loop nests, and statements around them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/device/waist.hpp"
#include "codegen/graph/graph.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/layout/relayout.hpp"
#include "codegen/lowered/dim_map.hpp"
#include "codegen/lowered/storage.hpp"

namespace palladium::lowered {

/// A register storage that a statement reads at coordinates, or in a layout, that it does not have:
/// reads of `first` by the map `second.map` go to the storage `second.storage` instead.
struct Redirect {
  StorageId storage = {};
  DimMap map = {};
};
using Redirects = std::vector<std::pair<StorageId, Redirect>>;

/// storage (registers, or a scalar) = value.
struct Assign {
  StorageId storage = {};
};

/// How what is in global memory comes to shared memory: by way of registers, or by copies that
/// threads do not wait for before a WaitGroup. `zeros`: what lies out of bounds is 0 there.
struct CopyMode {
  bool asynchronous = false, zeros = false;
};

/// storage (shared) = value; zero where the coordinates are beyond `valid`. The value is a load, or
/// moves of one, where it is copied asynchronously.
struct Stage {
  StorageId storage = {};
  CopyMode by = {};
};

/// Memory of the view of `inst`, a Store or Swap, = value where its mask holds. Where a user waits
/// for it himself a load may be copied asynchronously, to shared memory.
struct Store {
  ValueId inst = graph::no_value;
  CopyMode by = {};
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

/// storage (shared), which a copy has filled as `load` says but for its mask, = 0 where that, the
/// value, does not hold.
struct Clear {
  StorageId storage = {};
  ValueId load = graph::no_value;
};

/// What becomes of each element of a loop nest. Members of one name mean the same in all kinds:
/// `storage` is filled, `from` is read as it is, the block of `window` moves. A kind with a
/// `scratch` is a fold (folds.cpp): it says what it costs, takes of shared memory and is called,
/// and how it is expanded stands in a file of codegen/expand.
#define PALLADIUM_SINKS(of)                                                                \
  of(Assign), of(Stage), of(Store), of(Update), of(Reduce), of(Scan), of(Print), of(Fill), \
      of(Flush), of(Spill), of(Clear)
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

/// Along a dimension of a nest, elements from where the array of a block mapping ends along one of
/// its dimensions are nobody's: they may be anything, and loops over repetitions end there.
struct NestEnd {
  int dimension = 0;
  int mapping = -1, along = 0;
  bool operator==(const NestEnd&) const = default;
};

/// What stands behind the first nest that ends there is written for each number of tiles, up to
/// `tiles`, that the array of a block mapping reaches into along one of its dimensions: a thread
/// asks once in all loops how far they go, and in each of them of its last iteration alone.
struct LengthCases {
  int mapping = -1, along = 0;
  std::int64_t tile = 0, tiles = 0;
  bool empty() const { return tiles == 0; }
  bool operator==(const LengthCases&) const = default;
};

/// A loop nest over the elements of `domain`, distributed by `layout`.
struct LoopNest {
  Sink sink = Assign{};
  ValueId value = graph::no_value;  // what is evaluated; none where the sink moves what exists
  Extents domain = {};              // what the layout covers
  Extents valid = {};               // elements that exist; the rest of the domain is padding
  LayoutVariableId variable = {};
  layout::Layout layout = {};
  // Per dimension: so many repetitions stand in the text of a run-time loop; 0: it is in none.
  std::vector<int> rolled = {};
  Redirects redirects = {};
  std::vector<NestEnd> ends = {};
  /// Divisions, operands first, each of which is made for a row in front of its elements. The loops
  /// around these then stand in this order, and so many of the innermost run along the rows.
  std::vector<ValueId> divided = {};
  std::vector<int> loops = {};
  int row_loops = 0;
  /// Registers of a factor, as the nest reads it: where they are one it leaves what it fills as it
  /// is, so that warps all of whose threads have nothing but ones of it do nothing.
  StorageId unless_one = {};
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
    wgmma,
    wgmma_promoted  // each promoted_k of K is added up in f32 by threads, which wait for it
  } unit = Unit::fma;
  int warps_m = 4, warps_n = 1;  // of tensor cores
  int back = 0;                  // b is in the slot of the iteration so many before
};

/// Of 8-bit floats, whose sums tensor cores keep in few bits.
inline constexpr std::int64_t promoted_k = 128;

inline bool is_of_wgmma(Dot::Unit unit) {
  return unit == Dot::Unit::wgmma || unit == Dot::Unit::wgmma_promoted;
}

/// How TMA sees an array: the boxes of one of the kernel's tensor maps.
struct TensorBox {
  int mapping = -1;                    // block mapping
  std::vector<std::int32_t> box = {};  // elements per dimension of the array
  int swizzle = 0;
  bool tf32 = false;  // what it copies is rounded to tf32
  bool operator==(const TensorBox&) const = default;
};

/// Where a copy reads or fills: a storage, the block of a window, or a view, the Ref of which has
/// its root there. Of a storage in a ring that of the `slot`; none: of the iteration around. Of a
/// cluster that of the `block` of this rank; none: of the own one. A view beside a storage: what it
/// shows of the window that is held there.
struct Place {
  StorageId storage = {};
  WindowId window = {};
  ValueId view = graph::no_value;
  ValueId slot = graph::no_value, block = graph::no_value;
};

/// How blocks of a cluster share a copy: of those that differ along these axes (a bit for each)
/// alone each brings a part of it to all, as much of that dimension of the array as the box has;
/// or, of panels and the last dimension, whole ones. No axes: it is each block's own.
struct Share {
  std::int64_t axes = 0;
  int dimension = 0;
};

/// to = from, asynchronously: boxes that TMA copies between an array and shared memory, where
/// blocks of windows lie row-major, and views in panels; or the bytes of one storage to another
/// block of the cluster; to nowhere: what is copied is near when it is read. One thread of the
/// agent issues it, where the predicate holds. The copy is done when `completes` says so, in the
/// block that it fills, of several barriers that of the `slot`; without such when the bulk group
/// is, which a Close ends.
struct Copy {
  Place from = {}, to = {};
  BoxId box = {};
  BarrierId completes = {};
  ValueId slot = graph::no_value;
  ValueId of = graph::no_value;  // the Load or Store that it does; none: of a block, or of bytes
  ValueId multicast = graph::no_value;  // a bit for each block of the cluster that it fills
  Share share = {};                     // that lowering found
  ValueId predicate = graph::no_value;
  /// The number of a graph::Update, by which the array's elements become themselves and what is
  /// copied; -1: they become that.
  int update = -1;
  /// A user waits for it, as he says. Each Pallas thread of the agent issues its own.
  bool by_hand = false;
};

inline bool fills_others(const Copy& c) {
  return c.multicast != graph::no_value || c.share.axes != 0 || c.to.block != graph::no_value;
}

inline bool brings_near(const Copy& c) {
  return !c.to.storage && !c.to.window && c.to.view == graph::no_value;
}

/// At a barrier, of several that of the `slot`, or of a ring's of the iteration around: one thread
/// of the agent says that copies of so many bytes are to complete it; of 0, one of each warpgroup
/// that it is done, in its own block or in the `block` of the cluster of this rank. `back`: with
/// the slot of the iteration so many before; in those that have no such nothing happens.
struct Arrive {
  BarrierId barrier = {};
  ValueId slot = graph::no_value, block = graph::no_value;
  std::int64_t bytes = 0;
  int back = 0;
};

/// For which completion of a barrier a thread waits: of a ring's, the one that the iteration around
/// begins behind; or the next of those that it has not waited for; or that where all waits of the
/// thread for barriers of the array go round it, so that one number says the phase of all.
struct OfIteration {};
struct Tracked {};
struct InTurn {};

/// All threads of the agent wait for the barrier, of several for that of the `slot`, or of a ring's
/// of the iteration around.
struct Wait {
  BarrierId barrier = {};
  ValueId slot = graph::no_value;
  std::variant<OfIteration, Tracked, InTurn> phase = OfIteration{};
  /// A scalar: nobody waits, but all learn there whether they would not have, and have waited then.
  /// One thread tells the others by `scratch`, in shared memory.
  StorageId told = {}, scratch = {};
};

/// What has been begun since the last one is a group.
struct Close {
  device::Completion kind = device::Completion::cp_async_group;
};

/// Waits for groups, but for those that were closed last, as many as `pending`: of bulk copies
/// until they have read what they copy; of wgmma, of which each product is one, until its sum
/// stands in the first of the storages. Others are those of an A in registers, and of products of
/// which nobody knows that they are done.
struct WaitGroup {
  device::Completion kind = device::Completion::cp_async_group;
  int pending = 0;
  std::vector<StorageId> storages = {};
  bool written = false;  // of bulk copies, until what they copy is there
};

/// What was stored to shared memory is there for the asynchronous proxy, behind a barrier for that
/// of all threads.
struct Fence {};

struct Relayout {
  StorageId from = {}, to = {};  // in registers
  StorageId scratch = {};        // storage in shared memory
  layout::Plan plan = {};
};

struct Statement;
using Statements = std::vector<Statement>;

/// Barrier of the Pallas thread, or of all threads of the block or the cluster.
struct Sync {
  enum class Of : std::uint8_t { program, block, cluster, warpgroup } of = Of::program;
};

/// Each thread of the agent has so many registers from here on, more or fewer than before.
struct SetRegisters {
  int count = 0;
  bool more = false;
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

/// `constant`, the number of a loop's iteration `per_iteration` times, and integers that do not
/// change in the loop, each so many times: exact, however large it is.
struct IterationSum {
  std::int64_t constant = 0, per_iteration = 0;
  std::vector<std::pair<ValueId, std::int64_t>> addends = {};
  bool operator==(const IterationSum&) const = default;
};

/// `body` where the mask of `load` leaves elements out. It leaves none out where no sum, of numbers
/// as they are here, is negative: then the bools `holding` hold in all their elements, and
/// `failing` in none.
struct IfMasked {
  ValueId load = graph::no_value;
  std::vector<IterationSum> sums = {};
  std::vector<ValueId> holding = {}, failing = {};
  Statements body;
};

/// Iterations of a loop, one behind the other: those in which no sum is negative. In all of these
/// the bools `holding` hold in all their elements, and `failing` in none.
struct KnownIterations {
  std::vector<IterationSum> sums = {};
  std::vector<ValueId> holding = {}, failing = {};
  bool empty() const { return holding.empty() && failing.empty(); }
};

struct Loop {
  ValueId inst = graph::no_value;
  Statements body;
  RingId ring = {};  // that is unrolled in it
  /// Of a loop that is rotated: what its first iteration does instead of `body`, and what is left
  /// behind the last one. In `shared` storages are what one of them fills for the other.
  Statements prologue, epilogue;
  std::vector<StorageId> shared = {};
  KnownIterations known = {};
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

/// What one thread of the agent does for all.
struct Elected {
  Statements body;
};

struct Switch {
  ValueId inst = graph::no_value;
  std::vector<Statements> bodies = {};  // as the instruction's regions
  std::vector<StorageId> results = {};  // storages that all of them fill
};

/// The slot of the ring is that of the next iteration from here on.
struct Advance {
  RingId ring = {};
};

/// In front of a loop, over this axis or this one: `body` for each of its first `iterations`, with
/// the slots of those.
struct Lead {
  RingId ring = {};
  int iterations = 0;
  int axis = -1;
  ValueId loop = graph::no_value;
  std::vector<StorageId> kept = {};  // as in Ahead
  Statements body;
};

/// `body` as in the iteration of the loop that is so many ahead, with its slot of the ring; nothing
/// where there is no such iteration. Without a ring it is the next one, for which it fills what is
/// `kept`: registers, and scalars, that this iteration has read. Other scalars of the body are its
/// own.
struct Ahead {
  RingId ring = {};
  int iterations = 0;
  int axis = -1;
  ValueId loop = graph::no_value;
  std::vector<StorageId> kept = {};
  Statements body;
};

/// In place of a sequential axis, in front of all of these: the programs of the parallel axes,
/// which a persistent block goes through.
inline constexpr int programs_axis = -2;

/// Over a sequential grid axis.
struct GridLoop {
  int axis = -1;
  Statements body;
  RingId ring = {};               // that is unrolled in it
  Statements prologue, epilogue;  // as of a Loop
  std::vector<StorageId> shared = {};
  KnownIterations known = {};
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

/// A DebugPrint or DebugCheck by the first thread of the Pallas thread, or a ScopeEvent; of an
/// array that is printed, the place where all threads put its elements.
struct HostCall {
  ValueId inst = graph::no_value;
  StorageId scratch = {};  // in shared memory, by which all threads learn of that place
};

/// The user's text that `inst`, an InlineCuda, is, by each thread of the Pallas thread: on the
/// storages of its operands, none of scalars and Refs, and of all of its results.
struct Inline {
  ValueId inst = graph::no_value;
  std::vector<StorageId> operands = {}, results = {};
};

struct Statement {
  std::variant<LoopNest, Dot, Copy, Arrive, Wait, Close, WaitGroup, Fence, Sync, SetRegisters,
               Relayout, Semaphore, HostCall, Inline, Scalar, CopyStorage, When, IfWhole, IfMasked,
               Loop, While, Switch, Scope, Warps, Elected, GridLoop, EnterWindow, Advance, Lead,
               Ahead>
      what = Sync{};
  Location at = {};
  StatementId id = {};  // from number_statements on
};

/// Whether what stands inside of a statement may run several times.
inline bool repeats(const Statement& s) {
  return std::holds_alternative<Loop>(s.what) || std::holds_alternative<While>(s.what) ||
         std::holds_alternative<GridLoop>(s.what);
}

/// The parts of a loop that may be rotated.
struct Rotation {
  const Statements *prologue = nullptr, *body = nullptr, *epilogue = nullptr;
  const std::vector<StorageId>* shared = nullptr;

  bool is_rotated() const { return prologue != nullptr && !prologue->empty(); }
};
/// All null of another statement.
template <class T>
Rotation rotation_of(const T& what) {
  if constexpr (requires { what.prologue; })
    return {&what.prologue, &what.body, &what.epilogue, &what.shared};
  else
    return {};
}
inline Rotation rotation_of(const Statement& s) {
  return std::visit([](const auto& what) { return rotation_of(what); }, s.what);
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

/// Whether it is so of the statement, or of one that stands in it.
template <class Is>
bool any_within(const Statement& s, const Is& is) {
  bool found = is(s);
  for_each_body(s, [&](const Statements& body) {
    for (const Statement& inner : body) found = found || any_within(inner, is);
  });
  return found;
}

/// How often the list itself steps to the next slot of the ring.
int steps(const Statements& list, RingId ring);

}  // namespace palladium::lowered
