#include "codegen/lowered/signals.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/format.hpp"

namespace palladium::lowered {
namespace {

class Signals {
 public:
  explicit Signals(const Program& l) : l_(l) {
    for_each_list(l, [&](const Statements& list) { find(list); });
  }

  SignalDefect run() {
    for_each_list(l_, [&](const Statements& list) {
      fills_ = rings_filled(l_, list);
      Heard heard;
      walk(list, heard);
    });
    return std::move(found_);
  }

 private:
  // What is known since the slot, or the copies, of a barrier were the ones that they are.
  struct Heard {
    std::set<BarrierId> awaited = {}, expected = {};
    std::set<RingId> freed = {};

    void only_with(const Heard& other) {
      keep(awaited, other.awaited);
      keep(expected, other.expected);
      keep(freed, other.freed);
    }
    template <class Id>
    static void keep(std::set<Id>& all, const std::set<Id>& other) {
      std::erase_if(all, [&](const Id& id) { return !other.contains(id); });
    }
    bool operator==(const Heard&) const = default;
  };

  void find(const Statements& list) {
    find_freed_behind(list);
    for (const Statement& s : list) {
      if (const Copy* const c = std::get_if<Copy>(&s.what); c && c->completes && !c->by_hand)
        filled_[c->completes].insert(c->to.storage);
      if (const Dot* const d = std::get_if<Dot>(&s.what); d && d->back > 0)
        read_late_.insert(l_.storages[d->b].ring());
      for_each_body(s, [&](const Statements& body) { find(body); });
    }
  }

  // Slots that are left, and freed in front of the next step of the list.
  void find_freed_behind(const Statements& list) {
    std::map<RingId, const Statement*> left;
    for (const Statement& s : list) {
      if (const Advance* const a = std::get_if<Advance>(&s.what)) left[a->ring] = &s;
      const Arrive* const a = std::get_if<Arrive>(&s.what);
      if (a == nullptr || a->bytes > 0 || a->back == 0) continue;
      if (const auto of = left.find(l_.barriers[a->barrier].ring); of != left.end()) {
        freed_behind_.insert({of->second, &s});
        left.erase(of);
      }
    }
  }

  // ---- ways

  void walk(const Statements& list, Heard& heard) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      expect(list, i);
      step(list[i], heard);
      inside(list[i], heard);
    }
    for (const Statement& s : list) leaves(list, s);
  }

  void inside(const Statement& s, Heard& heard) {
    if (std::holds_alternative<Lead>(s.what) || std::holds_alternative<Ahead>(s.what)) {
      const bool ahead = std::exchange(ahead_, true);
      for_each_body(s, [&](const Statements& body) { walk(body, heard); });
      ahead_ = ahead;
    } else if (repeats(s)) {
      loop(s, heard);
    } else if (std::holds_alternative<Scope>(s.what) || std::holds_alternative<Warps>(s.what) ||
               std::holds_alternative<Elected>(s.what)) {
      for_each_body(s, [&](const Statements& body) { walk(body, heard); });
    } else {
      branches(s, heard);
    }
  }

  void branches(const Statement& s, Heard& heard) {
    const Heard before = heard;
    bool first = !std::holds_alternative<When>(s.what) && !std::holds_alternative<IfMasked>(s.what);
    for_each_body(s, [&](const Statements& body) {
      Heard way = before;
      walk(body, way);
      if (std::exchange(first, false))
        heard = std::move(way);
      else
        heard.only_with(way);
    });
  }

  void loop(const Statement& s, Heard& heard) {
    const Rotation rotation = rotation_of(s);
    const While* const tested = std::get_if<While>(&s.what);
    const Heard before = heard;
    if (rotation.is_rotated()) {
      const Rotation outer = std::exchange(first_, rotation);
      walk(*rotation.prologue, heard);
      first_ = outer;
    }
    for (Heard known = heard;; known = heard) {
      if (tested != nullptr) walk(tested->test, known);
      walk(tested != nullptr ? tested->body : *rotation.body, known);
      Heard both = heard;
      both.only_with(known);
      if (std::exchange(heard, both) == both) break;
    }
    if (rotation.is_rotated()) walk(*rotation.epilogue, heard);
    heard.only_with(before);
  }

  // ---- statements

