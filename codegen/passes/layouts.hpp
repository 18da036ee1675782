// Parts of the assignment of layouts.
#pragma once

#include "codegen/layout/relayout.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// What relayouts on the machine may do; `behind_copies`: where these leave them room.
layout::PlanOptions plan_options(const Program& l, bool behind_copies = false);
/// Whether the statement is a loop, of no products of wgmma, whose copies fill in two iterations
/// what a relayout in no loop takes the place of then.
bool leaves_room(const Program& l, const Statement& s);

/// The layout that a leaf needs so that register numbers of a nest with layout `l` reach it: the
/// nest's dimensions that the leaf has, in the leaf's order, with unit dimensions put in.
layout::Layout project(const layout::Layout& l, const DimMap& map);
/// Whether the nest goes over more than a leaf has.
bool is_padded(const LoopNest& p, const DimMap& map);

/// Behind who makes them, values for nests that want them in another layout, or at coordinates that
/// no register number gives: those come by way of shared memory. Nothing of what is there already.
void insert_relayouts(Program& l);
/// In front of loops those of few registers that are the same in all iterations.
void hoist_relayouts(Program& l);

/// Rolls the loops over repetitions of a nest that has its layout, until it is short enough.
void roll_loops(Program& l, LoopNest& p);

/// Gives loads that are narrow in the layouts of their nests nests of their own.
void spread_loads(Program& l);

}  // namespace palladium::passes
