// The lowered graph: where every Ref and value of a kernel graph lives, and the loop nests that
// compute them. codegen/cuda prints it and decides nothing.
//
// Values are streamed: an elementwise op, a broadcast, a transpose, a load, ... is *inlined*, that
// is evaluated element by element, at the coordinates at which its users want it, inside the loop
// nest of its sink. A sink is a store, a reduction, an operand of dot or a value that is *whole*:
// kept in a Storage because several sinks need it, because its source is overwritten, or because it
// is a loop carry.
//
// Words:
//   storage        room for a whole value: registers, shared memory or a scalar
//   window         a root Ref: the block of an array that a program sees, or scratch
//   loop nest      the loops over the elements of one sink
//   iteration      of a loop, or of a sequential axis of the grid
//   stage          one iteration's part of shared memory; a ring has a *slot* for each
//   full barrier   knows that a slot holds what its iteration reads
//   empty barrier  knows that all readers of a slot are done with it
//   produce        fill the next slot of a ring; the *producer* is a warpgroup that does nothing
//   else consume        read the next slot of a ring prologue, epilogue  of a pipelined loop: what
//   stands before its first, behind its last iteration relayout       the same value in registers
//   by another layout
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/base/checked.hpp"
#include "codegen/graph/graph.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/layout/relayout.hpp"
#include "codegen/passes/machine.hpp"
#include "codegen/thread/expr.hpp"
#include "palladium/report.hpp"

namespace palladium::passes {

using graph::Extents;
using graph::ValueId;

enum class Place : std::uint8_t {
  inlined,    // recomputed at each use
  scalar,     // one element: a variable that all threads compute alike
  registers,  // an array per thread, distributed by a layout
  shared,     // in shared memory: row-major, or in swizzled panels
};

/// Room for a whole value, a resident window or a scratch Ref.
///
/// Panels are what wgmma reads and TMA writes: columns of rows of 32, 64 or 128 bytes, one panel
/// behind the other; in each row the chunks of 16 bytes stand in an order that changes from row to
/// row, so that neither rows nor columns of chunks collide in the banks.
struct Storage {
  Place place = Place::registers;
  DType dtype = {};
  Extents shape = {};
  ValueId of = graph::no_value;   // for names and messages
  int variable = -1;              // registers: layout variable (of the nest that fills it) ...
  std::vector<int> dropped = {};  // ... whose dimensions that were reduced away are these
  layout::Layout layout = {};     // registers: set by assign_layouts
  std::int64_t offset = 0;        // shared: bytes, in the block's dynamic shared memory
  std::int64_t row_stride = 0;    // shared: elements from row to row of the last dimension
  int swizzle = 0;                // shared: bytes of a row of its panels; 0: it has none
  bool per_warpgroup = true;      // shared: one copy per Pallas thread
  bool per_warp = false;          // ... and of each of its warps
  bool fetched = false;           // shared: filled by TMA, or a barrier of such copies
  bool sent = false;              // shared: read by TMA
  /// Shared, without panels: 16 bytes c of row r stand where c ^ (r / rows_alike % 8 >> (3 -
  /// row_swizzle)) of it would, so that 8 rows are read from all banks. 0 to 3.
  int row_swizzle = 0;
  int rows_alike = 1;           // ldmatrix reads rows that follow one another
  bool packed = false;          // registers: two elements of 16 bits in each of them, as A of wgmma
  bool tf32 = false;            // shared: elements of f32 are rounded to tf32 on their way there
  std::int64_t alignment = 16;  // shared: what its address is a multiple of, at least
  int ring = -1;  // shared: it lies in each slot of this ring, `offset` behind where that begins
};

/// Shared memory for what several iterations of a loop fill and read, a slot for each.
struct Ring {
  int storage = -1;  // all slots, one behind the other
  int slots = 1;
  std::int64_t slot_bytes = 0;
  std::int64_t trips = INT64_MAX;  // of its loop, where that is known
  bool copied = false;             // threads fill a part of it, in groups of copies
  bool fetched = false;            // TMA does, and says so by barriers of each slot
  /// Storage of the empty barriers, by which a slot's readers tell the producer; -1: it has none.
  int empty_barriers = -1;
  /// Its loop, which stands in no other, goes over all slots in each iteration of its text: what
  /// says where a slot stands is constant there.
  bool unrolled = false;
};

/// Barriers in shared memory that know when copies are done, or what they filled has been read:
/// one, or for each slot of a ring one.
struct Barriers {
  int storage = -1, ring = -1;
  int arrivals = 1;
};

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
  int storage = -1;                  // if not direct
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

/// A register storage that a statement reads at coordinates, or in a layout, that it does not have:
/// reads of `first` by the map `second.map` go to the storage `second.storage` instead.
struct Redirect {
  int storage = -1;
  std::vector<int> map = {};
};
using Redirects = std::vector<std::pair<int, Redirect>>;

/// storage (registers, or a scalar) = value.
struct Assign {
  int storage = -1;
};

/// How what is in global memory comes to shared memory: by way of registers, or by copies that
/// threads do not wait for before an Await. `zeros`: what lies out of bounds is 0 there.
struct CopyMode {
  bool asynchronous = false, zeros = false;
};

/// storage (shared) = value; zero where the coordinates are beyond `valid`. The value is a load, or
/// moves of one, where it is copied asynchronously.
struct Stage {
  int storage = -1;
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
  int storage = -1;
};

/// storage = value, folded over the dimensions `reduced` as `inst` says.
struct Reduce {
  ValueId inst = graph::no_value;
  int storage = -1;
  std::vector<int> reduced = {};
  int scratch = -1;  // storage in shared memory, between the warps

