// The members of what a lowered program is made of, by name: what its text says, all of it, and
// what is read back from that. Members have their declared order; a kind of statement that is not
// here has no text and does not compile.
#pragma once

#include <concepts>
#include <iterator>
#include <span>
#include <type_traits>
#include <variant>

#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// In front of the number of a storage, window, ring, box or layout variable: s3, w0, r1, b0, v2.
template <class Kind>
inline constexpr char letter_of = '?';
template <>
inline constexpr char letter_of<Storage> = 's';
template <>
inline constexpr char letter_of<Window> = 'w';
template <>
inline constexpr char letter_of<Ring> = 'r';
template <>
inline constexpr char letter_of<TensorBox> = 'b';
template <>
inline constexpr char letter_of<Barriers> = 'm';
template <>
inline constexpr char letter_of<LayoutVariable> = 'v';

/// One of the words of an enumeration, by its values.
template <class T>
struct Word {
  T& value;
  std::span<const char* const> words;
};

/// Which alternative of a variant, by its words; read, it is as by default.
template <class V>
struct Alternative {
  V& value;
  std::span<const char* const> words;
};

namespace detail {
template <class V>
Alternative<V> alternative(V& x, std::span<const char* const> words) {
  return {x, words};
}
template <class T>
Word<T> word(T& x, std::span<const char* const> words) {
  return {x, words};
}
}  // namespace detail

/// The words of an enumeration, by its values.
inline constexpr const char* place_words[] = {"inlined", "scalar", "registers", "shared"};
inline constexpr const char* residency_words[] = {"direct", "registers", "shared", "staged"};
inline constexpr const char* unit_words[] = {"fma",      "mma_16816", "mma_1688",      "mma_16832",
                                             "mma_tf32", "wgmma",     "wgmma_promoted"};
inline constexpr const char* completion_words[] = {"none", "mbarrier", "cp_async_group",
                                                   "bulk_group", "wgmma_group"};
inline constexpr const char* phase_words[] = {"of_iteration", "tracked", "in_turn"};
inline constexpr const char* sync_words[] = {"program", "block", "cluster", "warpgroup"};

// Calls f(name, member) for each member, whose type says how it is spelled.
#define PALLADIUM_FIELDS(Type)                        \
  template <class T, class F>                         \
  requires std::same_as<std::remove_const_t<T>, Type> \
  void fields(T& x, const F& f)

PALLADIUM_FIELDS(Machine) {
  f("compute_capability", x.compute_capability);
  f("is_specific", x.is_specific);
  f("max_shared_bytes", x.max_shared_bytes);
}

PALLADIUM_FIELDS(Inlined) {
  (void)x;
  (void)f;
}
PALLADIUM_FIELDS(OneElement) {
  (void)x;
  (void)f;
}
PALLADIUM_FIELDS(Registers) {
  f("layout", x.layout);
  f("packed", x.packed);
}

PALLADIUM_FIELDS(Shared) {
  f("offset", x.offset);
  f("row_stride", x.row_stride);
  f("swizzle", x.swizzle);
  f("per_warpgroup", x.per_warpgroup);
  f("per_warp", x.per_warp);
  f("fetched", x.fetched);
  f("sent", x.sent);
  f("by_warpgroups", x.by_warpgroups);
  f("row_swizzle", x.row_swizzle);
  f("rows_alike", x.rows_alike);
  f("skewed", x.skewed);
  f("tf32", x.tf32);
  f("alignment", x.alignment);
  f("ring", x.ring);
  f("within", x.within.storage);
  f("within_offset", x.within.offset);
}

// Where it lives stands first: what there is to say of it follows from that.
PALLADIUM_FIELDS(Storage) {
  f("place", detail::alternative(x.in, place_words));
  f("dtype", x.dtype);
  f("shape", x.shape);
  f("of", x.of);
  f("variable", x.variable);
  f("dropped", x.dropped);
  std::visit([&](auto& in) { fields(in, f); }, x.in);
}

PALLADIUM_FIELDS(Ring) {
  f("storage", x.storage);
  f("slots", x.slots);
  f("slot_bytes", x.slot_bytes);
  f("trips", x.trips);
  f("copied", x.copied);
  f("fetched", x.fetched);
  f("empty_barriers", x.empty_barriers);
  f("unrolled", x.unrolled);
  f("follows", x.follows);
}

PALLADIUM_FIELDS(Barriers) {
  f("storage", x.storage);
  f("ring", x.ring);
  f("arrivals", x.arrivals);
  f("by_warps", x.by_warps);
  f("by_hand", x.by_hand);
  f("along", x.along);
}

PALLADIUM_FIELDS(Direct) { f("synchronised", x.synchronised); }

template <class T, class F>
requires std::derived_from<T, Resident>
void fields(T& x, const F& f) {
  f("storage", x.storage);
  f("fill", x.fill);
  f("flush", x.flush);
}

PALLADIUM_FIELDS(Staged) {
  f("storage", x.storage);
  f("lead", x.lead);
  f("vector", x.vector);
  f("zeros", x.zeros);
  f("turned", x.turned);
}

