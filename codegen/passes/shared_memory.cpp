// Gives every storage in shared memory its offset: one of its own or, where a block has not that
// much, one that it shares with storages that hold nothing meanwhile.
//
// Precondition: assign_layouts, which adds staging and scratch.
#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/lives.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/shared_memory.hpp"

namespace palladium::passes {
namespace {

// Offsets in dynamic shared memory; what every warpgroup has a copy of lies side by side.
class SharedMemory {
 public:
  explicit SharedMemory(Program& l) : l_(l) {}

  void run() {
    if (!fits() && !fits_shared()) too_much();
    l_.shared_bytes = end_.value();
  }

  /// What all take if each has its own place.
  Checked bytes() {
    (void)fits();
    return end_;
  }

  bool fits() {
    for_each_list(l_, [&](Statements& list) { scratch_sizes(list); });
    end_ = 0;
    const StorageId over_ring = sent_over_a_ring();
    for (const StorageId s : unscoped())
      if (s != over_ring) place(storage(s));
    if (over_ring)
      storage(over_ring).shared().offset = storage(ring_for(over_ring)).shared().offset;
    return ends_with_scopes();
  }

 private:
  Storage& storage(StorageId s) { return l_.storages[s]; }

  bool ends_with_scopes() {
    for_each_list(l_, [&](Statements& list) { end_ = scopes(list, end_); });
    return end_.within(0, l_.machine.max_shared_bytes);
  }

  // What is sent when nobody reads rings any more. The ring lies where panels of that may, too.
  StorageId sent_over_a_ring() {
    const StorageId sent = sent_behind_loops(l_);
    const StorageId ring = sent ? ring_for(sent) : StorageId();
    if (!ring) return {};
    std::int64_t& alignment = storage(ring).shared().alignment;
    alignment = std::max(alignment, shared_alignment(storage(sent)));
    return sent;
  }

  // The storage of a ring in which it has room, if there is one.
  StorageId ring_for(StorageId sent) {
    for (const Ring& r : l_.rings)
      if (r.slots * r.slot_bytes >= shared_bytes(storage(sent)).value()) return r.storage;
    return {};
  }

  std::vector<StorageId> unscoped() const {
    std::set<StorageId> scoped;
    for (const Window& w : l_.windows)
      if (w.storage() && w.scope != graph::no_value) scoped.insert(w.storage());
    std::vector<StorageId> found;
    for (const StorageId s : l_.storages.ids())
      if (l_.storages[s].in_shared() && !scoped.contains(s) && l_.room_of(s) == s)
        found.push_back(s);
    return found;
  }

  // Windows live as long as the program.
  bool is_window(StorageId storage) const {
    return std::ranges::any_of(l_.windows, [&](const Window& w) { return w.storage() == storage; });
  }

  // Storages whose lives do not meet take one place. Warpgroups have copies, and wait for
  // themselves alone: theirs would meet.
  bool fits_shared() {
    if (l_.warpgroups > 1) return false;
    const Lives lives(l_);
    const StorageId over_ring = sent_over_a_ring();
    end_ = 0;
    std::vector<StorageId> sharing;
    for (const StorageId s : unscoped())
      if (s == over_ring)
        continue;
      else if (is_window(s) || storage(s).is_fetched() || storage(s).is_sent() || !lives.has(s))
        place(storage(s));
      else
        sharing.push_back(s);
    for (const StorageId s : sharing)
      if (!shared_bytes(storage(s)).within(0, l_.machine.max_shared_bytes)) return false;
    std::ranges::stable_sort(sharing, {}, [&](StorageId s) { return lives.of(s).first; });
    if (over_ring)
      storage(over_ring).shared().offset = storage(ring_for(over_ring)).shared().offset;
    const Checked begin = end_;
    for (std::size_t i = 0; i < sharing.size(); ++i) {
      Storage& s = storage(sharing[i]);
      end_ = lowest(begin, s, std::span(sharing).first(i),
                    [&](StorageId other) { return lives.meet(other, sharing[i]); });
      place(s);
    }
    end_ = begin;
    for (const StorageId s : sharing)
      end_ = larger(end_, storage(s).shared().offset + shared_bytes(storage(s)));
    if (!ends_with_scopes()) return false;
    return true;
  }

