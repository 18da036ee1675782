// Whether the barriers and copies that a user says go together, whichever thread is first.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/graph/graph.hpp"
#include "codegen/lowered/protocol.hpp"

namespace palladium::lowered::hand {

/// Whether a body has barriers or copies by hand.
bool is_by_hand(const graph::Graph& g);

/// Of a body with barriers or copies by hand, as it was written: of what each Pallas thread does
/// to barriers, copies and memory, on each way through the body, what the order of threads leaves
/// open. Where a thread stands is known; a program is the first or the last of its axis; what data
/// or arguments decide is one of a few numbers, and no counterexample then.
///
/// What happens is followed one by one, for up to 5 ms.
///
/// What the interpreter finds when it looks for races is found here but for what data decide, and
/// what of an access its mask leaves out.
Protocol protocol_of(const graph::Graph& g, std::int64_t most = most_happenings / 4);

/// Who arrives at each barrier and who waits for it, then what the threads do, in an order in which
/// they can. For people.
std::string schedule(const graph::Graph& g);

}  // namespace palladium::lowered::hand