// Where the block lives stands in front of what there is to say of that.
PALLADIUM_FIELDS(Window) {
  f("root", x.root);
  f("mapping", x.mapping);
  f("body", x.body);
  f("scope", x.scope);
  f("residency", detail::alternative(x.in, residency_words));
  f("depth", x.depth);
  f("stored", x.stored);
  f("read_only", x.read_only);
  f("in_bounds", x.in_bounds);
  std::visit([&](auto& in) { fields(in, f); }, x.in);
}

PALLADIUM_FIELDS(TensorBox) {
  f("mapping", x.mapping);
  f("box", x.box);
  f("swizzle", x.swizzle);
  f("tf32", x.tf32);
}

// ---- what becomes of each element of a loop nest

PALLADIUM_FIELDS(CopyMode) {
  f("asynchronous", x.asynchronous);
  f("zeros", x.zeros);
}
PALLADIUM_FIELDS(Assign) { f("storage", x.storage); }
PALLADIUM_FIELDS(Stage) {
  f("storage", x.storage);
  fields(x.by, f);
}
PALLADIUM_FIELDS(Store) {
  f("inst", x.inst);
  fields(x.by, f);
}
PALLADIUM_FIELDS(Update) {
  f("inst", x.inst);
  f("storage", x.storage);
}
PALLADIUM_FIELDS(Reduce) {
  f("inst", x.inst);
  f("storage", x.storage);
  f("reduced", x.reduced);
  f("scratch", x.scratch);
}
PALLADIUM_FIELDS(Scan) {
  f("inst", x.inst);
  f("storage", x.storage);
  f("dimension", x.dimension);
  f("reverse", x.reverse);
  f("scratch", x.scratch);
}
PALLADIUM_FIELDS(Print) { f("inst", x.inst); }
PALLADIUM_FIELDS(Fill) {
  f("window", x.window);
  f("storage", x.storage);
  fields(x.by, f);
}
PALLADIUM_FIELDS(Flush) {
  f("window", x.window);
  f("from", x.from);
}
PALLADIUM_FIELDS(Spill) {
  f("from", x.from);
  f("storage", x.storage);
}
PALLADIUM_FIELDS(Clear) {
  f("storage", x.storage);
  f("load", x.load);
}

// ---- statements, without what stands inside of them

PALLADIUM_FIELDS(LoopNest) {
  f("sink", x.sink);
  f("value", x.value);
  f("domain", x.domain);
  f("valid", x.valid);
  f("variable", x.variable);
  f("layout", x.layout);
  f("rolled", x.rolled);
  f("redirects", x.redirects);
  f("ends", x.ends);
  f("divided", x.divided);
  f("loops", x.loops);
  f("row_loops", x.row_loops);
  f("unless_one", x.unless_one);
  f("whole", x.whole);
  f("forked", x.forked);
  f("repeats_first", x.repeats_first);
  f("rows", x.rows);
  f("columns", x.columns);
}
PALLADIUM_FIELDS(Dot) {
  f("inst", x.inst);
  f("a", x.a);
  f("b", x.b);
  f("result", x.result);
  f("accumulates", x.accumulates);
  f("anew", x.anew);
  f("unit", detail::word(x.unit, unit_words));
  f("warps_m", x.warps_m);
  f("warps_n", x.warps_n);
  f("back", x.back);
}
PALLADIUM_FIELDS(Copy) {
  f("from", x.from);
  f("to", x.to);
  f("box", x.box);
  f("completes", x.completes);
  f("slot", x.slot);
  f("of", x.of);
  f("multicast", x.multicast);
  f("share_axes", x.share.axes);
  f("share_dimension", x.share.dimension);
  f("predicate", x.predicate);
  f("update", x.update);
  f("by_hand", x.by_hand);
}
PALLADIUM_FIELDS(Arrive) {
  f("barrier", x.barrier);
  f("slot", x.slot);
  f("block", x.block);
  f("bytes", x.bytes);
  f("back", x.back);
}
PALLADIUM_FIELDS(Wait) {
  f("barrier", x.barrier);
  f("slot", x.slot);
  f("phase", detail::alternative(x.phase, phase_words));
  f("told", x.told);
  f("scratch", x.scratch);
}
PALLADIUM_FIELDS(Close) { f("kind", detail::word(x.kind, completion_words)); }
PALLADIUM_FIELDS(WaitGroup) {
  f("kind", detail::word(x.kind, completion_words));
  f("pending", x.pending);
  f("storages", x.storages);
  f("written", x.written);
}
PALLADIUM_FIELDS(Fence) {
  (void)x;
  (void)f;
}
PALLADIUM_FIELDS(Sync) { f("of", detail::word(x.of, sync_words)); }
PALLADIUM_FIELDS(SetRegisters) {
  f("count", x.count);
  f("more", x.more);
}
// The plan follows from the layouts.
PALLADIUM_FIELDS(Relayout) {
  f("from", x.from);
  f("to", x.to);
  f("scratch", x.scratch);
}
PALLADIUM_FIELDS(Semaphore) {
  f("inst", x.inst);
  f("storage", x.storage);
  f("scratch", x.scratch);
}
PALLADIUM_FIELDS(HostCall) {
  f("inst", x.inst);
  f("scratch", x.scratch);
}
PALLADIUM_FIELDS(Inline) {
  f("inst", x.inst);
  f("operands", x.operands);
  f("results", x.results);
}
PALLADIUM_FIELDS(Scalar) {
  f("value", x.value);
  f("storage", x.storage);
  f("redirects", x.redirects);
}
PALLADIUM_FIELDS(CopyStorage) {
  f("from", x.from);
  f("to", x.to);
}
PALLADIUM_FIELDS(When) { f("condition", x.condition); }
PALLADIUM_FIELDS(IfWhole) { f("windows", x.windows); }
PALLADIUM_FIELDS(IfMasked) {
  f("load", x.load);
  f("sums", x.sums);
  f("holding", x.holding);
  f("failing", x.failing);
}
PALLADIUM_FIELDS(KnownIterations) {
  f("holding", x.holding);
  f("failing", x.failing);
  f("sums", x.sums);
}
PALLADIUM_FIELDS(Loop) {
  f("inst", x.inst);
  f("ring", x.ring);
  f("shared", x.shared);
  fields(x.known, f);
}
PALLADIUM_FIELDS(While) { f("inst", x.inst); }
PALLADIUM_FIELDS(Switch) {
  f("inst", x.inst);
  f("results", x.results);
}
PALLADIUM_FIELDS(Scope) {
  f("inst", x.inst);
  f("windows", x.windows);
}
PALLADIUM_FIELDS(Warps) { f("inst", x.inst); }
PALLADIUM_FIELDS(Elected) {
  (void)x;
  (void)f;
}
PALLADIUM_FIELDS(GridLoop) {
  f("axis", x.axis);
  f("ring", x.ring);
  f("shared", x.shared);
  fields(x.known, f);
}
PALLADIUM_FIELDS(EnterWindow) { f("window", x.window); }
PALLADIUM_FIELDS(Advance) { f("ring", x.ring); }
template <class T, class F>
requires std::same_as<std::remove_const_t<T>, Lead> || std::same_as<std::remove_const_t<T>, Ahead>
void fields(T& x, const F& f) {
  f("ring", x.ring);
  f("iterations", x.iterations);
  f("axis", x.axis);
  f("loop", x.loop);
  f("kept", x.kept);
}

