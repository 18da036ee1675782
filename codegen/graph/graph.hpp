// The kernel graph: what a body recorded, and all that decides a kernel's meaning.
//
// A Graph is an arena of instructions. An instruction's id is the id of its value; ids are valid
// only in their own Graph. Instructions stand in regions, in order: the order of effects is their
// order in Region::insts. A region may use its own instructions recorded before, its parameters,
// and those of the regions that enclose it. Every instruction of a region is listed there exactly
// once; Param instructions are listed in Region::params instead.
//
// Values have static shapes. A Ref-typed instruction is a Param or a view (At, RefReshape, ...)
// whose chain of args[0] ends in one: the root Ref, a parameter of a body or of a run_scoped's
// region. Roots that may share memory have one alias class (Graph::alias_class).
//
// A kernel has a list of bodies, each run by its own warpgroups of one block: body b by
// `warpgroups` Pallas threads, numbered through along the thread axis. A Pallas thread is one
// warpgroup; one that has the block to itself may be of 8 or 16 warps. Parameters of a body's
// region: *arguments (in call order: block Ref per input, value per scalar), *outputs, *scratch.
//
// Locations and names are side arrays: outside of equality, canonical bytes and keys.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/base/dim.hpp"
#include "palladium/grid_mapping.hpp"
#include "palladium/report.hpp"
#include "palladium/types.hpp"

namespace palladium::graph {

enum class Op : std::uint8_t {
#define PL_OP(Name, ...) Name,
#include "codegen/graph/ops.def"
#undef PL_OP
};
inline constexpr int num_ops = 0
#define PL_OP(...) +1
#include "codegen/graph/ops.def"
#undef PL_OP
    ;

/// What an operation does with what the Ref args[operand] views.
struct Effect {
  enum class Access : std::uint8_t { read, write, update };  // update: both
  std::size_t operand = 0;
  Access access = Access::read;
  constexpr bool reads() const { return access != Access::write; }
  constexpr bool writes() const { return access != Access::read; }
};

/// What an operation does besides giving a value.
struct Effects {
  static constexpr std::size_t most = 8;
  std::array<Effect, most> list = {};
  std::size_t count = 0;
  bool syncs = false;     // waits or lets others go on: no access of any Ref moves across it
  bool is_async = false;  // its accesses go on behind it ...
  std::size_t completes =
      0;                 // ... until this operand, a barrier, says so; 0: until they are awaited
  bool tells = false;    // tells the host something, in order with all that does
  bool regions = false;  // what its regions do
  bool as_said = false;  // what the instruction says of each of its Refs; it stays where it is

