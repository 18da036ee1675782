// Gives every storage in shared memory its offset: one of its own or one that it shares with
// storages that hold nothing meanwhile; what threads fill shares only where a block has not that
// much, since they would wait for each other. Where they exchange a value, in no loop, they do so
// anyway.
//
// Precondition: assign_layouts, which adds staging and scratch.
#include <algorithm>
#include <optional>
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
    place_all(Sharing::none);
    return end_;
  }

  /// What they take where that is free.
  Checked placed() {
    (void)fits();
    return end_;
  }

  /// What TMA reads and writes may lie where others have been; that is free.
  bool fits() { return place_all(Sharing::asynchronous); }
  /// Warpgroups have copies, and wait for themselves alone: theirs would meet.
  bool fits_shared() { return l_.warpgroups == 1 && place_all(Sharing::all); }

 private:
  enum class Sharing : std::uint8_t { none, asynchronous, all };

  Storage& storage(StorageId s) { return l_.storages[s]; }

  // Scratch of values that change their layouts where no loop is around, and what copies fill that
  // it may take the place of, once that has been read: threads wait for each other then, as they do
  // in any exchange. For one that comes behind another they do where there is no room beside it.
  struct Exchanges {
    std::set<StorageId> scratch = {}, copied = {};
    bool have(StorageId s) const {
      return !scratch.empty() && !copied.empty() && (scratch.contains(s) || copied.contains(s));
    }
  };

  /// Who may share.
  struct Sharers {
    Sharing sharing = Sharing::none;
    Lives lives;
    Exchanges exchanges = {};
  };

  bool shares(const Sharers& by, StorageId s) const {
    const bool is_such = is_asynchronous(l_.storages[s]) || by.exchanges.have(s);
    return by.lives.has(s) &&
           (by.sharing == Sharing::all || (by.sharing == Sharing::asynchronous && is_such));
  }

  // Whether the second may lie where the first has been, whose life it does not meet.
  bool may_follow(const Sharers& by, StorageId one, StorageId other) const {
    if (by.lives.meet(one, other)) return false;
    const bool both = is_asynchronous(l_.storages[one]) && is_asynchronous(l_.storages[other]);
    return by.sharing == Sharing::all || both ||
           (by.exchanges.scratch.contains(other) &&
            by.lives.of(one).last < by.lives.of(other).first);
  }

  // Storages whose lives do not meet take one place, of those that share.
  bool place_all(Sharing sharing) {
    for_each_list(l_, [&](Statements& list) { scratch_sizes(list); });
    end_ = 0;
    const Sharers by{sharing, Lives(l_),
                     sharing == Sharing::asynchronous ? find_exchanges() : Exchanges{}};
    const std::set<StorageId> alone = never_shared();
    std::vector<StorageId> together, apart;
    for (const StorageId s : unscoped())
      (shares(by, s) && !alone.contains(s) ? together : apart).push_back(s);
    for (const StorageId s : together)
      if (!shared_bytes(storage(s)).within(0, l_.machine.max_shared_bytes)) return false;
    // Addresses of barriers are often asked for: those near the begin are instructions' constants.
    const auto others =
        std::ranges::stable_partition(apart, [&](StorageId s) { return is_of_barriers(s); });
    for (const StorageId s : std::ranges::subrange(apart.begin(), others.begin()))
      place(storage(s));
    place_together(by, std::move(together));
    for (const StorageId s : others) place(storage(s));
    for_each_list(l_, [&](Statements& list) { end_ = scopes(list, end_); });
    return end_.within(0, l_.machine.max_shared_bytes);
  }

  // In the order in which they are needed, each as near to the begin as may be.
  void place_together(const Sharers& by, std::vector<StorageId> all) {
    const Checked begin = end_;
    Checked last = begin;
    std::ranges::stable_sort(all, {}, [&](StorageId s) { return by.lives.of(s).first; });
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::span<const StorageId> placed = std::span(all).first(i);
      const std::optional<Checked> beside = beside_exchanges(by, all[i], placed, begin, last);
      end_ = beside ? *beside : lowest(begin, storage(all[i]), placed, [&](StorageId other) {
        return !may_follow(by, other, all[i]);
      });
      place(storage(all[i]));
      last = larger(last, end_);
    }
    end_ = last;
  }

  // Where scratch comes before those that are placed end, without another exchange's place.
  std::optional<Checked> beside_exchanges(const Sharers& by, StorageId s,
                                          std::span<const StorageId> placed, Checked begin,
                                          Checked end) {
    const std::set<StorageId>& scratch = by.exchanges.scratch;
    if (!scratch.contains(s)) return {};
    const Checked at = lowest(begin, storage(s), placed, [&](StorageId other) {
      return scratch.contains(other) || by.lives.meet(other, s);
    });
    const Checked last = at + shared_bytes(storage(s));
    return last.fits() && end.fits() && last.value() <= end.value() ? std::optional(at)
                                                                    : std::nullopt;
  }

  static bool is_asynchronous(const Storage& s) { return s.is_fetched() || s.is_sent(); }

  bool is_of_barriers(StorageId s) const {
    return std::ranges::any_of(l_.barriers, [&](const Barriers& b) { return b.storage == s; });
  }

  // None where products of wgmma read on, meanwhile.
  Exchanges find_exchanges() const {
    Exchanges found;
    if (l_.warpgroups > 1 || l_.wgmma_products > 0) return found;
    for (const StorageId s : l_.storages.ids())
      if (l_.storages[s].is_fetched()) found.copied.insert(l_.room_of(s));
    const auto visit = [&](const auto& self, const Statements& list, bool in_loop) -> void {
      for (const Statement& s : list) {
        const Relayout* const r = std::get_if<Relayout>(&s.what);
        if (r != nullptr && r->scratch && !in_loop) found.scratch.insert(r->scratch);
        const LoopNest* const p = std::get_if<LoopNest>(&s.what);
        const Stage* const copied = p == nullptr ? nullptr : std::get_if<Stage>(&p->sink);
        if (copied != nullptr && copied->by.asynchronous)
          found.copied.insert(l_.room_of(copied->storage));
        for_each_body(s, [&](const Statements& body) { self(self, body, in_loop || repeats(s)); });
      }
    };
    for (const Body& b : l_.bodies)
      for (const Agent& a : b.agents) visit(visit, a.statements, false);
    return found;
  }

  // Windows live as long as the program, barriers as long as the block.
  std::set<StorageId> never_shared() const {
    std::set<StorageId> found;
    for (const Window& w : l_.windows)
      if (w.storage()) found.insert(w.storage());
    for (const Barriers& b : l_.barriers) found.insert(b.storage);
    return found;
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
              storage && l_.storages[storage].in_shared() && l_.room_of(storage) == storage)
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
    (void)bytes();
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

Checked placed_bytes(const Program& l) {
  Program copy = l;
  return SharedMemory(copy).placed();
}

bool fits_shared_memory(const Program& l) {
  Program copy = l;
  SharedMemory memory(copy);
  return memory.fits() || memory.fits_shared();
}

bool stages_too_much(const Program& l) {
  if (std::ranges::none_of(l.windows, [](const Window& w) { return w.is_staged(); })) return false;
  Program copy = l;
  return !SharedMemory(copy).fits();
}

// A pattern of panels repeats after 8 rows.

void place_shared_memory(Program& l) { SharedMemory(l).run(); }

}  // namespace palladium::passes
