// A warpgroup that fetches for the others what their loops read.
#pragma once

#include <vector>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Gives the copies of the loop at `at`, one for each of its rings, to the producer, if that can go
/// through the loop: it knows scalars and the blocks of windows, and computes nothing else.
bool add_producer(Program& l, const Statements& list, std::size_t at,
                  const std::vector<Ahead>& ahead);

}  // namespace palladium::passes