  constexpr std::span<const Effect> on_operands() const { return {list.data(), count}; }
  /// Those that loads and stores could tell. The count of a semaphore is no memory to them: whoever
  /// touches one synchronises.
  constexpr std::span<const Effect> on_memory() const { return {list.data(), syncs ? 0 : count}; }
  constexpr bool none() const { return count == 0 && !syncs && !tells && !regions && !as_said; }
};

enum class OpClass : std::uint8_t {
  leaf,         // no operands
  elementwise,  // of operands of its own shape, element by element
  shape,        // the operand's elements elsewhere
  fold,         // combines elements along dimensions: the sink of a loop nest of its own
  contraction,
  view,     // of a Ref: nothing is read
  memory,   // reads or writes through a view
  host,     // tells the host something
  control,  // regions, and what they give
};
/// What operands become that are all literals: their own kind, or floats.
enum class Literals : std::uint8_t { any, floating };

/// An elementwise op in CUDA C++: "$0 + $1" for floats, "pl::add($0, $1)" for the types where C++'s
/// operator would not do.
struct Spelling {
  const char* general = nullptr;
  const char* floats = nullptr;  // f32, f64
  const char* bools = nullptr;
  const char* approx = nullptr;  // f32 under approx_math
};

struct OpInfo {
  const char* name;
  OpClass op_class;
  Literals literals;
  int min_args, max_args;  // max_args -1: any number
  Effects effects;
  int ulp;
  Spelling spelling;
  const char* meaning;
};
const OpInfo& info(Op op);
inline bool is_elementwise(Op op) { return info(op).op_class == OpClass::elementwise; }
inline bool is_fold(Op op) { return info(op).op_class == OpClass::fold; }
inline const Effects& effects(Op op) { return info(op).effects; }
/// Whether it gives a value and does nothing else, whenever and however often it runs.
inline bool is_pure(Op op) { return effects(op).none(); }
inline bool reads_memory(Op op) {
  return effects(op).as_said || std::ranges::any_of(effects(op).on_memory(), &Effect::reads);
}
/// Whether memory may hold something else afterwards.
inline bool writes_memory(Op op) {
  return effects(op).as_said || std::ranges::any_of(effects(op).on_memory(), &Effect::writes);
}
/// Whether it, or what its regions do, is wanted though nobody uses its value.
inline bool acts(Op op) {
  const Effects& e = effects(op);
  return writes_memory(op) || e.syncs || e.tells || e.regions;
}
/// False if no op has that name.
bool op_named(std::string_view name, Op& op);

enum class ValueId : std::uint32_t {};
enum class RegionId : std::uint32_t {};
inline constexpr ValueId no_value{~0u};
constexpr std::uint32_t index(ValueId v) { return static_cast<std::uint32_t>(v); }
constexpr std::uint32_t index(RegionId r) { return static_cast<std::uint32_t>(r); }

using Extents = std::vector<std::int64_t>;
std::int64_t element_count(const Extents& shape);

struct Type {
  enum class Kind : std::uint8_t { none, value, ref };
  Kind kind = Kind::none;
  DType dtype = {};
  Extents shape = {};
  Space space = Space::automatic;  // of a ref
  int arrivals = 0;                // of a Ref of barriers: so many complete each of them
  int swizzle = 0;                 // of a parameter in shared memory: bytes, as the user gave them

