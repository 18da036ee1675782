// A warpgroup that fetches for the others what their loops read.
#pragma once

#include <vector>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Gives the copies of the loop at `at`, one for each of its rings, to a producer, which does what
/// is `produced`, if it can go through the loop: it knows scalars and the blocks of windows, and
/// computes nothing else.
bool produce(Program& l, const Statements& list, std::size_t at, const std::vector<Ahead>& ahead,
             Statements& produced);

/// Adds a producer to a body of one agent: one thread of a warpgroup does what is `produced`, and
/// the others get the registers that it needs not.
void add_producer(const Program& l, Body& body, Statements produced);

}  // namespace palladium::passes
