// From the steady state of loops to what a call takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/timeline/window.hpp"

namespace palladium::timeline {

/// A loop whose steady state is known; nullptr: the blocks of a kernel.
struct Steady {
  Repeated loop = nullptr;
  double cycles = 0;  // of an iteration
};

/// Cycles from the first block of a call to the last one, of a grid of which `of_each` programs
/// come to each multiprocessor, `blocks` of them at once, where `trace` is what was followed of
/// such blocks. None where a call alone says how often a loop goes round.
std::optional<double> cycles_of_call(const Model& m, const std::vector<Steady>& loops,
                                     const Trace& trace, int blocks, std::int64_t of_each);

}  // namespace palladium::timeline