  static Type none() { return {}; }
  static Type value(DType d, Extents s = {}) { return {Kind::value, d, std::move(s), {}}; }
  static Type ref(DType d, Extents s, Space space, int arrivals = 0, int swizzle = 0) {
    return {Kind::ref, d, std::move(s), space, arrivals, swizzle};
  }
  bool is_value() const { return kind == Kind::value; }
  bool is_ref() const { return kind == Kind::ref; }
  bool is_scalar() const { return is_value() && shape.empty(); }
  bool operator==(const Type&) const = default;
};
/// "f32[4,1000]", "ref smem f32[128]", "".
std::string to_string(const Type& type);

enum class AxisKind : std::int64_t { grid = 0, cluster = 1, thread = 2, warp = 3 };
/// Of a Pallas thread, that a WarpMesh has.
inline constexpr int num_warps = 4;
enum class Precision : std::int64_t { ieee = 0, tf32 = 1 };

struct Attr {
  std::vector<std::int64_t> ints = {};  // read by the views below, or whole
  std::uint64_t bits = 0;               // Constant: the number in its dtype, zero-extended
  std::string text = {};                // DebugPrint, DebugCheck: what is said
  bool operator==(const Attr&) const = default;
};

struct Inst {
  Op op = Op::Param;
  Type type = {};
  Attr attr = {};
  std::vector<ValueId> args = {};
  std::vector<RegionId> regions = {};
  bool operator==(const Inst&) const = default;
};

/// Those of its operation, and what the instruction itself says of its operands.
Effects effects(const Inst& inst);

struct Region {
  std::vector<ValueId> params = {};
  std::vector<ValueId> insts = {};
  std::vector<ValueId> yields = {};
  bool operator==(const Region&) const = default;
};

struct Body {
  RegionId region{};
  int warpgroups = 1;  // Pallas threads
  int num_warps = 0;   // that compute for one of them: 4, 8 or 16; 0: lowering chooses
  /// Iterations of a loop whose blocks are in shared memory; 0: lowering chooses.
  int num_stages = 0;
  std::optional<bool> warp_specialize =
      {};  // warps of their own fetch them; none: lowering chooses
  bool operator==(const Body&) const = default;
};

/// An argument of the call, in call order; outputs are not among them.
struct Argument {
  enum class Kind : std::uint8_t { input, scalar };
  Kind kind = Kind::input;
  int index = 0;  // input: number of its block mapping; scalar: number among the scalars
  DType dtype = {};
  int symbol = -1;  // scalar: the symbol that stands for its value in the grid; -1: none
  bool operator==(const Argument&) const = default;
};

/// Order in which programs that differ along a grid axis run.
enum class Semantics : std::uint8_t { parallel, sequential };

struct Alias {
  int input = 0, output = 0;  // numbers among the array inputs and among the outputs
  bool operator==(const Alias&) const = default;
};

struct Graph {
  std::string name;
  std::vector<Inst> insts;
  std::vector<Region> regions;
  std::vector<Body> bodies;
  GridMapping mapping;
  std::vector<Semantics> semantics;  // one per grid axis
  std::vector<int> cluster;          // blocks per cluster, one entry per cluster axis
  std::vector<std::string> cluster_names;
  std::string thread_name;  // name of the thread axis, or empty
  std::vector<Argument> arguments;
  std::vector<Alias> aliases;
  int num_symbols = 0;  // symbolic dims are dim_symbol(0) ... in array types and grid
  DimFacts facts = {};  // of the symbols: none, or powers of two, one for each
  // Of arrays of which it is known at a call only how far they reach: no element of one, or of a
  // block of it, is 2^31 elements or more from the first (graph::Reach).
  bool short_offsets = false;
  // Of these arrays, where that is not so: extents are below 2^31, strides below 2^40 bytes, as TMA
  // counts (graph::BoxExtents).
  bool box_extents = false;
  bool fma = true;  // canonicalize contracts a one-use product under an add
  bool approx_math = false;
  bool fast_accumulation = false;  // sums of 8-bit floats are left to tensor cores
  bool allow_revisit = false;      // several programs of a parallel axis may write one element
  bool persistent = false;         // a block goes through several programs
  int split_k = 0;    // so many blocks of a cluster share the iterations of a sum, where they can
  int grid_rows = 0;  // GridOrder::rows, of the last two parallel axes; 0: lowering chooses
  bool no_auto_barriers = false;  // of accesses of the user's memory, a body says who waits
  bool lineinfo = false;          // what is compiled names the user's lines
  // Refs of arguments and outputs are the arrays, not windows of them: whoever runs sees what
  // others write, and no grid axis is sequential because of an output.
  bool whole_arrays = false;
  int num_globals = 0;  // the last outputs: memory of the launch alone, zero when it starts

  // Side arrays.
  std::vector<Location> where;     // per instruction
  std::vector<std::string> names;  // per instruction, may be empty
  Location at;                     // the call that made the kernel
  CostEstimate cost = {};          // what its options say of it, like metadata
  std::vector<std::pair<std::string, std::string>> metadata = {};
  std::string profile_dir = {};
  Expectation expect = {};
  // Owns Location::file of graphs that were read from text; copies share it.
  std::shared_ptr<const std::deque<std::string>> files;

  const Inst& operator[](ValueId v) const { return insts[index(v)]; }
  Inst& operator[](ValueId v) { return insts[index(v)]; }
  const Region& operator[](RegionId r) const { return regions[index(r)]; }
  Region& operator[](RegionId r) { return regions[index(r)]; }
  Location location(ValueId v) const {
    return index(v) < where.size() ? where[index(v)] : Location{};
  }

  /// Appends an instruction (without placing it in a region).
  ValueId add(Inst inst, Location at = {});
  RegionId add_region();

