// Rings that turn together: of one loop, with as many slots each, turned once in each iteration and
// touched no more behind that. One number says the slot of all.
#include <algorithm>
#include <set>
#include <vector>

#include "codegen/expand/expander.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::expand {

namespace {

using lowered::Advance;

// What says of the ring's slots that they are filled, or free, stands in this storage.
bool are_barriers_of(const lowered::Program& l, StorageId storage, RingId ring) {
  return storage && std::ranges::any_of(l.barriers, [&](const lowered::Barriers& b) {
           return b.storage == storage && b.ring == ring;
         });
}

bool touches(const lowered::Program& l, const lowered::Statement& s, RingId ring) {
  return any_effect(l, s, [&](const lowered::Effect& e) {
    return e.ring == ring || (e.storage && l.storages[e.storage].ring() == ring) ||
           are_barriers_of(l, e.storage, ring) || are_barriers_of(l, e.barrier, ring);
  });
}

/// The steps of an agent's rings: how often each stands in its text, and those of one loop.
class Steps {
 public:
  Steps(const lowered::Program& l, const lowered::Statements& list)
      : l_(l), count_(l.rings.size()) {
    visit(list);
  }

  /// The number of the loop that turns the ring once in each iteration, of a rotated one where
  /// other rings of that number are turned, too, and of which nothing behind that touches it; -1:
  /// none does.
  int loop_of(RingId ring) const {
    const auto found = loop_.find(ring);
    return found != loop_.end() && found->second.steps == count_[ring] ? found->second.number : -1;
  }
  bool has(RingId ring) const { return count_[ring] > 0; }
  int count(RingId ring) const { return count_[ring]; }
  /// In the order of the text.
  const std::vector<RingId>& order() const { return order_; }

 private:
  void visit(const lowered::Statements& list) {
    for (const lowered::Statement& s : list) {
      if (const Advance* const step = std::get_if<Advance>(&s.what)) {
        ++count_[step->ring];
        order_.push_back(step->ring);
      }
      if (lowered::repeats(s) && rotation_of(s).body != nullptr) note(rotation_of(s));
      lowered::for_each_body(s, [&](const lowered::Statements& body) { visit(body); });
    }
  }

  // An iteration steps in its first part or, of what it leaves for the next one, in its last.
  void note(const lowered::Rotation& loop) {
    const int early = ++loops_, late = ++loops_;
    for (const RingId ring : steps_last(*loop.body)) {
      const bool first = loop.is_rotated() && steps_last(*loop.prologue).contains(ring);
      const bool last = loop.is_rotated() && steps_last(*loop.epilogue).contains(ring);
      if (loop.is_rotated() && first == last) continue;
      loop_[ring] = {last ? late : early, loop.is_rotated() ? 2 : 1};
    }
  }

  // The rings that step in the list, behind all that touches them there.
  std::set<RingId> steps_last(const lowered::Statements& list) const {
    std::set<RingId> found;
    for (auto s = list.begin(); s != list.end(); ++s) {
      const Advance* const step = std::get_if<Advance>(&s->what);
      if (step != nullptr && std::none_of(s + 1, list.end(), [&](const auto& behind) {
            return touches(l_, behind, step->ring);
          }))
        found.insert(step->ring);
    }
    return found;
  }

  struct Turned {
    int number = -1, steps = 1;  // of the loop; how often its text steps
  };

  const lowered::Program& l_;
  Table<RingId, int> count_;
  std::map<RingId, Turned> loop_;
  std::vector<RingId> order_;
  int loops_ = 0;
};

// The rings that step in the list itself, in order.
std::vector<RingId> steps_of(const lowered::Statements& list) {
  std::vector<RingId> rings;
  for (const lowered::Statement& s : list)
    if (const Advance* const step = std::get_if<Advance>(&s.what)) rings.push_back(step->ring);
  return rings;
}

/// Two rings, the first of which steps for the last time behind the loop, the other one for the
/// first time in front of it.
using Lag = std::pair<RingId, RingId>;

// Of the loop's iterations those rings of which the first steps in front of the other, which has
// stepped once more then.
void add_lags(const lowered::Rotation& loop, std::vector<Lag>& lags) {
  const std::vector<RingId> first = steps_of(*loop.prologue), last = steps_of(*loop.epilogue),
                            body = steps_of(*loop.body);
  for (std::size_t i = 0; i < body.size(); ++i)
    for (std::size_t j = i + 1; j < body.size(); ++j)
      if (std::ranges::count(last, body[i]) == 1 && std::ranges::count(first, body[j]) == 1)
        lags.emplace_back(body[i], body[j]);
}

void add_lags(const lowered::Statements& list, std::vector<Lag>& lags) {
  for (const lowered::Statement& s : list) {
    if (rotation_of(s).is_rotated()) add_lags(rotation_of(s), lags);
    lowered::for_each_body(s, [&](const lowered::Statements& body) { add_lags(body, lags); });
  }
}

}  // namespace

