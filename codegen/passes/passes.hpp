// The passes over the lowered program, and what they ask each other.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/base/checked.hpp"
#include "codegen/lowered/program.hpp"

namespace palladium::passes {

using namespace lowered;

/// The passes, in the order of the manifest.
void arrange_sums(Program& l);
void split_sums(Program& l);
void bound_axes(Program& l);
void divide_stores(Program& l);
void defer_folds(Program& l);
void move_slices(Program& l);
void move_reshapes(Program& l);
void legalize_dot_operands(Program& l);
void turn_products(Program& l);
void divide_iterations(Program& l);
void legalize_async_copies(Program& l);
void place_windows(Program& l);
void swizzle_grid(Program& l);
void hoist_invariants(Program& l);
void stage_windows(Program& l);
void place_values(Program& l);
void build_statements(Program& l);
void peel_iterations(Program& l);
void assign_layouts(Program& l);
void coalesce_accumulators(Program& l);
void measure_registers(Program& l);
void check_registers(Program& l);
void pad_staged_rows(Program& l);
void choose_copies(Program& l);
void fetch_windows(Program& l);
void share_fetches(Program& l);
void double_buffer_operands(Program& l);
void build_pipelines(Program& l);
void begin_products(Program& l);
void software_pipeline(Program& l);
void load_ahead(Program& l);
void divide_sends(Program& l);
void begin_copies(Program& l);
void complete_async(Program& l);
void split_index_sets(Program& l);
void end_nests(Program& l);
void divide_rows(Program& l);
void skip_rescaling(Program& l);
void eliminate_dead_scalars(Program& l);
void tell_of_loops(Program& l);
void plan_accesses(Program& l);
void tell_of_accesses(Program& l);
void place_shared_memory(Program& l);
void bound_launch(Program& l);
void order_accesses(Program& l);

/// Index maps read the index operands where the first body does: in its windows.
void share_index_operands(Program& l);

/// Bytes of shared memory of a block in which each storage has its own place.
Checked unshared_bytes(const Program& l);

/// Where what TMA fetches and sends shares places, as it always does.
Checked placed_bytes(const Program& l);

/// Whether a block has the shared memory, where storages share what they hold one after the other.
bool fits_shared_memory(const Program& l);

/// Whether windows are staged for which, beside all else, no block has the shared memory.
bool stages_too_much(const Program& l);

/// Registers of each thread, of which the kernel begins with `all`: of a producer, and of the
/// warpgroups that it fetches for. 0: nothing is to be changed.
struct RegisterShares {
  int all = 0, producer = 0, consumer = 0;
};
RegisterShares registers_beside_producer(int warpgroups);

/// Why more threads would serve a measured program better; "" if they would not.
std::string reason_to_widen(const Program& l);
/// Whether a program of twice the threads is better in that.
bool gains(const Program& l, const Program& wider);

/// How the storages of a relayout, which have their layouts, come from one to the other.
layout::Plan plan_of(const Program& l, const Relayout& r);

/// Registers that a value takes in each of so many threads, rounded up.
std::int64_t registers_estimate(const graph::Type& type, int threads);

/// Whether a value fits so many registers of each of the program's threads; where a wider program
/// would hold it, that is noted.
bool fits_registers(Program& l, const graph::Type& type, std::int64_t registers);

}  // namespace palladium::passes
