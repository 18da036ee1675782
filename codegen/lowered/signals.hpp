// What mbarriers tell, on every way through an agent.
#pragma once

#include <set>
#include <string>

#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

/// The rings the slots of which an agent fills for others: by copies of their iteration.
std::set<RingId> rings_filled(const Program& l, const Statements& agent);

struct SignalDefect {
  const Statement* at = nullptr;
  std::string what = {};  // "" : none
};

/// Who touches what copies bring has waited for their barrier, in this iteration or, of what no
/// ring holds, since they were begun. A producer has waited until the slot that it fills is free,
/// and fills it; others leave none that they have not waited for and freed; who waits for a slot
/// leaves it. Copies are expected in front of them, to the byte.
SignalDefect signal_defect(const Program& l);

}  // namespace palladium::lowered