  void step(const Statement& s, Heard& heard) {
    if (const Wait* const w = std::get_if<Wait>(&s.what)) {
      heard.awaited.insert(w->barrier);
    } else if (const Arrive* const a = std::get_if<Arrive>(&s.what)) {
      arrive(*a, s, heard);
    } else if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->completes) {
      if (!l_.barriers[c->completes].ring) heard.awaited.erase(c->completes);
    } else if (const Advance* const a = std::get_if<Advance>(&s.what)) {
      advance(a->ring, s, heard);
    } else if (!ahead_) {
      touch(s, heard);
    }
  }

  void arrive(const Arrive& a, const Statement& s, Heard& heard) {
    const RingId ring = l_.barriers[a.barrier].ring;
    if (a.bytes == 0) {
      if (!freed_behind_.contains(&s)) heard.freed.insert(ring);
      return;
    }
    heard.expected.insert(a.barrier);
    if (!fills_.contains(ring)) return;
    if (!heard.awaited.contains(l_.rings[ring].empty_barriers))
      refuse(s, "fills a slot before it waits until it is free");
  }

  void advance(RingId ring, const Statement& s, Heard& heard) {
    const BarrierId empty = l_.rings[ring].empty_barriers;
    const bool fills = fills_.contains(ring);
    for (const auto& [barrier, _] : filled_) {
      if (l_.barriers[barrier].ring != ring) continue;
      if (fills ? heard.expected.erase(barrier) == 0 : heard.awaited.erase(barrier) == 0)
        refuse(s, fills ? "leaves a slot that nobody fills"
                        : "leaves a slot for whose copies nobody waits");
    }
    // The next iterations free what a rotated loop's first one leaves.
    const bool is_freed_later = first_.is_rotated() && read_late_.contains(ring);
    if (fills)
      heard.awaited.erase(empty);
    else if (empty && !is_freed_later && !freed_behind_.contains(&s) &&
             heard.freed.erase(ring) == 0)
      refuse(s, "leaves a slot that nobody frees");
  }

  void touch(const Statement& s, const Heard& heard) {
    if (filled_.empty()) return;
    for (const Effect& e : effects(l_, s))
      for (const auto& [barrier, storages] : filled_)
        if (e.storage && e.back == 0 && storages.contains(e.storage) &&
            !heard.awaited.contains(barrier))
          refuse(s, fmt::format("touches s{} before it waits for who fills it", e.storage));
  }

  // ---- lists

  // The copies that stand behind what expects them.
  void expect(const Statements& list, std::size_t at) {
    const Copy* const copy = std::get_if<Copy>(&list[at].what);
    const Arrive* const arrive = std::get_if<Arrive>(&list[at].what);
    if (copy != nullptr && copy->by_hand) return;
    if (arrive != nullptr && l_.barriers[arrive->barrier].by_hand) return;
    if (copy != nullptr && copy->completes) {
      std::size_t first = at;
      while (first > 0 && completes(list[first - 1], copy->completes)) --first;
      const Arrive* const told = first > 0 ? std::get_if<Arrive>(&list[first - 1].what) : nullptr;
      if (told == nullptr || told->barrier != copy->completes)
        refuse(list[at], "brings bytes that nobody expects");
    }
    if (arrive == nullptr || arrive->bytes == 0) return;
    std::int64_t bytes = 0;
    for (std::size_t i = at + 1; i < list.size() && completes(list[i], arrive->barrier); ++i) {
      const Storage& to = l_.storages[std::get<Copy>(list[i].what).to.storage];
      bytes += graph::element_count(to.shape) * to.dtype.bytes();
    }
    if (bytes != arrive->bytes)
      refuse(list[at],
             fmt::format("expects {} bytes, of which {} are copied", arrive->bytes, bytes));
  }

  static bool completes(const Statement& s, BarrierId barrier) {
    const Copy* const c = std::get_if<Copy>(&s.what);
    return c != nullptr && c->completes == barrier;
  }

  // Who waits for a slot, or fills one ahead, goes on to the next in the same list; the first
  // iteration of a rotated loop leaves that to the next one.
  void leaves(const Statements& list, const Statement& s) {
    RingId ring;
    if (const Wait* const w = std::get_if<Wait>(&s.what)) ring = l_.barriers[w->barrier].ring;
    if (const Ahead* const a = std::get_if<Ahead>(&s.what); a != nullptr && !ahead_) ring = a->ring;
    if (!ring) return;
    const auto steps = [&](const Statements& there) {
      return std::ranges::any_of(there, [&](const Statement& other) {
        const Advance* const a = std::get_if<Advance>(&other.what);
        return a != nullptr && a->ring == ring;
      });
    };
    if (!steps(list) && !(&list == first_.prologue && steps(*first_.body)))
      refuse(s, fmt::format("is of a slot of r{} that nobody leaves", ring));
  }

  void refuse(const Statement& s, std::string what) {
    if (found_.what.empty()) found_ = {&s, std::move(what)};
  }

  const Program& l_;
  std::map<BarrierId, std::set<StorageId>> filled_;
  std::set<const Statement*> freed_behind_;  // steps from such slots, and what frees these
  std::set<RingId> fills_ = {};              // for others
  std::set<RingId> read_late_ = {};          // by products of the next iteration, too
  Rotation first_ = {};                      // of which the first iteration is looked at
  bool ahead_ = false;                       // in copies for iterations to come
  SignalDefect found_;
};

void find_filled(const Program& l, const Statements& list, std::set<RingId>& found) {
  for (const Statement& s : list) {
    const Copy* const c = std::get_if<Copy>(&s.what);
    if (c != nullptr && c->completes && l.barriers[c->completes].ring)
      found.insert(l.barriers[c->completes].ring);
    if (!std::holds_alternative<Lead>(s.what) && !std::holds_alternative<Ahead>(s.what))
      for_each_body(s, [&](const Statements& body) { find_filled(l, body, found); });
  }
}

}  // namespace

std::set<RingId> rings_filled(const Program& l, const Statements& agent) {
  std::set<RingId> found;
  find_filled(l, agent, found);
  return found;
}

SignalDefect signal_defect(const Program& l) {
  return l.rings.empty() && l.barriers.empty() ? SignalDefect() : Signals(l).run();
}

}  // namespace palladium::lowered
