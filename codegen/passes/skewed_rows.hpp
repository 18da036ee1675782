// Rows whose beginnings have any alignment, brought to shared memory by copies of 16 bytes.
#pragma once

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Whether the nest, which stages what it loads, may take it from skewed rows instead, which copies
/// bring there: all pieces of 16 bytes around a row's elements.
/// `placed`: what all else takes of shared memory.
bool takes_skewed_rows(const Program& l, const LoopNest& p, ValueId load, Checked placed);

/// Lets the nest take it from there; gives the statement that brings it, to stand in front of it.
/// `zeros`: what lies out of bounds is 0.
Statement bring_skewed_rows(Program& l, LoopNest& p, ValueId load, bool zeros, Location at);

}  // namespace palladium::passes
