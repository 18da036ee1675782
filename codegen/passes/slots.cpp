#include "codegen/passes/slots.hpp"

#include <algorithm>

#include "codegen/base/checked.hpp"
#include "codegen/base/format.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/registers.hpp"
#include "codegen/thread/occupancy.hpp"

namespace palladium::passes {

bool is_copied(const LoopNest& p) {
  if (const Stage* s = std::get_if<Stage>(&p.sink)) return s->by.asynchronous;
  const Fill* f = std::get_if<Fill>(&p.sink);
  return f != nullptr && f->by.asynchronous;
}

BarrierId completed_by(const Statement& s) {
  const Copy* const c = std::get_if<Copy>(&s.what);
  return c != nullptr && !c->by_hand ? c->completes : BarrierId();
}

std::size_t end_of_copies(const Statements& list, std::size_t at) {
  const BarrierId barrier = completed_by(list[at]);
  std::size_t end = at + 1;
  while (barrier && end < list.size() && completed_by(list[end]) == barrier) ++end;
  return end;
}

bool begins_copies(const Statements& list, std::size_t at) {
  if (const BarrierId barrier = completed_by(list[at]))
    return at == 0 || completed_by(list[at - 1]) != barrier;
  const LoopNest* const p = std::get_if<LoopNest>(&list[at].what);
  return p != nullptr && is_copied(*p);
}

Copies copies_at(const Statements& list, std::size_t at) {
  return std::span(list).subspan(at, end_of_copies(list, at) - at);
}

std::vector<StorageId> filled_by(const Program& l, Copies copies) {
  std::vector<StorageId> filled;
  for (const Statement& s : copies)
    for (const Effect& e : effects(l, s))
      if (e.writes() && e.role == Effect::Role::result) filled.push_back(e.storage);
  return filled;
}

WindowId window_copied(const Program& l, Copies copies) {
  for (const Statement& s : copies)
    for (const Effect& e : effects(l, s))
      if (e.is_element() && e.role == Effect::Role::value && e.window) return e.window;
  return {};
}

int slots_given(const Program& l, Copies copies) {
  const WindowId window = window_copied(l, copies);
  const int mapping = window ? l.windows[window].mapping : -1;
  const int of_window =
      mapping < 0 ? 0 : l.graph.mapping.block_mappings[static_cast<std::size_t>(mapping)].buffers;
  return of_window > 0 ? of_window : l.graph.bodies[0].num_stages;
}

std::string description_of_copied(const Program& l, Copies copies) {
  const WindowId window = window_copied(l, copies);
  const ValueId of = window ? l.windows[window].root : l.storages[filled_by(l, copies)[0]].of;
  return description_of(l.graph, of);
}

void tell_not_pipelined(Program& l, Copies copies, const std::string& why) {
  l.remarks.push_back(
      {copies[0].at, fmt::format("{}: not pipelined: {}", description_of_copied(l, copies), why)});
}

std::int64_t trips(const Program& l, const Over& over) {
  std::int64_t iterations = INT64_MAX;
  if (over.axis < 0)
    iterations = graph::trips(l.graph, over.loop).value_or(INT64_MAX);
  else if (const Dim& d = l.graph.mapping.grid[static_cast<std::size_t>(over.axis)]; d.is_static())
    iterations = d.value();
  return iterations > INT64_MAX / over.steps ? INT64_MAX : iterations * over.steps;
}

namespace {

// Bytes that should be on their way to a multiprocessor; slots that one is given for that.
constexpr std::int64_t wanted_bytes = 32 << 10, wanted_by_tma = 128 << 10;
constexpr std::int64_t fewest_slots = 3;
constexpr int most_blocks = 4;

class Choice {
 public:
  Choice(Program& l, const Over& over, const SlotRoom& room, std::int64_t iterations, Location at)
      : l_(l), over_(over), room_(room), iterations_(iterations), at_(at) {}

  std::map<std::size_t, int> choose(const std::set<std::size_t>& moved, bool has_producer) {
    if (room_.most < 2) return one_each(moved);
    std::map<std::size_t, int> slots;
    std::map<int, std::set<std::size_t>> copies;  // by what is given
    for (const std::size_t i : moved) copies[slots_given(l_, copies_at(*over_.body, i))].insert(i);
    const std::int64_t taken = give_slots(copies, slots);
    if (copies.contains(0)) {
      const std::int64_t others =
          placed_bytes(l_).value_or(INT64_MAX / 2) / std::max(1, l_.warpgroups) -
          slot_of(moved).once;
      const int chosen = choose_slots(slot_of(copies[0]), others + taken, has_producer);
      for (const std::size_t i : copies[0]) slots[i] = chosen;
    }
    std::erase_if(slots, [](const auto& of) { return of.second < 2; });
    return slots;
  }