  // Where, from `begin` on, a storage fits between those of the placed ones that it meets.
  template <class Meets>
  Checked lowest(Checked begin, const Storage& s, std::span<const StorageId> placed,
                 Meets&& meets) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const StorageId other : placed)
      if (meets(other))
        taken.emplace_back(storage(other).shared().offset,
                           storage(other).shared().offset + shared_bytes(storage(other)).value());
    std::ranges::sort(taken);
    const std::int64_t alignment = shared_alignment(s);
    std::int64_t at = checked_align_up(begin, alignment).value_or(0);
    for (const auto& [from, to] : taken) {
      if (at + shared_bytes(s).value() <= from) break;
      at = std::max(at, checked_align_up(to, alignment).value());
    }
    return at;
  }

  // The exchange between warps needs room for the partial results of the lanes that differ.
  void scratch_sizes(Statements& list) {
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { scratch_sizes(body); });
      const LoopNest* nest = std::get_if<LoopNest>(&s.what);
      if (nest == nullptr) continue;
      std::visit(
          [&](const auto& fold) {
            if constexpr (requires { fold.scratch; }) {
              l_.storages[fold.scratch].shape = {fold.scratch_elements(l_, nest->layout)};
              l_.storages[fold.scratch].dtype = accumulator_dtype(l_.graph, fold.inst);
            }
          },
          nest->sink);
    }
  }

  // Gives scopes that end before others begin one place; where the last one ends.
  Checked scopes(Statements& list, Checked begin) {
    Checked last = begin;
    for (Statement& s : list) {
      end_ = begin;
      if (const Scope* scope = std::get_if<Scope>(&s.what))
        for (const WindowId w : scope->windows)
          if (const StorageId storage = l_.windows[w].storage();
              storage && l_.storages[storage].in_shared())
            place(l_.storages[storage]);
      const Checked inside = end_;
      Checked most = inside;
      for_each_body(s, [&](Statements& body) { most = larger(most, scopes(body, inside)); });
      last = larger(last, most);
    }
    return last;
  }

  static Checked larger(Checked a, Checked b) {
    if (!a.fits() || !b.fits()) return a.fits() ? b : a;
    return a.value() < b.value() ? b : a;
  }

  void place(Storage& s) {
    end_ = checked_align_up(end_, shared_alignment(s));
    s.shared().offset = end_.value_or(0);
    end_ += shared_bytes(s) * (s.shared().per_warpgroup ? l_.warpgroups : 1) *
            (s.shared().per_warp ? graph::num_warps : 1);
  }

  [[noreturn]] void too_much() {
    (void)fits();  // says what each of its own place takes
    const Storage* largest = nullptr;
    for (const Storage& s : l_.storages)
      if (s.in_shared() && (!largest || shared_bytes(s).value_or(INT64_MAX) >
                                            shared_bytes(*largest).value_or(INT64_MAX)))
        largest = &s;
    throw SharedMemoryError(
        largest->of == graph::no_value ? l_.graph.at : l_.graph.location(largest->of),
        fmt::format(
            "kernel '{}' needs {} bytes of shared memory, sm_{} has {} per block; the "
            "largest part is {}{}: choose smaller blocks",
            l_.graph.name, end_.fits() ? std::to_string(end_.value()) : "more than 2^63",
            l_.machine.compute_capability, l_.machine.max_shared_bytes,
            graph::to_string(graph::Type::value(largest->dtype, largest->shape)),
            largest->of == graph::no_value ? "" : " for " + description_of(l_.graph, largest->of)));
  }

  Program& l_;
  Checked end_ = 0;
};

}  // namespace

Checked unshared_bytes(const Program& l) {
  Program copy = l;
  return SharedMemory(copy).bytes();
}

StorageId sent_behind_loops(const Program& l) {
  StorageId found;
  if (std::ranges::count(l.storages, true, &Storage::is_sent) != 1 || l.bodies.size() > 1)
    return {};
  for (const Statement& s : l.bodies[0].agents[0].statements) {
    if (repeats(s)) found = {};
    if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->from.storage)
      found = c->from.storage;
  }
  return found;
}

bool stages_too_much(const Program& l) {
  if (std::ranges::none_of(l.windows, [](const Window& w) { return w.is_staged(); })) return false;
  Program copy = l;
  return !SharedMemory(copy).fits();
}

// A pattern of panels repeats after 8 rows.

void place_shared_memory(Program& l) { SharedMemory(l).run(); }

}  // namespace palladium::passes