  ValueId root(ValueId ref) const;  // the Param at the end of a chain of views
  /// Where a chain of views begins that have memory of one type: a Param, or a RefPart of one.
  ValueId base(ValueId ref) const;
  bool is_base(ValueId ref) const {
    return (*this)[ref].op == Op::Param || (*this)[ref].op == Op::RefPart;
  }
  /// The RefPeer in a chain of views, which says whose memory it is; no_value: the own block's.
  ValueId peer(ValueId ref) const;
  /// Whether index arrays are in a chain of views.
  bool chooses(ValueId ref) const;
  /// Whether a slice of stride 0 is, which repeats an element.
  bool repeats(ValueId ref) const;
  /// Whether the instruction reads memory of that root Ref, or may change it.
  bool reads(const Inst& inst, ValueId root_ref) const;
  bool writes(const Inst& inst, ValueId root_ref) const;
  /// Whether a view shows all of its array, or scratch, along a dimension.
  bool is_whole(ValueId ref, std::size_t dimension) const;
  /// Whether it makes a view of a Ref.
  bool is_view(ValueId v) const { return info((*this)[v].op).op_class == OpClass::view; }
  /// Number of a root Ref among all Refs that may share memory with it: outputs aliased to an input
  /// have the input's number. Precondition: a parameter of the region of a body or a run_scoped.
  int alias_class(ValueId root_ref) const;
  int num_scalars() const;
  /// The block mapping of a root Ref; -1: scratch.
  int mapping_of(ValueId root_ref) const;
};

/// One dimension of a subscript of a Ref.
struct SubscriptDim {
  bool is_slice = true;  // else an index: the dimension vanishes
  bool dynamic = false;  // start is an operand (i32[]) instead of `start`
  std::int64_t start = 0;
  std::int64_t size = 1;    // slice: number of elements
  std::int64_t stride = 1;  // slice: distance of elements
  bool array = false;  // an index for each element of the operand; `dynamic` then, and no slice
  bool operator==(const SubscriptDim&) const = default;
};
/// The payload of an At: one entry per dimension of args[0].
struct Subscript {
  std::vector<SubscriptDim> dims;
  static Subscript of(const Inst& at);
  std::vector<std::int64_t> encode() const;  // Attr::ints

