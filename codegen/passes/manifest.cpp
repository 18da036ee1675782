// The one place where the order of passes stands.
#include "codegen/passes/manifest.hpp"

#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

constexpr Pass attempt[] = {
    {"arrange_sums", arrange_sums, Fact::none, Fact::none, Edits::graph,
     "first: instructions that it adds have windows and places like others"},
    {"split_sums", split_sums, Fact::none, Fact::none, Edits::graph,
     "of sums as they are made: what is behind them is the first block's"},
    {"bound_axes", bound_axes, Fact::none, Fact::none, Edits::graph,
     "so does this: what an axis is compared with is hoisted out of its loop"},
    {"divide_stores", divide_stores, Fact::none, Fact::none, Edits::graph,
     "and this: parts that are stored have nests of their own"},
    {"defer_folds", defer_folds, Fact::none, Fact::none, Edits::graph,
     "and this: carries of other shapes have places of their own"},
    {"move_slices", move_slices, Fact::none, Fact::none, Edits::graph,
     "and this: slices of what is loaded are loads"},
    {"move_reshapes", move_reshapes, Fact::none, Fact::none, Edits::graph,
     "and this: memory is accessed by other views"},
    {"legalize_dot_operands", legalize_dot_operands, Fact::none, Fact::none, Edits::graph,
     "so does this: what products take decides what is staged"},
    {"turn_products", turn_products, Fact::none, Fact::none, Edits::graph,
     "behind who folds transposes into products: which are transposed?"},
    {"divide_iterations", divide_iterations, Fact::none, Fact::none, Edits::graph,
     "and behind who adds products: of what they multiply, how much has room?"},
    {"legalize_async_copies", legalize_async_copies, Fact::none, Fact::none, Edits::graph,
     "and this: what threads copy they load and store"},
    {"place_windows", place_windows, Fact::none, Fact::windows, Edits::nothing,
     "says which loads read memory"},
    {"swizzle_grid", swizzle_grid, Fact::windows, Fact::none, Edits::nothing,
     "of windows: which programs read the same?"},
    {"hoist_invariants", hoist_invariants, Fact::windows, Fact::none, Edits::graph,
     "of windows: what nobody writes is the same in every iteration"},
    {"stage_windows", stage_windows, Fact::windows, Fact::stages, Edits::graph,
     "before values: what is staged is cheap to read"},
    {"place_values", place_values, Fact::windows | Fact::stages, Fact::values, Edits::nothing,
     "of stages: whole or inlined depends on what is in memory"},
    {"build_statements", build_statements, Fact::values, Fact::statements, Edits::nothing,
     "of values: one loop nest per sink"},
    {"peel_iterations", peel_iterations, Fact::statements, Fact::none, Edits::nothing,
     "as long as loops are what was written"},
    {"assign_layouts", assign_layouts, Fact::statements, Fact::layouts, Edits::nothing,
     "all nests are known: costs can be weighed"},
    {"coalesce_accumulators", coalesce_accumulators, Fact::layouts, Fact::none, Edits::nothing,
     "of layouts: what can stand where?"},
    {"measure_registers", measure_registers, Fact::layouts, Fact::registers, Edits::nothing,
     "of layouts: is the program wide enough?"},
};

constexpr Pass chosen[] = {
    {"check_registers", check_registers, Fact::registers, Fact::none, Edits::nothing,
     "before memory: of two errors, the plainer one"},
    {"pad_staged_rows", pad_staged_rows, Fact::layouts, Fact::rows, Edits::nothing,
     "of layouts: which banks do lanes read?"},
    {"choose_copies", choose_copies, Fact::layouts, Fact::copies, Edits::nothing,
     "of layouts: what does a thread copy?"},
    {"fetch_windows", fetch_windows, Fact::rows | Fact::copies, Fact::none, Edits::nothing,
     "of rows: what does TMA copy instead?"},
    {"double_buffer_operands", double_buffer_operands, Fact::copies, Fact::none, Edits::nothing,
     "before copies take the room: what is computed beside products?"},
    {"begin_copies", begin_copies, Fact::copies, Fact::none, Edits::nothing,
     "before loops take the room: what in none of them may begin earlier?"},
    {"build_pipelines", build_pipelines, Fact::rows | Fact::copies, Fact::rings, Edits::nothing,
     "how large is what is copied ahead?"},
    {"share_fetches", share_fetches, Fact::rings, Fact::none, Edits::nothing,
     "of rings: who tells whom that a slot is free?"},
    {"begin_products", begin_products, Fact::rings, Fact::none, Edits::nothing,
     "of rings: what is there when the iteration begins?"},
    {"software_pipeline", software_pipeline, Fact::rings, Fact::none, Edits::nothing,
     "of rings: which steps are left for the next iteration?"},
    {"load_ahead", load_ahead, Fact::rings, Fact::none, Edits::nothing,
     "of loops as they stay: what is read of global memory in an iteration?"},
    {"divide_sends", divide_sends, Fact::layouts, Fact::none, Edits::nothing,
     "of layouts: who has which rows of what is sent?"},
    {"complete_async", complete_async, Fact::rings, Fact::waits, Edits::nothing,
     "behind the last to move what is begun"},
    {"split_index_sets", split_index_sets, Fact::waits, Fact::none, Edits::nothing,
     "behind the last to move statements: what is asked in an iteration?"},
    {"end_nests", end_nests, Fact::layouts | Fact::waits, Fact::none, Edits::nothing,
     "behind the last to move statements: what of values does nobody want?"},
    {"divide_rows", divide_rows, Fact::layouts, Fact::none, Edits::nothing,
     "of layouts: what does a thread hold of a row?"},
    {"skip_rescaling", skip_rescaling, Fact::layouts, Fact::none, Edits::nothing,
     "of layouts: what of a factor does a thread hold?"},
    {"eliminate_dead_scalars", eliminate_dead_scalars, Fact::statements, Fact::none, Edits::nothing,
     "behind whoever takes their readers away"},
    {"tell_of_loops", tell_of_loops, Fact::waits, Fact::none, Edits::nothing,
     "who waits for what, of what is wanted?"},
    {"plan_accesses", plan_accesses, Fact::rows | Fact::rings, Fact::none, Edits::nothing,
     "of rows, rings and divisions: which addresses do elements have?"},
    {"tell_of_accesses", tell_of_accesses, Fact::statements, Fact::none, Edits::nothing,
     "of plans: which ways do blocks take?"},
    {"place_shared_memory", place_shared_memory, Fact::layouts | Fact::waits, Fact::offsets,
     Edits::nothing, "all before it add storages, and what is awaited lives until then"},
    {"bound_launch", bound_launch, Fact::offsets, Fact::none, Edits::nothing,
     "of shared memory: how many blocks are registers to leave room for?"},
    {"order_accesses", order_accesses, Fact::offsets, Fact::order, Edits::nothing,
     "last: what lies in one place is one memory"},
};

// Each pass finds what it needs; the facts that hold behind the last one.
template <std::size_t n>
consteval Fact facts_behind(const Pass (&passes)[n], Fact held) {
  for (const Pass& p : passes) {
    if (!holds(held, p.needs)) throw "a pass stands before one that leaves what it needs";
    held = held | p.leaves;
  }
  return held;
}
static_assert(holds(facts_behind(chosen, facts_behind(attempt, Fact::none)), Fact::order));

}  // namespace

std::span<const Pass> attempt_passes() { return attempt; }
std::span<const Pass> chosen_passes() { return chosen; }

}  // namespace palladium::passes
