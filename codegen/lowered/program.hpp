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
//   agent          warpgroups of a block that go through the same statements
//   producer       an agent that only fills slots
//   prologue       of a pipelined loop: what stands before its first iteration
//   epilogue       of a pipelined loop: what stands behind its last iteration
//   relayout       the same value in registers by another layout
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "codegen/graph/graph.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/layout/layout.hpp"
#include "codegen/lowered/body.hpp"
#include "codegen/lowered/machine.hpp"
#include "codegen/lowered/statement.hpp"
#include "codegen/lowered/storage.hpp"
#include "codegen/lowered/window.hpp"
#include "codegen/thread/expr.hpp"
#include "palladium/report.hpp"

namespace palladium::lowered {

struct Program {
  graph::Graph graph = {};  // canonical
  Machine machine = {};
  std::vector<Body> bodies = {};
  Table<WindowId, Window> windows = {};
  Table<StorageId, Storage> storages = {};
  Table<BoxId, TensorBox> tensor_boxes = {};
  Table<BarrierId, Barriers> barriers = {};
  Table<RingId, Ring> rings = {};
  std::vector<Remark> remarks = {};
  Table<ValueId, StorageId> storage_of = {};  // none if inlined (or no value)
  Table<ValueId, WindowId> window_of = {};    // of a root Ref
  Table<ValueId, int> uses = {};              // uses_of the graph; who edits it asks again
  Table<ValueId, int> around = {};            // sequential axes whose loops it stands in
  std::vector<int> parallel_axes = {}, sequential_axes = {};  // of the grid, in order; or
                                                              // programs_axis the first of these
  // The loop over the innermost sequential axis ends at this number, where there are more programs.
  ValueId end_of_axis = graph::no_value;
  int grid_rows = 1;  // of the last two parallel axes, that programs go through at once
  Table<LayoutVariableId, layout::Layout> pinned = {};  // no domain: free
  /// Of arrays: every element follows from where it stands and from scalars, and is compared with
  /// what the user says of it where the program runs on a CPU.
  std::vector<ValueId> checked_hints = {};
  /// Stores to shared memory of what is loaded that a user waits for: fetches by hand.
  std::vector<ValueId> fetches_by_hand = {};
  LengthCases length_cases = {};
  std::int64_t shared_bytes = 0;
  int min_blocks = 1;             // of a multiprocessor, that registers leave room for
  int warpgroups = 1;             // Pallas threads of all bodies ...
  int num_warps = 4;              // ... of so many warps each
  int wanted_warps = 4;           // by place_windows and place_values, to keep what they could not
  bool may_stage = true;          // there is shared memory for windows that are read from global
  bool may_fetch_beside = true;   // ... for what is read once beside sums
  int most_slots = 0;             // that there is room for in a ring; 0: nobody has found out yet
  std::int64_t largest_held = 0;  // registers per thread of one value ...
  std::int64_t most_held = 0;     // ... and of all values at once, by measure_registers
  /// The graph before passes edit it, where users wait for each other and for copies by hand.
  std::shared_ptr<const graph::Graph> written = {};
  int wgmma_products = 0;    // of the program, by measure_registers ...
  int wgmma_by_columns = 0;  // ... of which warpgroups side by side read the same A

