// Each step from a slot that another agent fills frees it, as soon as something waits for the
// product that read it last. A product that nothing in its iteration needs goes on across the step
// where the last one stands in the loop's epilogue, or where the loop is gone through once and
// others are filled meanwhile: that slot is freed in the next iteration, behind the first wait for
// the product, and in the epilogue, or behind a loop whose text goes over its slots, if the
// producer goes on; where the iteration steps again, in front of that. A slot that products of the
// next iteration read, too, is freed an iteration later. What threads read, too, each warp frees
// for itself, unless all threads wait for each other behind that for what one of them gives others.
#include "codegen/passes/free_slots.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/order.hpp"
#include "codegen/lowered/signals.hpp"
#include "codegen/passes/products.hpp"

namespace palladium::passes {
namespace {

using device::Completion;

class Releases {
 public:
  Releases(const Program& l, const Statements& agent) : l_(l), fills_(rings_filled(l, agent)) {
    if (std::ranges::none_of(l.rings, [](const Ring& r) { return bool(r.empty_barriers); })) return;
    needed_ = Order(l, Order::Ask::groups).missing(agent);
    find(agent, {}, false);
  }

  const std::set<RingId>& by_warps() const { return by_warps_; }

  void add(Statements& list) {
    Statements out;
    for (Statement& s : list) {
      if (const auto found = before_.find(&s); found != before_.end())
        for (const Release& r : last_first(found->second)) out.push_back({r.arrive, s.at});
      for_each_body(s, [&](Statements& body) { add(body); });
      out.push_back(std::move(s));
    }
    if (const auto found = behind_.find(&list); found != behind_.end())
      for (const Arrive& a : found->second) out.push_back({a, out.back().at});
    list = std::move(out);
  }

 private:
  // A statement, and the list that it stands in.
  struct Place {
    const Statements* list = nullptr;
    std::size_t at = 0;
    const Statement* statement() const { return list == nullptr ? nullptr : &(*list)[at]; }
  };

  // In front of a statement, for the first of so many products that are under way there.
  struct Awaited {
    const Statement* before = nullptr;
    int begun = 0;
  };
  struct Release {
    Arrive arrive;
    int begun = 0;
  };

  void find(const Statements& list, Place around, bool comes_again) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (const Advance* const a = std::get_if<Advance>(&list[i].what))
        if (l_.rings[a->ring].empty_barriers && !fills_.contains(a->ring))
          free(list, i, around, comes_again);
      const bool again = comes_again || (around.list != nullptr && repeats(*around.statement()));
      for_each_body(list[i], [&](const Statements& body) { find(body, {&list, i}, again); });
    }
  }

  void free(const Statements& list, std::size_t step, Place around, bool comes_again) {
    const RingId ring = std::get<Advance>(list[step].what).ring;
    if (const Rotation loop = rotation_around(around); reads_late(loop, ring))
      return free_late(list, loop, ring, comes_again);
    if (is_freed_by_warps(list, step, ring)) by_warps_.insert(ring);
    if (const Awaited next = begun_behind(list, step, ring); next.before != nullptr)
      return arrive(next, ring, 1);
    const int left = around.list == nullptr ? 0 : products_left(list, step, around, comes_again);
    if (left == 0) return arrive(done_behind(list, step, ring), ring, 0);
    arrive(first_wait(list, ring, left), ring, 1);
    if (!comes_again) return;
    const Rotation loop = rotation_of(*around.statement());
    arrive(loop.is_rotated() ? first_wait(*loop.epilogue, ring, left)
                             : Awaited{waits_behind(around, ring, left), left},
           ring, 1);
  }

  static Rotation rotation_around(Place around) {
    return around.list == nullptr ? Rotation() : rotation_of(*around.statement());
  }

  // Whether products that an iteration leaves for the next one read its slot.
  bool reads_late(const Rotation& loop, RingId ring) const {
    return loop.is_rotated() && late_reader(*loop.body, ring) < loop.body->size();
  }
  std::size_t late_reader(const Statements& list, RingId ring) const {
    std::size_t last = list.size();
    for (std::size_t i = 0; i < list.size(); ++i)
      if (const Dot* const d = std::get_if<Dot>(&list[i].what))
        if (d->back > 0 && l_.storages[d->b].ring() == ring) last = i;
    return last;
  }

