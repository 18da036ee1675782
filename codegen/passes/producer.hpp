// A warpgroup that fetches for the others what their loops read.
#pragma once

#include <map>
#include <vector>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// A statement, by its list and place.
struct Standing {
  const Statements* list = nullptr;
  std::size_t at = 0;
};

/// What a producer fetches for each iteration of a loop, in the order in which its rings step, by
/// the ring that steps first.
using Produced = std::map<RingId, std::vector<Ahead>>;

/// Whether any of them is for a loop in the list.
bool fetches_in(const Produced& produced, const Statements& list);

/// Whether copies for iterations of a loop need nothing but what a producer can make for itself:
/// numbers of loops around it, from the outermost on, conditions among them, and scalars that
/// follow from those and from memory that nobody writes.
bool can_produce(const Program& l, const std::vector<Standing>& around, Standing loop,
                 const std::vector<Ahead>& ahead);

/// Adds a producer to a body of one agent, whose loops step through rings that are filled by
/// what is `produced`: one thread of a warpgroup goes through the same loops, under the same
/// conditions, and does of them what fetches need. The others get the registers that it needs not.
void add_producer(const Program& l, Body& body, const Produced& produced);

}  // namespace palladium::passes