  /// Where the loop over a sequential axis ends before its last program; no_value: nowhere.
  ValueId end_of(int axis) const {
    return !sequential_axes.empty() && axis == sequential_axes.back() ? end_of_axis
                                                                      : graph::no_value;
  }
  /// CUDA threads of a Pallas thread.
  int threads() const { return num_warps * graph::warp_threads; }
  StorageId add_storage(Storage s) { return storages.add(std::move(s)); }
  /// One, or of a ring one for each slot.
  BarrierId add_barriers(RingId ring = {}, int slots = 1);
  LayoutVariableId add_variable(layout::Layout pin = {}) { return pinned.add(std::move(pin)); }
  /// What has the bytes of a storage in shared memory: the union or the ring that it lies in, or
  /// itself.
  StorageId room_of(StorageId s) const;
  const Window& window_loaded(ValueId v) const {
    return windows[window_of[graph.base(graph[v].args[0])]];
  }
  /// The storage of the window that a Load or Swap reads; none if it is in global memory.
  StorageId storage_loaded(ValueId v) const { return window_loaded(v).storage(); }
};

/// Calls f for what each agent does, in order.
template <class P, class F>
requires std::same_as<std::remove_const_t<P>, Program>
void for_each_list(P& l, const F& f) {
  for (auto& body : l.bodies)
    for (auto& agent : body.agents) f(agent.statements);
}

/// Numbers all statements, in the order in which they stand: what follows from one leads back to
/// it.
void number_statements(Program& l);

/// A bit for each block of the cluster, by its rank, that differs from the one of that rank along
/// the axes of one of these sets alone; that one, too.
std::uint64_t blocks_beside(const graph::Graph& g, std::int64_t rank,
                            std::span<const std::int64_t> sets);
/// How many blocks are told by one who arrives at the barrier.
int blocks_told(const Program& l, BarrierId barrier);

/// Whether each warpgroup sends rows of its own, in all that the program sends.
bool sends_by_warpgroups(const Program& l);

/// How often each instruction is an operand of one that is not left over: computed for nobody.
Table<ValueId, int> uses_of(const graph::Graph& g);

/// For people: residencies, storages, nests with their layouts.
std::string to_text(const Program& l);
/// All of it but the places of statements in the user's files: the graph, then what passes decided.
std::string to_full_text(const Program& l);

/// Map of operand `arg` of `v`, which is evaluated by `map`.
DimMap map_of_operand(const graph::Graph& g, ValueId v, std::size_t arg, const DimMap& map);

/// Calls f(value, map, storage) once for every leaf and map of the inlined expression `v`: values
/// with a storage, and loads, whose storage is that of their window (-1 if in global memory). `v`
/// itself is such a value unless `enter`. Of a view these are the leaves of its index arrays.
template <class F>
void for_each_leaf(const Program& l, ValueId v, const DimMap& map, bool enter, F&& f);

/// Of a leaf, whether it is a load that reads the copy in shared memory of a staged window.
bool reads_staged(const Program& l, ValueId leaf);

/// Whether the nest computes the value that the storage holds (rather than read it from there).
bool enters(const Program& l, const LoopNest& p, StorageId storage);

/// The nest of an operation that folds elements, whose result has a storage.
LoopNest fold_nest(Program& l, ValueId v);
/// How it folds them, and what in: f32 for sums and products of 16-bit floats.
thread::Fold fold_of(graph::Op op);
/// Whether an element that is in the fold already makes no difference.
constexpr bool is_idempotent(thread::Fold f) {
  return f == thread::Fold::max || f == thread::Fold::min;
}
DType accumulator_dtype(const graph::Graph& g, ValueId fold);

/// The user's name of a value, or "".
std::string name_of(const graph::Graph& g, ValueId v);

/// What the user knows a value as, for messages: "'acc'", "args[0]", "carry 1 of the loop", "the
/// result of dot".
std::string description_of(const graph::Graph& g, ValueId v);

/// What an instruction per register costs: a wider program issues it in more warps.
inline double issued(const layout::Layout& l) {
  return l.warpgroups() * static_cast<double>(l.registers());
}

/// Registers that one value may take of a thread.
inline constexpr std::int64_t max_whole_registers = 192;
/// Registers of an element.
inline std::int64_t words(DType t) { return t.bytes() == 8 ? 2 : 1; }

template <class F>
void for_each_leaf(const Program& l, ValueId v, const DimMap& map, bool enter, F&& f) {
  // Expressions are deep, and share parts.
  std::vector<std::pair<ValueId, DimMap>> stack{{v, map}};
  std::set<std::pair<ValueId, DimMap>> seen;
  for (bool first = true; !stack.empty(); first = false) {
    const auto [next, at] = std::move(stack.back());
    stack.pop_back();
    const graph::Inst& inst = l.graph[next];
    if (l.uses[next] > 1 && !seen.insert({next, at}).second) continue;
    if (const StorageId storage = l.storage_of[next]; storage && !(first && enter)) {
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

}  // namespace palladium::lowered