  // Then the slot before the last that was left is free when those of the iteration before are
  // done; if the producer goes on, the last ones behind the loop.
  void free_late(const Statements& list, const Rotation& loop, RingId ring, bool comes_again) {
    if (&list != loop.body) return;
    int begun = 0;
    for (std::size_t i = late_reader(list, ring); i < list.size(); ++i) begun += is_wgmma(list[i]);
    arrive(first_wait(list, ring, begun), ring, 2);
    if (!comes_again) return;
    arrive(first_wait(*loop.epilogue, ring, begun), ring, 2);
    behind_[loop.epilogue].push_back({.barrier = l_.rings[ring].empty_barriers, .back = 1});
  }

  // Behind the last statement that is so, of those of the slot that the step leaves; 0: none is.
  template <class Is>
  static std::size_t behind_last(const Statements& list, std::size_t step, RingId ring,
                                 const Is& is) {
    for (std::size_t i = step; i > 0 && !is_step(list[i - 1], ring); --i)
      if (is(list[i - 1])) return i;
    return 0;
  }

  // The first statement in front of the step that waits for the product that read the slot last, or
  // the step.
  Awaited done_behind(const Statements& list, std::size_t step, RingId ring) const {
    const std::size_t last =
        behind_last(list, step, ring, [&](const Statement& s) { return reads(s, ring); });
    if (last == 0 || !is_wgmma(list[last - 1])) return {&list[step]};
    int begun = 1;
    for (std::size_t i = last; i < step; ++i) {
      if (awaits(list[i], begun)) return {&list[i], begun};
      begun += is_wgmma(list[i]);
    }
    return {&list[step], begun};
  }

  // Where the list steps again: the statement behind the step up to which the product that read the
  // slot may go on, if it may.
  Awaited begun_behind(const Statements& list, std::size_t step, RingId ring) const {
    if (step == 0 || !is_wgmma(list[step - 1]) || !is_worth_waiting(l_.rings[ring])) return {};
    int begun = 1;
    for (std::size_t i = step + 1; i < list.size(); ++i) {
      if (is_step(list[i], ring)) return {&list[i], begun};
      if (awaits(list[i], 1)) return {};
      begun += is_wgmma(list[i]);
    }
    return {};
  }

  // Whether threads read the slot, and none of them stores behind that what others read.
  bool is_freed_by_warps(const Statements& list, std::size_t step, RingId ring) const {
    const std::size_t last = behind_last(
        list, step, ring, [&](const Statement& s) { return reads_by_threads(s, ring); });
    if (last == 0) return false;
    std::set<StorageId> stored;
    const auto is_read = [&](const Effect& e) {
      return e.reads() && e.storage && stored.contains(e.storage);
    };
    const auto add_stored = [&](const Effect& e) {
      const bool by_threads = e.writes() && e.storage && e.proxy != device::Proxy::async;
      if (by_threads && l_.storages[e.storage].in_shared()) stored.insert(e.storage);
      return false;
    };
    for (std::size_t i = last - 1; i < step; ++i) {
      if (any_effect(l_, list[i], is_read)) return false;
      any_effect(l_, list[i], add_stored);
    }
    return true;
  }

  bool reads_by_threads(const Statement& s, RingId ring) const {
    return any_effect(l_, s, [&](const Effect& e) {
      return e.reads() && e.storage && l_.storages[e.storage].ring() == ring &&
             e.proxy != device::Proxy::async;
    });
  }

