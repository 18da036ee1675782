// The engine against an oracle that keeps every event and compares every pair of accesses.
#include <algorithm>
#include <array>
#include <bitset>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "codegen/base/format.hpp"
#include "runtime/race/shadow.hpp"

using namespace palladium::race;

namespace {

constexpr std::size_t memory_bytes = 48, max_accesses = 160;

/// Accesses and fences are numbered; everybody keeps the set of all that happened before and of all
/// accesses that were fenced for the async proxy before.
class Oracle {
 public:
  using Set = std::bitset<max_accesses>;
  struct Past {
    Set happened;
    std::array<Set, spaces> fenced;
    std::vector<bool> fences = {};
    Past operator|(const Past& other) const {
      Past both = *this;
      both.happened |= other.happened;
      for (std::size_t s = 0; s < spaces; ++s) both.fenced[s] |= other.fenced[s];
      both.fences.resize(std::max(fences.size(), other.fences.size()));
      for (std::size_t f = 0; f < other.fences.size(); ++f)
        if (other.fences[f]) both.fences[f] = true;
      return both;
    }
  };

  explicit Oracle(bool strict) : strict_(strict) {}

  void add_agent(Group group, Proxy through) {
    now_.emplace_back(), own_.emplace_back();
    groups_.push_back(group), through_.push_back(through);
  }

  Past release(Agent a) const { return now_[a]; }
  Past released(Agent a) const {
    return only(now_[a], own_[a], [&](const Fence& f) { return f.agent == a; });
  }
  Past only_async(const Past& s) const {
    Set async;
    for (std::size_t i = 0; i < events_.size(); ++i)
      async[i] = through_[events_[i].access.agent] == Proxy::async;
    Past past = only(s, async, [&](const Fence& f) { return through_[f.agent] == Proxy::async; });
    past.fenced = {};
    return past;
  }
  void acquire(Agent a, const Past& s) { now_[a] = now_[a] | s; }
  void restart(Agent a, const Past& s) { now_[a] = s; }
  void fence(Agent a, Spaces which) {
    for (std::size_t s = 0; s < spaces; ++s) {
      if ((which >> s & 1) == 0) continue;
      now_[a].fenced[s] |= strict_ ? now_[a].happened & own_[a] : now_[a].happened;
    }
    if ((which & palladium::race::only(Space::global)) == 0) return;
    now_[a].fences.resize(fences_.size() + 1);
    now_[a].fences.back() = true;
    fences_.push_back({a, now_[a].happened});
  }

  struct Partner {
    Access earlier;
    std::size_t byte;
    bool missing_fence;
  };
  /// All accesses with which this one races, for each byte.
  std::vector<Partner> access(Space space, std::size_t offset, std::size_t bytes,
                              const Access& access, const std::vector<Past>& checked_with) {
    Event q{access, space, offset, bytes, checked_with, now_[access.agent].happened};
    std::vector<Partner> races;
    for (std::size_t byte = offset; byte < offset + bytes; ++byte) {
      for (std::size_t p = 0; p < events_.size(); ++p) {
        if (!events_[p].touches(space, byte) || !conflict(events_[p].access, access)) continue;
        const bool ordered = happened_before(p, q);
        if ((ordered && fenced(p, q)) || overwritten(p, q, byte)) continue;
        races.push_back({events_[p].access, byte, ordered});
      }
    }
    REQUIRE(events_.size() < max_accesses);
    now_[access.agent].happened[events_.size()] = true;
    own_[access.agent][events_.size()] = true;
    events_.push_back(std::move(q));
    return races;
  }

 private:
  struct Event {
    Access access;
    Space space;
    std::size_t offset, bytes;
    std::vector<Past> checked_with;
    Set own_past;

    bool touches(Space s, std::size_t byte) const {
      return s == space && offset <= byte && byte < offset + bytes;
    }
  };
  struct Fence {
    Agent agent;
    Set happened;
  };

  template <class Keep>
  Past only(Past past, const Set& accesses, Keep keep) const {
    past.happened &= accesses;
    for (Set& fenced : past.fenced) fenced &= accesses;
    for (std::size_t f = 0; f < past.fences.size(); ++f)
      past.fences[f] = past.fences[f] && keep(fences_[f]);
    return past;
  }

