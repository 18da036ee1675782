// Barriers and asynchronous copies that a user has written.
#pragma once

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Adds the statements of an operation on barriers or copies, which legalize_async_copies has left
/// to be one.
void add_by_hand(Program& l, ValueId v, bool in_warps, Statements& out);
/// Behind the store that a fetch by hand is.
void close_fetch(const Program& l, ValueId v, Statements& out);
/// Behind all that an agent does: no block ends while others of its cluster may touch what it has.
void end_by_hand(const Program& l, Statements& out);
/// add_by_hand of a product, or of a wait for products: products_by_hand.cpp.
void add_product_by_hand(Program& l, ValueId v, Statements& out);
/// Barriers of threads in front of arrivals by hand go where they order nothing: idle_syncs.cpp.
void leave_out_idle_syncs(Program& l);

}  // namespace palladium::passes