  // How many products, from the last one on that reads the slot, the iteration leaves in flight.
  int products_left(const Statements& list, std::size_t step, Place around,
                    bool comes_again) const {
    const RingId ring = std::get<Advance>(list[step].what).ring;
    const Rotation loop = rotation_of(*around.statement());
    const bool rotated = loop.is_rotated() && &list == loop.body && steps(*loop.epilogue, ring);
    const bool alone = repeats(*around.statement()) && !loop.is_rotated();
    if (!rotated && !(alone && is_worth_waiting(l_.rings[ring]))) return 0;
    const std::size_t last = behind_last(list, step, ring, [&](const Statement& s) {
      return reads(s, ring) && (!by_warps_.contains(ring) || is_wgmma(s));
    });
    if (last == 0 || !is_wgmma(list[last - 1])) return 0;
    int begun = 1;
    for (std::size_t i = last; i < list.size(); ++i) {
      const bool begins = is_wgmma(list[i]);
      if (awaits(list[i], begun) || (!begins && any_within(list[i], is_wgmma))) return 0;
      begun += begins;
    }
    if (needed_.behind.contains(&list)) return 0;
    if (alone && comes_again && waits_behind(around, ring, begun) == nullptr) return 0;
    return begun;
  }

  // The statement behind the loop, whose text goes over the slots of the ring, that waits for the
  // products it leaves in flight.
  const Statement* waits_behind(Place loop, RingId ring, int begun) const {
    if (ring_of(*loop.statement()) != ring) return nullptr;
    for (std::size_t i = loop.at + 1; i < loop.list->size(); ++i) {
      const Statement& s = (*loop.list)[i];
      if (needed_.before.contains(&s) && awaits(s, begun)) return &s;
      if (any_within(s, is_wgmma) || awaits(s, begun) ||
          any_within(s, [&](const Statement& x) { return is_step(x, ring); }))
        return nullptr;
    }
    return nullptr;
  }

  static RingId ring_of(const Statement& s) {
    if (const Loop* const l = std::get_if<Loop>(&s.what)) return l->ring;
    const GridLoop* const g = std::get_if<GridLoop>(&s.what);
    return g != nullptr ? g->ring : RingId();
  }

  // Of two slots the other one would be filled too late; of one there is none.
  static bool is_worth_waiting(const Ring& r) { return r.slots > 1 && (r.unrolled || r.slots > 2); }

  static bool is_step(const Statement& s, RingId ring) {
    const Advance* const step = std::get_if<Advance>(&s.what);
    return step != nullptr && step->ring == ring;
  }
  static bool steps(const Statements& list, RingId ring) {
    return std::ranges::any_of(list, [&](const Statement& s) { return is_step(s, ring); });
  }

  // The first wait for the first of so many products that are under way, or the step.
  Awaited first_wait(const Statements& list, RingId ring, int begun) const {
    auto s = list.begin();
    for (; std::next(s) != list.end() && !awaits(*s, begun) && !is_step(*s, ring); ++s)
      begun += is_wgmma(*s);
    return {&*s, begun};
  }

  // Whether the first of so many products has to be over in front of the statement, or within it.
  bool awaits(const Statement& s, int begun) const {
    return any_within(s, [&](const Statement& x) {
      const auto found = needed_.before.find(&x);
      if (found == needed_.before.end()) return false;
      const auto group = found->second.groups.find(Completion::wgmma_group);
      return group != found->second.groups.end() && group->second.pending < begun;
    });
  }

  bool reads(const Statement& s, RingId ring) const {
    return any_effect(l_, s, [&](const Effect& e) {
      return e.reads() && e.storage && l_.storages[e.storage].ring() == ring;
    });
  }

  void arrive(const Awaited& wait, RingId ring, int back) {
    before_[wait.before].push_back(
        {{.barrier = l_.rings[ring].empty_barriers, .back = back}, wait.begun});
  }

  // By the products that are awaited.
  static std::vector<Release> last_first(std::vector<Release> all) {
    std::ranges::reverse(all);
    std::ranges::stable_sort(all, {}, &Release::begun);
    return all;
  }

  const Program& l_;
  const std::set<RingId> fills_;
  Needed needed_ = {};  // by others than who frees slots
  std::set<RingId> by_warps_ = {};
  std::map<const Statements*, std::vector<Arrive>> behind_ = {};
  /// Of several the last product is awaited first, since ptxas has to see all of them done before
  /// what they touch is touched.
  std::map<const Statement*, std::vector<Release>> before_ = {};
};

}  // namespace

void free_slots(Program& l, Statements& agent) {
  Releases releases(l, agent);
  for (const RingId r : releases.by_warps()) l.barriers[l.rings[r].empty_barriers].by_warps = true;
  releases.add(agent);
}

}  // namespace palladium::passes
