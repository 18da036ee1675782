// Copies of a loop that are made together, and how many iterations of it have a slot for them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "codegen/passes/needs.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {

using Copies = std::span<const Statement>;

/// Whether the nest begins copies to shared memory that nobody waits for yet.
bool is_copied(const LoopNest& p);
/// The barrier that says when what a copy brings is in shared memory; none of other statements, and
/// of copies by hand.
BarrierId completed_by(const Statement& s);
/// Whether copies to shared memory that are made together begin there.
bool begins_copies(const Statements& list, std::size_t at);
/// Where they end: neighbours that complete one barrier; else the one.
std::size_t end_of_copies(const Statements& list, std::size_t at);
Copies copies_at(const Statements& list, std::size_t at);
/// The storages that copies fill.
std::vector<StorageId> filled_by(const Program& l, Copies copies);
/// Of whose block they are; copies that are made together are of as many slots.
WindowId window_copied(const Program& l, Copies copies);
/// How many slots somebody wants for what they bring; 0: nobody said.
int slots_given(const Program& l, Copies copies);

/// What they copy, for remarks.
std::string description_of_copied(const Program& l, Copies copies);

/// Says why copies that are made together are not made ahead.
void tell_not_pipelined(Program& l, Copies copies, const std::string& why);

/// Steps of a loop's rings, one or more in each iteration; INT64_MAX where that is not known.
std::int64_t trips(const Program& l, const Over& over);

/// More than these no loop is given that nobody gave any.
inline constexpr std::int64_t most_slots = 5;

/// For how many slots of each copy a block has room; of one slot each the last `second` fetches of
/// a loop have another.
struct SlotRoom {
  int most = 0, second = 0;
};

/// For copies of a loop, each by where it begins, how many slots they have: what somebody asked for
/// and else what hides the latency of memory, as many as there is room for, and no more than
/// iterations that are copied for one behind the other. Where that is one, fetches have it, filled
/// again as soon as it is read; other copies are not made ahead, and not among the result. What
/// cannot be is a remark.
std::map<std::size_t, int> slots_for(Program& l, const Over& over,
                                     const std::set<std::size_t>& copies, const SlotRoom& room,
                                     std::int64_t iterations, bool has_producer, Location at);

}  // namespace palladium::passes