  bool reaches(const Access& from, Agent to) const {
    const Group mine = groups_[from.agent], theirs = groups_[to];
    return from.scope == Scope::device || mine == theirs ||
           (from.scope == Scope::cluster && mine.cluster == theirs.cluster);
  }
  bool conflict(const Access& a, const Access& b) const {
    if (a.kind == Kind::write || b.kind == Kind::write || a.kind != b.kind) return true;
    return a.kind == Kind::atomic &&
           (a.proxy != b.proxy || !reaches(a, b.agent) || !reaches(b, a.agent));
  }
  bool happened_before(std::size_t p, const Event& q) const {
    if (events_[p].access.agent == q.access.agent && q.own_past[p]) return true;
    return std::all_of(q.checked_with.begin(), q.checked_with.end(),
                       [&](const Past& known) { return known.happened[p]; });
  }
  bool fenced(std::size_t p, const Event& q) const {
    const Access& earlier = events_[p].access;
    if (q.access.proxy == Proxy::generic || earlier.kind == Kind::read) return true;
    if (earlier.proxy == Proxy::async &&
        (q.space == Space::shared || groups_[earlier.agent] == groups_[q.access.agent]))
      return true;
    return std::all_of(q.checked_with.begin(), q.checked_with.end(), [&](const Past& known) {
      return earlier.proxy == Proxy::async ? admitted(p, q, known)
                                           : known.fenced[static_cast<std::size_t>(q.space)][p];
    });
  }
  /// Whether the block of q fenced what it knew of p.
  bool admitted(std::size_t p, const Event& q, const Past& known) const {
    for (std::size_t f = 0; f < known.fences.size(); ++f)
      if (known.fences[f] && fences_[f].happened[p] &&
          groups_[fences_[f].agent] == groups_[q.access.agent])
        return true;
    return false;
  }
  /// Whether a write between the two is ordered with both.
  bool overwritten(std::size_t p, const Event& q, std::size_t byte) const {
    for (std::size_t w = p + 1; w < events_.size(); ++w)
      if (events_[w].touches(q.space, byte) && events_[w].access.kind == Kind::write &&
          happened_before(p, events_[w]) && fenced(p, events_[w]) && happened_before(w, q) &&
          fenced(w, q))
        return true;
    return false;
  }

  bool strict_;
  std::vector<Event> events_;
  std::vector<Fence> fences_;
  std::vector<Past> now_;
  std::vector<Set> own_;
  std::vector<Group> groups_;
  std::vector<Proxy> through_;
};

/// A random program, on engine and oracle at once.
class Program {
 public:
  Program(std::uint64_t seed, bool strict)
      : random_(seed), engine_({.strict_fences = strict}), oracle_(strict) {
    threads_ = 2 + below(3);
    units_ = 1 + below(3);
    ordered_ = below(20);
    many_ = below(16) == 0 ? 40 : 0;  // so that cells overflow
    threads_ += many_;
    const std::uint32_t blocks = 1 + below(3);
    for (std::uint32_t a = 0; a < threads_ + units_; ++a) {
      const std::uint32_t block = below(blocks);
      const Group group = {.cluster = block / 2, .block = block};
      const Proxy through = a < threads_ ? Proxy::generic : Proxy::async;
      engine_.add_agent(group, through);
      oracle_.add_agent(group, through);
    }
    snapshots_.emplace_back();
  }

  /// Whether there was a race; it ends there.
  bool run() {
    const std::uint32_t length = 10 + below(many_ ? 120 : 70), sync = 1 + below(5);
    for (std::uint32_t i = 0; i < length; ++i) {
      if (below(6) < sync) {
        synchronise();
      } else if (step()) {
        return true;
      }
    }
    return false;
  }

 private:
  struct Known {
    Snapshot snapshot;
    Oracle::Past past;
  };

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  Agent thread() { return below(threads_); }
  Agent anybody() { return below(threads_ + units_); }

  Known release(Agent a) { return {engine_.release(a), oracle_.release(a)}; }
  Known released(Agent a) { return {engine_.released(a), oracle_.released(a)}; }
  Known join(const Known& a, const Known& b) {
    return {engine_.join(a.snapshot, b.snapshot), a.past | b.past};
  }
  void acquire(Agent a, const Known& k) {
    engine_.acquire(a, k.snapshot);
    oracle_.acquire(a, k.past);
  }
  Known only_async(const Known& k) {
    return {engine_.only_async(k.snapshot), oracle_.only_async(k.past)};
  }
  void fence(Agent a, Spaces which = all_spaces) {
    engine_.fence_async(a, which);
    oracle_.fence(a, which);
  }
  void restart(Agent a, const Known& k) {
    engine_.restart(a, k.snapshot);
    oracle_.restart(a, k.past);
  }
  const Known& old() { return snapshots_[below(static_cast<std::uint32_t>(snapshots_.size()))]; }
  void keep(Known k) {
    if (snapshots_.size() < 6) {
      snapshots_.push_back(std::move(k));
    } else {
      snapshots_[below(6)] = std::move(k);
    }
  }

  void forget() {
    std::vector<Snapshot*> kept;
    for (Known& k : snapshots_) kept.push_back(&k.snapshot);
    engine_.forget_all_but(kept);
  }

