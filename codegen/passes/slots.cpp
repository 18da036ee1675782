#include "codegen/passes/slots.hpp"

#include <algorithm>

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
  return c != nullptr ? c->completes : BarrierId();
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

std::int64_t trips(const Program& l, const Over& over) {
  if (over.axis >= 0) {
    const Dim& d = l.graph.mapping.grid[static_cast<std::size_t>(over.axis)];
    return d.is_static() ? d.value() : INT64_MAX;
  }
  return graph::trips(l.graph, over.loop).value_or(INT64_MAX);
}

namespace {

// Bytes that should be on their way to a multiprocessor; slots that one is given for that.
constexpr std::int64_t wanted_bytes = 32 << 10, wanted_by_tma = 128 << 10;
constexpr std::int64_t fewest_slots = 3;
constexpr int most_blocks = 4;

class Choice {
 public:
  Choice(Program& l, const Over& over, Location at) : l_(l), over_(over), at_(at) {}

  std::map<std::size_t, int> choose(const std::set<std::size_t>& moved, bool has_producer) {
    std::map<std::size_t, int> slots;
    std::map<int, std::set<std::size_t>> copies;  // by what is given
    for (const std::size_t i : moved) copies[slots_given(l_, copies_at(*over_.body, i))].insert(i);
    const Slot together = slot_of(moved);
    const Checked all = unshared_bytes(l_);
    if (!all.within(0, l_.machine.max_shared_bytes)) {
      l_.remarks.push_back({at_, "not pipelined: a block has no more shared memory"});
      for (const std::size_t i : moved) slots[i] = 1;
      return slots;
    }
    const std::int64_t others =
        all.value() / std::max(1, l_.warpgroups) - together.once - sent_bytes(2 * together.largest);
    // Where a ring begins, and its barriers, take more.
    const std::int64_t beside = together.fetched ? 2 * together.alignment * std::ssize(copies) : 0;
    const std::int64_t room =
        l_.machine.max_shared_bytes / std::max(1, l_.warpgroups) - others - beside;
    const std::int64_t taken = give_slots(copies, room, slots);
    if (!copies.contains(0)) return slots;
    const int chosen = choose_slots(slot_of(copies[0]), others + taken, room - taken, has_producer);
    for (const std::size_t i : copies[0]) slots[i] = chosen;
    return slots;
  }

 private:
  // What copies fill of a slot that they share.
  struct Slot {
    std::int64_t bytes = 0, alignment = 1;
    std::int64_t once = 0, largest = 0;  // of all together without gaps, and of one of them
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
        slot.largest = std::max(slot.largest, bytes);
        slot.bytes = round_up(slot.bytes, shared_alignment(s)) + bytes;
        slot.alignment = std::max(slot.alignment, shared_alignment(s));
      }
    }
    slot.bytes = round_up(slot.bytes, slot.alignment);
    return slot;
  }

  // Those that somebody asked for, as far as there is room; returns the bytes.
  std::int64_t give_slots(const std::map<int, std::set<std::size_t>>& copies, std::int64_t room,
                          std::map<std::size_t, int>& slots) {
    int most = copies.rbegin()->first;
    const auto bytes = [&] {
      std::int64_t n = 0;
      for (const auto& [given, of] : copies)
        n += std::max(1, std::min(given, most)) * slot_of(of).bytes;
      return n;
    };
    while (most > 1 && bytes() > room) --most;
    std::int64_t taken = 0;
    for (const auto& [given, of] : copies) {
      if (given == 0) continue;
      if (most < given)
        l_.remarks.push_back(
            {at_, fmt::format("pipelined by {} stages, not {}: a block has no more "
                              "shared memory",
                              most, given)});
      for (const std::size_t i : of) slots[i] = std::min(given, most);
      taken += std::min(given, most) * slot_of(of).bytes;
    }
    return taken;
  }

  int choose_slots(const Slot& slot, std::int64_t others, std::int64_t room, bool has_producer) {
    const std::int64_t most = room / slot.bytes;
    const int blocks = blocks_together(others + slot.bytes, has_producer);
    const std::int64_t share =
        thread::multiprocessor(l_.machine.compute_capability).shared_bytes / blocks - 1024;
    const std::int64_t fit = std::min(most, (share - others) / slot.bytes);
    const std::int64_t wanted =
        std::clamp(1 + cdiv(slot.fetched ? wanted_by_tma : wanted_bytes, slot.bytes * blocks),
                   fewest_slots, most_slots);
    const std::int64_t slots =
        std::min({wanted, std::max<std::int64_t>(fit, 2), most, trips(l_, over_)});
    if (slots < 2 && trips(l_, over_) > 1)
      l_.remarks.push_back({at_, "not pipelined: a block has no more shared memory"});
    return static_cast<int>(std::max<std::int64_t>(slots, 1));
  }

  // Of what lies in the place of a ring, where one of at least so many bytes has room for it.
  std::int64_t sent_bytes(std::int64_t of_ring) const {
    const StorageId sent = sent_behind_loops(l_);
    if (!sent) return 0;
    const std::int64_t bytes = shared_bytes(l_.storages[sent]).value();
    return bytes <= of_ring ? bytes : 0;
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
    const Occupancy o = thread::occupancy(l_.machine.compute_capability, threads, r);
    return std::clamp(o.blocks, 1, most_blocks);
  }

  Program& l_;
  const Over& over_;
  const Location at_;
};

}  // namespace

std::map<std::size_t, int> slots_for(Program& l, const Over& over,
                                     const std::set<std::size_t>& copies, bool has_producer,
                                     Location at) {
  return Choice(l, over, at).choose(copies, has_producer);
}

}  // namespace palladium::passes
