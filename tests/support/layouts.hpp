// Random layouts, and plans executed on the CPU for all threads of a program.
#pragma once

#include <random>
#include <string>

#include "codegen/layout/layout.hpp"
#include "codegen/layout/relayout.hpp"

namespace palladium::layout {

using Random = std::mt19937;

/// low <= result <= high, the same on every platform.
inline int pick(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
}

/// 1 to 3 dimensions, powers of two and odd extents, 8 to 4096 elements.
Extents random_domain(Random& random);

/// How many warps a program can have: 4, 8 or 16.
int random_warps(Random& random);

/// Tile bits spread over registers and threads at random, some thread bits replicated; of at most
/// 8 register bits. Unit images, or the same after random additions among them.
Layout random_layout(Random& random, const Extents& domain, bool unit = true, int warps = 4);

/// Executes the plan on a value whose elements are all different and compares every register of
/// every thread with the layout; "" or what went wrong. Also wrong: addresses outside the scratch
/// or misaligned, two threads storing to one address in one step, reading what the step did not
/// store, data crossing a warp in spite of a warp barrier.
std::string run(const Plan& plan);

/// Wavefronts of all accesses of a Shared plan, counted bank by bank, and the number without
/// conflicts.
struct Wavefronts {
  long counted = 0, ideal = 0;
};
Wavefronts wavefronts(const Plan& plan);

}  // namespace palladium::layout
