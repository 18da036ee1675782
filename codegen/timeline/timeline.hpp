// One multiprocessor over the steady state of a kernel's loops. It reports only: nothing that
// decides about a kernel asks it.
#pragma once

#include "codegen/lowered/program.hpp"
#include "codegen/thread/program.hpp"
#include "codegen/timeline/costs.hpp"
#include "palladium/report.hpp"

namespace palladium::timeline {

/// Of a program that has its offsets in shared memory, and what has been made of it. `blocks`: that
/// a multiprocessor takes at once; 0: as many as what is known of registers lets it take.
Timeline timeline_of(const lowered::Program& l, const thread::Program& p, int blocks = 0);

/// The same of what agents do, with its costs given.
Timeline timeline_of(lowered::protocol::Model m, const Costs& costs, int blocks);

}  // namespace palladium::timeline