  double cost(const struct Lowered& l, const layout::Layout& all) const;
  std::int64_t scratch_elements(const Lowered& l, const layout::Layout& all) const;
  std::string along() const;                          // "[0,1]"
  static constexpr std::int64_t most_registers = 32;  // of the result of a run-time loop
};

/// storage = value, of each element the fold of all up to it along `dimension`.
struct Scan {
  ValueId inst = graph::no_value;
  int storage = -1;
  int dimension = 0;
  bool reverse = false;
  int scratch = -1;

  /// From the low bits of the coordinate to the high ones: runs of `run` registers are continued
  /// over lanes and warps that differ in these bits, then over `count` runs of a thread. The first
  /// level is the runs themselves, `count` long. Lanes that differ in `distinct` still differ then.
  struct Level {
    std::int64_t run = 1, count = 1;
    std::uint32_t lanes = 0, warps = 0, distinct = 0;
  };
  /// None where bits of the coordinate are sums of bits.
  std::vector<Level> levels(const Lowered& l, const layout::Layout& all) const;
  double cost(const Lowered& l, const layout::Layout& all) const;
  std::int64_t scratch_elements(const Lowered& l, const layout::Layout& all) const;
  std::string along() const;  // "[1] reverse"
};

/// The elements of an array that a DebugPrint, whose HostCall has told of it, prints.
struct Print {
  ValueId inst = graph::no_value;
};

/// storage = the window's block in global memory.
struct Fill {
  int window = -1, storage = -1;
  CopyMode by = {};
};

/// The window's block in global memory = storage `from`.
struct Flush {
  int window = -1, from = -1;
};

/// storage (shared) = storage `from` (registers).
struct Spill {
  int from = -1, storage = -1;
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

/// -1 where the sink has none.
int storage_filled(const Sink& sink);
int storage_moved(const Sink& sink);
int window_moved(const Sink& sink);
int scratch_of(const Sink& sink);
inline bool is_fold(const Sink& sink) { return scratch_of(sink) >= 0; }

/// A loop nest over the elements of `domain`, distributed by `layout`.
struct LoopNest {
  Sink sink = Assign{};
  ValueId value = graph::no_value;  // what is evaluated; none where the sink moves what exists
  Extents domain = {};              // what the layout covers
  Extents valid = {};               // elements that exist; the rest of the domain is padding
  int variable = -1;
  layout::Layout layout = {};
  std::vector<bool> rolled = {};  // per dimension: repetitions run in a run-time loop
  Redirects redirects = {};
};

struct Dot {
  ValueId inst = graph::no_value;
  int a = -1, b = -1, result = -1;  // storages: shared, or A in registers; shared; registers
  bool accumulates = false;         // adds to what `result` holds, else to zeros
  ValueId anew = graph::no_value;   // where this holds, to zeros all the same
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
  std::vector<int> storages = {};
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
    int storage = -1, tensor_box = -1, window = -1;
  };
  std::vector<Part> parts = {};
  int barrier = -1, ring = -1;
};
/// All wait for the copies of a Fetch.
struct AwaitFetch {
  int barrier = -1, ring = -1;
};

/// Memory of the view of `store` = storage `from` (shared, in panels), copied by TMA. One thread
/// issues it; an AwaitSends is when it, and those before it, have read what they copy.
struct Send {
  ValueId store = graph::no_value;
  int from = -1, tensor_box = -1;
};
struct AwaitSends {};

struct Relayout {
  int from = -1, to = -1;  // storages in registers
  int scratch = -1;        // storage in shared memory
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
  int storage = -1;
  Redirects redirects = {};
};

/// storage `to` = storage `from`, of the same layout; or a scalar = one in shared memory.
struct CopyStorage {
  int from = -1, to = -1;
};

struct When {
  ValueId condition = graph::no_value;
  Statements body;
};

struct Loop {
  ValueId inst = graph::no_value;
  Statements body;
  int ring = -1;  // that is unrolled in it
  /// Of a loop that is rotated, which begins at a constant: what its first iteration does instead
  /// of `body`, and what is left behind the last one. In `shared` storages are what one of them
  /// fills for the other.
  Statements prologue, epilogue;
  std::vector<int> shared = {};
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
  std::vector<int> windows = {};
};

/// What each warp of the Pallas thread does for itself.
struct Warps {
  ValueId inst = graph::no_value;
  Statements body;
};

struct Switch {
  ValueId inst = graph::no_value;
  std::vector<Statements> bodies = {};  // as the instruction's regions
  std::vector<int> results = {};        // storages that all of them fill
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
  int ring = -1;
  int ahead = 0;
  bool first = false;
  bool closes = true;              // what it has copied, and others before it, is a group
  int axis = -1;                   // of which loop: over this axis, or ...
  ValueId loop = graph::no_value;  // ... this one
  Statements body;
};

/// The producer's: in the next slot of a ring, when it is free, what the statements fetch.
struct Produce {
  int ring = -1;
  Statements body;
};

/// What stands behind it reads the next slot of the ring. A producer learns that this one is free;
/// or of products in flight the one before it, if this iteration is not the first; or nothing.
struct Consume {
  int ring = -1;
  enum class Frees : std::uint8_t { this_one, one_before, none } frees = Frees::this_one;
};

/// A producer learns that the slot before this one of the ring is free, but in the first iteration
/// that the body of a rotated loop has, and behind such a loop whose body had none.
struct Release {
  int ring = -1;
};

/// In place of a sequential axis, in front of all of these: the programs of the parallel axes,
/// which a persistent block goes through.
inline constexpr int programs_axis = -2;

/// Over a sequential grid axis.
struct GridLoop {
  int axis = -1;
  Statements body;
  int ring = -1;  // that is unrolled in it
};

/// From here on the window's block is known.
struct EnterWindow {
  int window = -1;
};

/// A SemaphoreRead, SemaphoreSignal, SemaphoreWait or Delay by the whole Pallas thread.
struct Semaphore {
  ValueId inst = graph::no_value;
  int storage = -1;  // of what is read
  int scratch = -1;  // in shared memory, by which all threads learn of it
};

/// A DebugPrint or DebugCheck by the first thread of the Pallas thread; of an array that is
/// printed, the place where all threads put its elements.
struct HostCall {
  ValueId inst = graph::no_value;
  int scratch = -1;  // in shared memory, by which all threads learn of that place
};

struct Statement {
  std::variant<LoopNest, Dot, AwaitDot, Fetch, AwaitFetch, Send, AwaitSends, Relayout, Sync,
               Semaphore, HostCall, Scalar, CopyStorage, When, Loop, While, Switch, Scope, Warps,
               GridLoop, EnterWindow, Await, Prefetch, Produce, Consume, Release>
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

struct LoweredBody {
  Statements statements;
  Statements producer = {};  // of a thread of one warpgroup more, which fetches for the others
  int warpgroups = 1;
};

struct Lowered {
  graph::Graph graph = {};  // canonical
  Machine machine = {};
  std::vector<LoweredBody> bodies = {};
  std::vector<Window> windows = {};
  std::vector<Storage> storages = {};
  std::vector<TensorBox> tensor_boxes = {};
  std::vector<Barriers> fetch_barriers = {};
  std::vector<Ring> rings = {};
  std::vector<Remark> remarks = {};
  std::vector<int> storage_of = {};  // per instruction: storage, or -1 if inlined (or no value)
  std::vector<int> window_of = {};   // per instruction: window of a root Ref, or -1
  std::vector<int> uses = {};        // per instruction: how often it is an operand
  std::vector<int> around = {};      // per instruction: sequential axes whose loops it stands in
  std::vector<int> parallel_axes = {}, sequential_axes = {};  // of the grid, in order; or
                                                              // programs_axis the first of these
  int grid_rows = 1;  // of the last two parallel axes, that programs go through at once
  int num_variables = 0;
  std::vector<layout::Layout> pinned = {};  // per variable; no domain: free
  std::int64_t shared_bytes = 0;
  int warpgroups = 1;             // Pallas threads of all bodies ...
  int num_warps = 4;              // ... of so many warps each
  int wanted_warps = 4;           // by place_windows and place_values, to keep what they could not
  bool may_stage = true;          // there is shared memory for windows that are read from global
  std::int64_t largest_held = 0;  // registers per thread of one value ...
  std::int64_t most_held = 0;     // ... and of all values at once, by measure_registers
  int wgmma_products = 0;         // of the program, by measure_registers