  /// The view's dimensions that are those of index arrays: `rank` of them from `first` on, where
  /// the indices stand if all of them are neighbours, else in front. Slices have the others.
  struct Chosen {
    std::size_t first = 0, rank = 0;
    template <class T>
    std::vector<T> of(const std::vector<T>& view) const {
      const auto begin = view.begin() + static_cast<std::ptrdiff_t>(first);
      return {begin, begin + static_cast<std::ptrdiff_t>(rank)};
    }
    /// Of the view's dimensions the one behind `d` that a slice has.
    std::size_t next(std::size_t d) const { return d + 1 == first ? d + 1 + rank : d + 1; }
    std::size_t first_of_slices() const { return first == 0 ? rank : 0; }
  };
  Chosen chosen(std::size_t rank_of_view) const;
  /// Whether the dimension's slice leaves an extent wherever it starts, or where it is said to.
  static bool leaves(const SubscriptDim& d, std::int64_t extent);
};

/// ProgramId, NumPrograms (a grid axis), AxisIndex and AxisSize.
struct AxisView {
  AxisKind kind = AxisKind::grid;
  int axis = 0;
  static AxisView of(const Inst& inst);
};

/// The dimension along which an Iota counts.
int iota_dimension(const Inst& iota);

/// Broadcast: the result's dimension of each of the operand's. Transpose, RefTranspose: the
/// operand's dimension of each of the result's. Reductions: the dimensions that vanish, ascending.
std::span<const std::int64_t> dimensions(const Inst& inst);

/// What a MultipleOf or MaxContiguous says of each dimension; of a scalar the one number.
bool is_hint(Op op);
std::span<const std::int64_t> hint(const Inst& inst);
/// What is said, along dimension d, where a value, for which "{}" stands, breaks a hint.
std::string broken_hint(const Inst& inst, std::size_t d);

/// A fold that keeps its dimensions: of all elements up to each.
struct ScanView {
  int dimension = 0;
  bool reverse = false;  // up to it from the last one
  static ScanView of(const Inst& scan) {
    return {static_cast<int>(scan.attr.ints[0]), scan.attr.ints[1] != 0};
  }
};

/// Along each dimension the operand's element `start + stride * i`.
struct SliceView {
  std::vector<std::int64_t> starts, strides;
  static SliceView of(const Inst& slice);
  std::vector<std::int64_t> encode() const;  // Attr::ints
};

/// The dimension along which a Concatenate joins, and that in which a TakeAlong chooses.
int concatenated(const Inst& concatenate);
int taken(const Inst& take);

struct DotView {
  ValueId a = no_value, b = no_value;
  bool trans_a = false, trans_b = false;
  Precision precision = Precision::ieee;
  static DotView of(const Inst& dot);
  /// Of operand 0 or 1: that along which products are added up, K.
  std::size_t contracting_dimension(std::size_t operand) const {
    return operand == 0 ? !trans_a : trans_b;
  }
};

struct LoopView {
  ValueId low = no_value, high = no_value;  // i32[]: low, low + step, ... < high
  std::int64_t step = 1, unroll = 1;
  RegionId body{};                   // parameters: index, carries
  std::span<const ValueId> carries;  // the first ones
  static LoopView of(const Inst& loop);
};

struct WhileView {
  RegionId condition{}, body{};      // parameters of both: carries
  std::span<const ValueId> carries;  // the first ones
  static WhileView of(const Inst& loop);
};

/// Whether its regions may run several times, handing carries on.
constexpr bool repeats(Op op) { return op == Op::Loop || op == Op::While; }
/// Whether it has results, which a Get reads: carries, or what its regions yield.
constexpr bool has_results(Op op) { return repeats(op) || op == Op::Switch || op == Op::Scoped; }
/// The region that yields the next carries of what repeats, and the first of its parameters that
/// is a carry.
struct Repeated {
  RegionId region{};
  std::size_t first = 0;
  static Repeated of(const Inst& loop);
};

/// The result that a Get gives.
std::size_t result_of(const Inst& get);
/// What an InlineCuda gives.
std::vector<Type> result_types(const Inst& inline_cuda);

/// What an Atomic makes of an element and its operand. As natural numbers an increment makes one
/// more of the element, 0 of what is not less than the operand; a decrement one less, the operand
/// of 0 and of what is greater.
enum class Update : std::int64_t {
  add,
  max,
  min,
  bit_and,
  bit_or,
  bit_xor,
  exchange,
  compare,
  increment,
  decrement
};
inline constexpr int num_updates = 10;
/// "atomic_add"
const char* name_of(Update update);
/// Whether elements of the dtype can be updated so, by every target.
bool updates(Update update, DType dtype);
/// Those that can, for messages: "i32, u32, ...".
std::string dtypes_of(Update update);

/// Operands of Load, Store, Swap and Atomic by name; no_value where absent. `other` is what a Load
/// gives in masked lanes, and what Update::compare compares with.
struct MemoryView {
  ValueId ref = no_value, value = no_value, mask = no_value, other = no_value;
  static MemoryView of(const Inst& inst);
};
Update update_of(const Inst& atomic);

constexpr bool is_semaphore_op(Op op) {
  return op == Op::SemaphoreRead || op == Op::SemaphoreSignal || op == Op::SemaphoreWait;
}
bool has_semaphores(const Graph& g);
/// What a user says of asynchronous copies and products, and of who waits for whom: of barriers,
/// copies between global and shared memory and their groups; and of registers and other launches.
constexpr bool is_async_op(Op op) { return op >= Op::BarrierArrive && op <= Op::LaunchDependents; }
/// A product by hand: of an A in shared memory, or in registers. Its operands by name: DotView.
constexpr bool is_product_by_hand(Op op) { return op == Op::Wgmma || op == Op::WgmmaHeld; }
/// Whether threads have memory of such a space each for themselves.
constexpr bool is_own(Space space) { return space == Space::regs || space == Space::accumulator; }
constexpr bool is_barrier_op(Op op) {
  return op == Op::BarrierArrive || op == Op::BarrierWait || op == Op::BarrierTest;
}
bool has_async_ops(const Graph& g);
/// Members of a union begin where any swizzle can; a RefPart's does so many bytes behind it.
inline constexpr std::int64_t union_alignment = 1024;
inline std::int64_t offset_of_part(const Inst& part) { return part.attr.ints[0]; }
/// What a copy does about elements of its array that there are not, because a slice leaves it.
enum class Beyond : std::uint8_t {
  none,      ///< there are none
  anything,  ///< they are brought as anything
  zeros,     ///< ... as zeros
  dropped,   ///< to global memory: nothing is stored there
};
/// Operands of a copy by name, of a Prefetch `global` alone; no_value where absent.
struct CopyView {
  ValueId global = no_value, shared = no_value;
  ValueId barrier = no_value, number = no_value;  // that it completes, and which of its array
  /// Of a CopyToShared: a bit for each cluster axis along which blocks share its work; ...
  std::int64_t axes = 0;
  /// ... lowered, when it is one block's part of it, an i32[] with a bit for each of these blocks.
  ValueId blocks = no_value;
  Beyond beyond = Beyond::none;
  static CopyView of(const Inst& copy);
};
/// Of the block of that rank its place along each cluster axis: the last one varies fastest.
Extents place_in_cluster(const Graph& g, std::int64_t rank);
/// How many blocks of a cluster differ along such axes alone.
std::int64_t blocks_along(const Graph& g, std::int64_t axes);
/// Of the blocks that share a copy of such a shape each brings a part along this dimension, the
/// first that they divide; -1: none, each brings all of it for itself.
int divided_among(const Extents& shape, std::int64_t blocks);
/// attr.ints[0] of a BarrierWait, if there is one: the thread waits for the barriers of the array
/// one after the other, round and round.
inline constexpr std::int64_t wait_in_turn = 1;
inline bool waits_in_turn(const Inst& wait) { return !wait.attr.ints.empty(); }

/// Whether blocks of a cluster touch each other's memory, or barriers.
bool reach_other_blocks(const Graph& g);
/// Of a BarrierArrive: in which block; no_value: the own one.
inline ValueId block_of_arrival(const Inst& arrive) {
  return arrive.args.size() > 2 ? arrive.args[2] : no_value;
}
/// What threads, or copies that they ask for, bring to shared memory, and take from there.
constexpr bool is_copy_to_shared(Op op) {
  return op == Op::CopyToShared || op == Op::FetchToShared;
}
constexpr bool is_copy_to_global(Op op) {
  return op == Op::CopyToGlobal || op == Op::ReduceToGlobal;
}
/// Of an AwaitFetches.
inline int fetches_left(const Inst& wait) { return static_cast<int>(wait.attr.ints[0]); }
/// An AwaitCopies: for all groups but the last `pending`, until they have read what they copy, or
/// until it is there.
struct AwaitView {
  int pending = 0;
  bool read_only = false;
  static AwaitView of(const Inst& wait) {
    return {static_cast<int>(wait.attr.ints[0]), wait.attr.ints[1] != 0};
  }
};
/// A SetMaxRegisters.
struct RegistersView {
  int count = 0;
  bool more = false;
  static RegistersView of(const Inst& set) {
    return {static_cast<int>(set.attr.ints[0]), set.attr.ints[1] != 0};
  }
};
/// Whether a launch may begin before the one in front of it has ended, for which it waits itself.
bool overlaps_previous(const Graph& g);
/// Whether the array of a block mapping is known to have no elements.
bool is_empty(const BlockMapping& m);
/// Whether a body, or as an index operand an index map, uses what a block mapping shows.
bool is_used(const Graph& g, std::size_t mapping);
/// Whether nobody can tell if a program has run: no output has an element, and none is told.
bool writes_nothing(const Graph& g);
/// Whose blocks count with a semaphore: its array has a part for each block or cluster, or is one
/// for all.
enum class Counting : std::uint8_t { block, cluster, launch };
Counting counting(const Graph& g, const BlockMapping& semaphore);
Counting counting(const Graph& g, const Inst& semaphore_op);
/// Whether blocks may wait for others of their cluster, or of the launch.
bool blocks_may_wait(const Graph& g, Counting least = Counting::cluster);
/// Whether a SemaphoreWait takes from the count what it waited for.
bool waits_by_taking(const Inst& wait);
/// Who hears by a semaphore what was done before a signal: the block, its cluster, the GPU, or
/// everybody; as the operation says, else those who count with it.
enum class Hearing : std::uint8_t { block, cluster, gpu, system };
Hearing hearing(const Graph& g, const Inst& semaphore_op);

/// Whether it has a text.
constexpr bool says_something(Op op) {
  return op == Op::DebugPrint || op == Op::DebugCheck || op == Op::PrintLayout ||
         op == Op::InlineCuda || op == Op::ScopeEvent;
}
/// DebugPrint and DebugCheck.
constexpr bool is_debug_op(Op op) { return op == Op::DebugPrint || op == Op::DebugCheck; }
struct DebugView {
  std::int64_t site = 0;  // its number among those that were recorded
  static DebugView of(const Inst& inst) { return {inst.attr.ints[0]}; }
};

/// Of a warpgroup, or a warp, that a profile has room for.
inline constexpr std::int64_t most_scope_events = std::int64_t{1} << 20;
/// A ScopeEvent: which of the body's scopes, of whose threads, and how many are kept.
struct ScopeView {
  std::int64_t number = 0;
  bool ends = false;
  std::int64_t space = 0;  // of each warpgroup, or warp
  bool of_warps = false, cuts = false;
  static ScopeView of(const Inst& inst) {
    const std::vector<std::int64_t>& i = inst.attr.ints;
    return {i[0], i[1] != 0, i[2], i[3] != 0, i[4] != 0};
  }
  Attr encode(std::string name) const {
    return {{number, ends, space, of_warps, cuts}, 0, std::move(name)};
  }
};
/// The first of a kernel that is profiled; no_value of others.
ValueId first_scope(const Graph& g);

/// The bits of a block's fill in a dtype that its bytes are seen as; none where it has no fill, or
/// one whose bytes differ and which elements of another size cannot hold.
std::optional<std::uint64_t> fill_as(const BlockMapping& m, DType dtype);

/// Floats of 8 bits and integers of 4: stored, moved, chosen and converted. What is computed of
/// them is computed as this dtype, between conversions that stand in the graph.
constexpr bool is_byte_float(DType t) { return t.is_float() && t.bytes() == 1; }
constexpr DType computed_as(DType t) {
  return is_byte_float(t) ? f32 : t == i4 ? i8 : t == u4 ? u8 : t;
}
constexpr bool is_computed(DType t) { return computed_as(t) == t; }

/// A number as the bits of a dtype and back (16- and 8-bit floats round to nearest even).
std::uint64_t to_bits(DType dtype, double number);
std::uint64_t to_bits(DType dtype, std::int64_t number);
std::uint64_t natural_to_bits(DType dtype, std::uint64_t number);
double to_double(DType dtype, std::uint64_t bits);
std::int64_t to_int(DType dtype, std::uint64_t bits);

}  // namespace palladium::graph
