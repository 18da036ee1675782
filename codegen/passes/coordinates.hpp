// Coordinates of the elements of a nest as sums over the thread and the counters of its loops.
#pragma once

#include <vector>

#include "codegen/layout/terms.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/thread/expr.hpp"

namespace palladium::passes {

using Coordinates = std::vector<thread::Affine>;

/// What numbers the elements that one thread holds.
struct Counters {
  thread::ExprId group = thread::no_expr;        // vectors of a tile
  thread::ExprId element = thread::no_expr;      // elements of a vector
  std::vector<thread::ExprId> repetitions = {};  // of the tile, per dimension
  int vector_bits = 0;                           // low bits of the register number: `element`
};

/// How many low bits of the register number run along the last dimension, as far as 16 bytes of the
/// narrowest type that the nest moves reach: the loop over the elements of a vector.
int vector_bits(const Program& l, const LoopNest& p, const layout::Layout& layout);

/// The thread's part of the coordinate along d; no_expr where there is none.
thread::ExprId thread_part(thread::Exprs& exprs, const layout::Layout& layout, int d,
                           thread::ExprId thread);
/// The rest of it, of the counters.
thread::Affine counted_part(thread::Exprs& exprs, const layout::Layout& layout, int d,
                            const Counters& counters);

/// The part of each image that lies in dimension d.
layout::Bits fields_of(const layout::Layout& l, const layout::Bits& images, int d);

/// The linear map of the bits of `v` (of which there are `bits`) as a sum.
thread::Affine affine_of(thread::Exprs& exprs, thread::ExprId v, const layout::Terms& terms,
                         int bits);

}  // namespace palladium::passes