  bool has_producer() const {
    return std::ranges::any_of(bodies, [](const LoweredBody& b) { return !b.producer.empty(); });
  }
  /// CUDA threads of a Pallas thread.
  int threads() const { return num_warps * graph::warp_threads; }
  int add_storage(Storage s) {
    storages.push_back(std::move(s));
    return static_cast<int>(storages.size()) - 1;
  }
  int add_variable(layout::Layout pin = {}) {
    pinned.push_back(std::move(pin));
    return num_variables++;
  }
  const Window& window_loaded(ValueId v) const {
    return windows[window_of[index(graph.root(graph[v].args[0]))]];
  }
  /// The storage of the window that a Load or Swap reads; -1 if it is in global memory.
  int storage_loaded(ValueId v) const { return window_loaded(v).storage; }
};

/// The passes, in the order in which codegen/cuda/lower.cpp runs them.
void split_scaled_sums(Lowered& l);
void legalize_dot_operands(Lowered& l);
void place_windows(Lowered& l);
void swizzle_grid(Lowered& l);
void hoist_invariants(Lowered& l);
void stage_windows(Lowered& l);
void place_values(Lowered& l);
void build_statements(Lowered& l);
void peel_first_iteration(Lowered& l);
void assign_layouts(Lowered& l);
void coalesce_accumulators(Lowered& l);
void measure_registers(Lowered& l);
void check_registers(Lowered& l);
void pad_staged_rows(Lowered& l);
void choose_copies(Lowered& l);
void fetch_windows(Lowered& l);
void build_pipelines(Lowered& l);
void software_pipeline(Lowered& l);
void place_shared_memory(Lowered& l);

/// Index maps read the index operands where the first body does: in its windows.
void share_index_operands(Lowered& l);

/// How the storages of a relayout, which have their layouts, come from one to the other.
layout::Plan plan_of(const Lowered& l, const Relayout& r);

/// Bytes of shared memory of a block in which each storage has its own place.
Checked unshared_bytes(const Lowered& l);

/// The storage of what a program sends behind all of its loops, where nothing else is sent: it may
/// lie where a ring was. -1: there is none.
int sent_behind_loops(const Lowered& l);

/// Whether windows are staged for which, beside all else, no block has the shared memory.
bool stages_too_much(const Lowered& l);

/// Registers of each thread, of which the kernel begins with `all`: of a producer, and of the
/// warpgroups that it fetches for. 0: nothing is to be changed.
struct RegisterShares {
  int all = 0, producer = 0, consumer = 0;
};
RegisterShares registers_beside_producer(int warpgroups);

/// Why more threads would serve a measured program better; "" if they would not.
std::string reason_to_widen(const Lowered& l);
/// Whether a program of twice the threads is better in that.
bool gains(const Lowered& l, const Lowered& wider);

/// For people: residencies, storages, nests with their layouts.
std::string to_text(const Lowered& l);
/// All of it but the places of statements in the user's files: the graph, then what passes decided.
std::string to_full_text(const Lowered& l);

/// How the coordinates of a value follow from those of the nest that evaluates it: per dimension
/// a dimension of the nest, or one of these.
using DimMap = std::vector<int>;
inline constexpr int zero_dim = -1;    // always 0
inline constexpr int opaque_dim = -2;  // computed from several (a reshape)

DimMap identity_map(int rank);
/// Map of operand `arg` of `v`, which is evaluated by `map`.
DimMap map_of_operand(const graph::Graph& g, ValueId v, std::size_t arg, const DimMap& map);

/// Calls f(value, map, storage) once for every leaf and map of the inlined expression `v`: values
/// with a storage, and loads, whose storage is that of their window (-1 if in global memory). `v`
/// itself is such a value unless `enter`. Of a view these are the leaves of its index arrays.
template <class F>
void for_each_leaf(const Lowered& l, ValueId v, const DimMap& map, bool enter, F&& f);

/// Of a leaf, whether it is a load that reads the copy in shared memory of a staged window.
bool reads_staged(const Lowered& l, ValueId leaf);

/// The memory operation that the nest does: of a Store or an Update; no_value of any other.
ValueId accessed_by(const Sink& sink);

/// Whether the nest computes the value that the storage holds (rather than read it from there).
bool enters(const Lowered& l, const LoopNest& p, int storage);

/// The nest of an operation that folds elements, whose result has a storage.
LoopNest fold_nest(Lowered& l, ValueId v);
/// How it folds them, and what in: f32 for sums and products of 16-bit floats.
thread::Fold fold_of(graph::Op op);
/// Whether an element that is in the fold already makes no difference.
constexpr bool is_idempotent(thread::Fold f) {
  return f == thread::Fold::max || f == thread::Fold::min;
}
DType accumulator_dtype(const graph::Graph& g, ValueId fold);

/// What an instruction per register costs: a wider program issues it in more warps.
inline double issued(const layout::Layout& l) {
  return l.warpgroups() * static_cast<double>(l.registers());
}

inline std::int64_t round_up(std::int64_t n, std::int64_t to) { return cdiv(n, to) * to; }

/// What a storage takes of shared memory, once or per warpgroup: with the gaps between its rows, a
/// multiple of what its address is a multiple of.
Checked shared_bytes(const Storage& storage);
/// What the address of a storage in shared memory is a multiple of.
std::int64_t shared_alignment(const Storage& storage);
/// The widest rows of panels into which rows of so many bytes can be cut; 0 if there are none.
int swizzle_of(std::int64_t row_bytes);

/// The user's name of a value, or "".
std::string name_of(const graph::Graph& g, ValueId v);

/// What the user knows a value as, for messages: "'acc'", "args[0]", "carry 1 of the loop", "the
/// result of dot".
std::string description_of(const graph::Graph& g, ValueId v);

/// Registers that one value may take of a thread.
inline constexpr std::int64_t max_whole_registers = 192;
/// Registers of an element.
inline std::int64_t words(DType t) { return t.bytes() == 8 ? 2 : 1; }
/// Registers that a value takes in each of so many threads, rounded up.
std::int64_t registers_estimate(const graph::Type& type, int threads);

/// Whether a value fits so many registers of each of the program's threads; where a wider program
/// would hold it, that is noted.
bool fits_registers(Lowered& l, const graph::Type& type, std::int64_t registers);

template <class F>
void for_each_leaf(const Lowered& l, ValueId v, const DimMap& map, bool enter, F&& f) {
  // Expressions are deep, and share parts.
  std::vector<std::pair<ValueId, DimMap>> stack{{v, map}};
  std::set<std::pair<ValueId, DimMap>> seen;
  for (bool first = true; !stack.empty(); first = false) {
    const auto [next, at] = std::move(stack.back());
    stack.pop_back();
    const graph::Inst& inst = l.graph[next];
    if (l.uses[graph::index(next)] > 1 && !seen.insert({next, at}).second) continue;
    if (const int storage = l.storage_of[graph::index(next)]; storage >= 0 && !(first && enter)) {
      f(next, at, storage);
      continue;
    }
    const bool load = inst.op == graph::Op::Load || inst.op == graph::Op::Swap;
    if (load) f(next, at, l.storage_loaded(next));
    for (std::size_t i = inst.args.size(); i-- > 0;) {
      const graph::Type& operand = l.graph[inst.args[i]].type;
      // Of views, what their index arrays are made of.
      const bool read = operand.is_ref()     ? l.graph.chooses(inst.args[i])
                        : inst.type.is_ref() ? !operand.is_scalar()
                                             : operand.is_value();
      if (read) stack.push_back({inst.args[i], map_of_operand(l.graph, next, i, at)});
    }
  }
}

}  // namespace palladium::passes
