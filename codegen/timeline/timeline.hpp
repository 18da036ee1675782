// One multiprocessor over the steady state of a kernel's loops.
#pragma once

#include <cstdint>

#include "codegen/lowered/program.hpp"
#include "codegen/thread/program.hpp"
#include "codegen/timeline/costs.hpp"
#include "palladium/report.hpp"

namespace palladium::timeline {

/// How many blocks of a kernel that nobody has compiled a multiprocessor takes at once, by what it
/// holds and about as many registers for addresses and counters as kernels need.
int blocks_of(const lowered::Program& l, int threads, std::int64_t shared_bytes);

/// Of a program that has its offsets in shared memory, and what has been made of it. `blocks`: that
/// a multiprocessor takes at once, where a call has as many for it; 0: blocks_of().
Timeline timeline_of(const lowered::Program& l, const thread::Program& p, int blocks = 0);

/// The same of what agents do, with its costs given, and how many programs come to a
/// multiprocessor; 0: only a call says it.
Timeline timeline_of(lowered::protocol::Model m, const Costs& costs, int blocks,
                     std::int64_t of_each = 0);

}  // namespace palladium::timeline