 private:
  std::map<std::size_t, int> one_each(const std::set<std::size_t>& moved) {
    std::map<std::size_t, int> slots;
    const bool fetched = std::ranges::all_of(
        moved, [&](std::size_t i) { return bool(completed_by((*over_.body)[i])); });
    const bool ahead = room_.most == 1 && fetched && trips(l_, over_) > 1;
    for (const std::size_t i : moved)
      if (ahead)
        slots[i] = 1;
      else
        tell_no_room(i);
    int left = room_.second;
    for (auto copies = slots.rbegin(); copies != slots.rend() && left > 0; ++copies, --left)
      copies->second = 2;
    for (const auto& [i, of] : slots)
      if (of == 1) tell_of_one(i);
    return slots;
  }

  void tell_of_one(std::size_t at) {
    for (const Statement& s : copies_at(*over_.body, at))
      l_.remarks.push_back(
          {s.at, fmt::format("{}: copied into one slot, when that has been read: a block has no "
                             "more shared memory",
                             description_of_copied(l_, Copies(&s, 1)))});
  }

  void tell_no_room(std::size_t at) {
    for (const Statement& s : copies_at(*over_.body, at))
      tell_not_pipelined(l_, Copies(&s, 1), "a block has no more shared memory");
  }

  // What copies fill of a slot that they share.
  struct Slot {
    std::int64_t bytes = 0, alignment = 1;
    std::int64_t once = 0;  // of all together without gaps
    bool fetched = false;
  };
  Slot slot_of(const std::set<std::size_t>& copies) const {
    Slot slot;
    for (const std::size_t i : copies) {
      slot.fetched |= bool(completed_by((*over_.body)[i]));
      for (const StorageId filled : filled_by(l_, copies_at(*over_.body, i))) {
        const Storage& s = l_.storages[filled];
        const std::int64_t bytes = shared_bytes(s).value_or(0);
        slot.once += bytes;
        slot.bytes = round_up(slot.bytes, shared_alignment(s)) + bytes;
        slot.alignment = std::max(slot.alignment, shared_alignment(s));
      }
    }
    slot.bytes = round_up(slot.bytes, slot.alignment);
    return slot;
  }

  // Those that somebody asked for, as far as there is room; returns the bytes.
  std::int64_t give_slots(const std::map<int, std::set<std::size_t>>& copies,
                          std::map<std::size_t, int>& slots) {
    std::int64_t taken = 0;
    for (const auto& [given, of] : copies) {
      if (given == 0) continue;
      if (room_.most < given)
        l_.remarks.push_back(
            {at_, fmt::format("pipelined by {} stages, not {}: a block has no more "
                              "shared memory",
                              room_.most, given)});
      for (const std::size_t i : of) slots[i] = std::min(given, room_.most);
      taken += std::min(given, room_.most) * slot_of(of).bytes;
    }
    return taken;
  }

  int choose_slots(const Slot& slot, std::int64_t others, bool has_producer) {
    int blocks = blocks_together(others + slot.bytes, has_producer);
    const auto fit_of = [&](int together) {
      const std::int64_t share =
          thread::multiprocessor(l_.machine.compute_capability).shared_bytes / together - 1024;
      return together == 1 ? most_slots : (share - others) / slot.bytes;
    };
    // A block less rather than copies that are awaited as soon as they are begun.
    while (slot.fetched && blocks > 1 && fit_of(blocks) < fewest_slots) --blocks;
    const std::int64_t fit = fit_of(blocks);
    const std::int64_t wanted =
        std::clamp(1 + cdiv(slot.fetched ? wanted_by_tma : wanted_bytes, slot.bytes * blocks),
                   fewest_slots, static_cast<std::int64_t>(most_slots));
    const std::int64_t slots = std::min({wanted, std::max<std::int64_t>(fit, 2),
                                         static_cast<std::int64_t>(room_.most), iterations_});
    return static_cast<int>(std::max<std::int64_t>(slots, 1));
  }

  // Blocks that registers, and shared memory without a pipeline, leave on a multiprocessor.
  int blocks_together(std::int64_t shared, bool has_producer) const {
    constexpr std::int64_t beside_values = 64, most_registers = 255;
    int threads = l_.threads() * l_.warpgroups;
    Resources r;
    r.registers = static_cast<int>(std::min(most_registers, l_.most_held + beside_values));
    r.shared_bytes = static_cast<int>(shared);
    if (has_producer) {
      threads += graph::warpgroup_threads;
      r.registers = std::max(r.registers, registers_beside_producer(l_.num_warps / 4).all);
    }
    const int cc = l_.machine.compute_capability;
    const Occupancy o = thread::occupancy(cc, threads, r);
    return std::clamp(std::min(o.blocks, thread::blocks_of_call(l_.graph, cc)), 1, most_blocks);
  }

  Program& l_;
  const Over& over_;
  const SlotRoom room_;
  const std::int64_t iterations_;
  const Location at_;
};

}  // namespace

std::map<std::size_t, int> slots_for(Program& l, const Over& over,
                                     const std::set<std::size_t>& copies, const SlotRoom& room,
                                     std::int64_t iterations, bool has_producer, Location at) {
  return Choice(l, over, room, iterations, at).choose(copies, has_producer);
}

}  // namespace palladium::passes
