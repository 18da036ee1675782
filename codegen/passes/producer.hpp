// A warpgroup that fetches for the others what their loops read.
#pragma once

#include <vector>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// A statement, by its list and place.
struct Standing {
  const Statements* list = nullptr;
  std::size_t at = 0;
};

/// Whether copies for iterations of a loop need nothing that the program alone knows.
bool can_produce(const Program& l, const std::vector<Standing>& whens, Standing loop,
                 const std::vector<Ahead>& ahead);

/// Gives the copies of a loop, in the order in which its rings step, to a producer, which does what
/// is `produced`: what its iterations need is made there, too, and in front of it, under the same
/// conditions, those around the loop from the outermost on. False, and nothing is changed, where
/// it cannot.
bool produce(Program& l, const std::vector<Standing>& whens, Standing loop,
             const std::vector<Ahead>& ahead, Statements& produced);

/// Adds a producer to a body of one agent: one thread of a warpgroup does what is `produced`, and
/// the others get the registers that it needs not.
void add_producer(const Program& l, Body& body, Statements produced);

}  // namespace palladium::passes