// ---- the whole program, without lists of what is above, tables by instruction and remarks

PALLADIUM_FIELDS(Program) {
  f("parallel_axes", x.parallel_axes);
  f("sequential_axes", x.sequential_axes);
  f("end_of_axis", x.end_of_axis);
  f("grid_rows", x.grid_rows);
  f("checked_hints", x.checked_hints);
  f("length_cases", x.length_cases);
  f("shared_bytes", x.shared_bytes);
  f("min_blocks", x.min_blocks);
  f("warpgroups", x.warpgroups);
  f("num_warps", x.num_warps);
  f("wanted_warps", x.wanted_warps);
  f("may_stage", x.may_stage);
  f("may_fetch_beside", x.may_fetch_beside);
  f("most_slots", x.most_slots);
  f("largest_held", x.largest_held);
  f("most_held", x.most_held);
  f("wgmma_products", x.wgmma_products);
  f("wgmma_by_columns", x.wgmma_by_columns);
}
#undef PALLADIUM_FIELDS

/// What statements and sinks are called, by their place among the alternatives.
inline constexpr const char* statement_words[] = {
    "nest",       "dot",       "copy",   "arrive",        "wait",     "close",
    "wait_group", "fence",     "sync",   "set_registers", "relayout", "semaphore",
    "host_call",  "inline",    "scalar", "copy_storage",  "when",     "if_whole",
    "if_masked",  "loop",      "while",  "switch",        "scope",    "warps",
    "elected",    "grid_loop", "window", "advance",       "lead",     "ahead"};
inline constexpr const char* sink_words[] = {"assign", "stage", "store", "update", "reduce", "scan",
                                             "print",  "fill",  "flush", "spill",  "clear"};
static_assert(std::size(statement_words) == std::variant_size_v<decltype(Statement::what)>);
static_assert(std::size(sink_words) == std::variant_size_v<Sink>);

/// The parameters and instructions of bodies in the order of their text. What gives no value has no
/// number there, and is called by its place among all of these: @5.
std::vector<ValueId> text_order(const graph::Graph& g);

/// Calls f(name, statements) for what stands inside of a statement, in order.
template <class S, class F>
requires std::same_as<std::remove_const_t<S>, Statement>
void for_each_named_body(S& s, const F& f) {
  std::visit(
      [&](auto& what) {
        if constexpr (requires { what.test; }) f("test", what.test);
        if constexpr (requires { what.prologue; }) f("prologue", what.prologue);
        if constexpr (requires { what.body; }) f("body", what.body);
        if constexpr (requires { what.bodies; })
          for (auto& body : what.bodies) f("branch", body);
        if constexpr (requires { what.epilogue; }) f("epilogue", what.epilogue);
      },
      s.what);
}

}  // namespace palladium::lowered