  void synchronise() {
    if (below(16) == 0) forget();
    switch (below(10)) {
    case 0: {  // a barrier of some threads, some of which do not wait
      Known all;
      std::vector<Agent> waiting;
      const std::uint32_t skipped = below(2) == 0 ? 1 + below(5) : 1000;
      for (Agent a = 0; a < threads_; ++a) {
        if (below(skipped) == 0 && skipped != 1000) continue;
        all = join(all, release(a));
        if (below(skipped) != 0) waiting.push_back(a);
      }
      for (const Agent a : waiting) acquire(a, all);
      break;
    }
    case 1: acquire(anybody(), release(anybody())); break;
    case 2: keep(below(2) == 0 ? release(anybody()) : released(anybody())); break;
    case 3: acquire(anybody(), old()); break;
    case 4: keep(join(old(), below(2) == 0 ? old() : release(anybody()))); break;
    case 5:
    case 6: fence(anybody(), static_cast<Spaces>(1 + below(all_spaces))); break;
    case 9: keep(only_async(below(2) == 0 ? old() : release(anybody()))); break;
    case 7: restart(threads_ + below(units_), below(2) == 0 ? release(thread()) : old()); break;
    case 8: {  // the completion of an operation
      const Agent unit = threads_ + below(units_);
      acquire(thread(), below(2) == 0 ? release(unit) : released(unit));
      break;
    }
    }
  }

  bool step() {
    Access access{anybody(), static_cast<Kind>(below(3)), static_cast<Proxy>(below(3) == 0),
                  next_tag_++};
    if (access.kind == Kind::atomic && below(2) == 0) access.kind = Kind::read;
    if (access.kind == Kind::atomic) access.scope = static_cast<Scope>(below(3));
    if (many_ && below(3) != 0) access = {thread(), Kind::read, Proxy::generic, access.tag};
    const auto space = static_cast<Space>(below(spaces));
    Shadow& shadow = space == Space::shared ? shared_ : global_;
    std::size_t bytes = std::size_t{1} << below(6);
    std::size_t offset = below(memory_bytes / 2) / bytes * bytes;
    if (below(8) == 0) bytes = 1 + below(20), offset = below(24);
    bytes = std::min(bytes, memory_bytes - offset);
    if (access.agent >= threads_ && below(2) == 0) restart(access.agent, release(thread()));

    if (below(20) < ordered_) {
      Known all;
      for (Agent a = 0; a < threads_ + units_; ++a) {
        fence(a);
        all = join(all, release(a));
      }
      acquire(access.agent, all);
      for (Agent a = threads_; a < threads_ + units_; ++a) acquire(a, all);
    }
    std::vector<Oracle::Past> pasts;
    std::optional<Race> race;
    const std::uint32_t how = access.agent >= threads_ ? below(3) : 0;
    if (how == 0) {
      pasts.push_back(oracle_.release(access.agent));
      race = shadow.access(offset, bytes, access);
    } else if (how == 1) {
      std::vector<Agent> issuers;
      for (std::uint32_t i = 0; i < 1 + below(2); ++i) issuers.push_back(anybody());
      for (const Agent a : issuers) pasts.push_back(oracle_.release(a));
      race = shadow.access(offset, bytes, access, issuers);
    } else {
      const Known k = below(2) == 0 ? release(anybody()) : old();
      pasts.push_back(k.past);
      const std::vector<Snapshot> known = {k.snapshot};
      race = shadow.access(offset, bytes, access, known);
    }

    return agree(race, oracle_.access(space, offset, bytes, access, pasts));
  }

  static bool agree(const std::optional<Race>& race, const std::vector<Oracle::Partner>& partners) {
    REQUIRE(race.has_value() == !partners.empty());
    if (!race) return false;
    // The first byte that races, and nothing but bytes that race with what is named.
    REQUIRE(race->offset == partners.front().byte);
    REQUIRE(race->bytes > 0);

    bool each = true;  // one assertion for all: there are millions
    for (std::size_t byte = race->offset; byte < race->offset + race->bytes; ++byte)
      each &= std::any_of(partners.begin(), partners.end(), [&](const Oracle::Partner& p) {
        return p.byte == byte && p.earlier.tag == race->earlier.tag &&
               p.earlier.agent == race->earlier.agent && p.earlier.kind == race->earlier.kind &&
               p.earlier.proxy == race->earlier.proxy && p.earlier.scope == race->earlier.scope &&
               p.missing_fence == race->missing_fence;
      });
    REQUIRE(each);
    return true;
  }

  std::mt19937_64 random_;
  Engine engine_;
  Shadow shared_{engine_, memory_bytes, Space::shared};
  Shadow global_{engine_, memory_bytes, Space::global};
  Oracle oracle_;
  std::vector<Known> snapshots_;
  std::uint32_t threads_ = 0, units_ = 0, many_ = 0, next_tag_ = 0;
  std::uint32_t ordered_ = 0;  // accesses of 20 that are ordered after everything
};

}  // namespace

TEST_CASE("random programs race exactly where two of their accesses are not ordered") {
  for (const bool strict : {true, false}) {
    int races = 0;
    constexpr int programs = 6000;
    for (int seed = 0; seed < programs; ++seed) {
      CAPTURE(seed, strict);
      races += Program(static_cast<std::uint64_t>(seed), strict).run();
    }
    CAPTURE(races);
    CHECK(races > programs / 4);
    CHECK(programs - races > programs / 10);
  }
}
