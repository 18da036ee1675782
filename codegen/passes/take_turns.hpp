// Fetches of an iteration, one behind the other, that fill slots of one ring.
#pragma once

#include <cstddef>
#include <set>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Whether the fetches that begin there bring as much each, for products that stand between it and
/// the next one and nowhere else: a ring's next slot is filled by the next of them then, in
/// whatever iteration.
bool can_take_turns(const Program& l, const Statements& body, const std::set<std::size_t>& fetches);

/// Has all of them fill the storages of the first, and complete its barrier.
void take_turns(Program& l, Statements& body, const std::set<std::size_t>& fetches);

}  // namespace palladium::passes