// Of all agents that turn them.
void Expander::find_turns() {
  std::vector<Steps> agents;
  for (const lowered::Body& b : l_.bodies)
    for (const lowered::Agent& a : b.agents) agents.emplace_back(l_, a.statements);
  std::map<std::vector<int>, RingId> first;  // by slots, and loops of the agents
  for (const RingId r : l_.rings.ids()) {
    const lowered::Ring& ring = l_.rings[r];
    turns_with_[r] = ring.fetched && ring.follows ? ring.follows : r;
    if (ring.follows || !ring.fetched || ring.unrolled || !ring.empty_barriers) continue;
    std::vector<int> key{ring.slots};
    for (const Steps& steps : agents) key.push_back(steps.has(r) ? steps.loop_of(r) : 0);
    if (std::ranges::count(key, -1) == 0) turns_with_[r] = first.try_emplace(key, r).first->second;
  }
}

// The number turns where the last of its rings does.
void Expander::find_last_turns(const lowered::Statements& agent) {
  last_to_turn_.clear();
  const Steps steps(l_, agent);
  for (const RingId r : steps.order()) last_to_turn_[turns_with_[r]] = r;
}

// Rings of a rotated loop, which have stepped as often when it begins as when it ends: where one is
// a step behind another, with as many slots, its next slot and phase are those of that one.
void Expander::find_lags(const lowered::Statements& agent) {
  lags_.clear();
  std::vector<Lag> lags;
  add_lags(agent, lags);
  const Steps steps(l_, agent);
  for (const auto& [ring, other] : lags) {
    const auto is_plain = [&](RingId r) {
      return l_.rings[r].fetched && !l_.rings[r].unrolled && steps.count(r) == 2 &&
             last_to_turn_[turns_with_[r]] == r;
    };
    if (!is_plain(ring) || !is_plain(other) || l_.rings[ring].slots != l_.rings[other].slots ||
        lags_.contains(ring))
      continue;
    lags_[ring] = other;
  }
}

// Of slots that products of the iteration before have read; where a loop's text goes over the slots
// of a ring it knows them.
void Expander::declare_slots_before(const lowered::Statements& agent) {
  std::set<RingId> asked, gone_over, late;
  const auto visit = [&](const auto& self, const lowered::Statements& list) -> void {
    for (const lowered::Statement& s : list) {
      if (const auto* const loop = std::get_if<lowered::Loop>(&s.what); loop && loop->ring)
        gone_over.insert(turns_with_[loop->ring]);
      if (const auto* const loop = std::get_if<lowered::GridLoop>(&s.what); loop && loop->ring)
        gone_over.insert(turns_with_[loop->ring]);
      if (const auto* const d = std::get_if<lowered::Dot>(&s.what); d && d->back > 0)
        late.insert(turns_with_[l_.storages[d->b].ring()]);
      if (const auto* const arrive = std::get_if<lowered::Arrive>(&s.what); arrive && arrive->back)
        if (const lowered::Barriers& all = l_.barriers[arrive->barrier];
            all.ring && all.along.empty())
          asked.insert(turns_with_[all.ring]);
      lowered::for_each_body(s, [&](const lowered::Statements& body) { self(self, body); });
    }
  };
  visit(visit, agent);
  for (const RingId r : asked)
    if (l_.rings[r].fetched && !l_.rings[r].unrolled && !gone_over.contains(r))
      slots_[r].before = declare_number("before", r);
  for (const RingId r : late) slots_[r].late = declare_number("late", r);
}

}  // namespace palladium::expand
