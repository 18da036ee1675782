// The steps of canonicalize().
#pragma once

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// Orders the instructions of every region by demand, and drops those that nothing demands: what
/// stands between two writes depends on the data flow alone, not on the order of recording.
/// `effects_of` is the column of the op table, but for tests.
void order_by_demand(Graph& g, const Effects& (*effects_of)(Op) = effects);

/// Folds constants, merges equal values and removes what changes nothing; whether there was any.
/// `g` is in order.
bool simplify(Graph& g);

/// Drops what the regions of a switch or run_scoped yield and no Get reads, and numbers the rest
/// anew; whether there was any. What it was computed from may be dead then: order again.
bool drop_unread(Graph& g);

/// Under approximate maths: makes one product by a constant of several, of a quotient by one, and
/// moves it behind what chooses and what looks for the largest, where it may be a part of another
/// product or of an fma; of two numbers of each row, or of all, by which elements are multiplied one
/// after the other, it makes one. Results move by an ulp or two; whether there was any. `g` is in
/// order; order again.
bool regroup_products(Graph& g);

/// Makes a product with one use, under an add or subtraction of its region, an fma; whether there
/// was any. New instructions stand where they are used: order again.
bool contract(Graph& g);

}  // namespace palladium::graph
