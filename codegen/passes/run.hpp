// Runs the manifest: the attempts at a width, then what makes a program of the chosen one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/passes/manifest.hpp"

namespace palladium::passes {

/// Which attempt at a program this is: "4", "8", ... by the warps of a Pallas thread, and
/// "4-unstaged" where windows that are read from global memory may have no copy in shared memory.
std::string attempt_of(const Program& l);

/// A pass that ran. Where operands of products have room by parts alone, their number stands behind
/// the attempt: "8-k4".
struct PassRun {
  std::string attempt;
  const char* pass = "";
  double ms = 0;
};
/// Learns of each, and of the program behind it; an InternalError that it throws is the pass's.
using Observer = std::function<void(const PassRun&, const Program&)>;

/// InternalError where a pass has left a broken program, or a broken graph if that is what it
/// edits. Looked at behind the last pass, and behind others in debug builds and where
/// PALLADIUM_VERIFY says so, as tests do.
void verify_behind(const Pass& p, const Program& l);

/// Whether a user says what a warpgroup does, or holds: such programs have the width that they
/// have.
bool is_of_a_warpgroup(const graph::Graph& g);

/// A program that no pass has touched.
Program start(const graph::Graph& g, const Machine& machine, int num_warps, bool may_stage);

/// `g` is canonical, of a grid without environment and of whole bytes. Where a block has no room
/// for the operands of products these are taken by parts of K. An InternalError of a pass names it,
/// and shows the program before it and as the pass left it.
Program run_passes(const graph::Graph& g, const Machine& machine, const Observer& observer = {});

}  // namespace palladium::passes
