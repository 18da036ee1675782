// What happened before what: every agent's knowledge of every other agent's accesses, carried along
// by whatever synchronises them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "palladium/error.hpp"
#include "runtime/race/clock.hpp"

namespace palladium::race {

/// Who accesses memory: a thread, or an asynchronous unit such as a copy engine. Dense.
using Agent = std::uint32_t;

/// The way to memory: fence.proxy.async makes generic writes visible to the async proxy.
enum class Proxy : std::uint8_t { generic, async };

/// Atomics conflict with plain accesses, and with each other where they go through different
/// proxies or where the scope of one leaves out the other.
enum class Kind : std::uint8_t { read, write, atomic };

/// With whom an atomic is atomic.
enum class Scope : std::uint8_t { device, cluster, block };

struct Access {
  Agent agent = 0;
  Kind kind = Kind::read;
  Proxy proxy = Proxy::generic;
  std::uint32_t tag = 0;        ///< the caller's, for example a line; at most 65,535 different ones
  Scope scope = Scope::device;  ///< of an atomic
  /// The access was made before its agent began again (see Engine::begin_again).
  bool former = false;
};

/// Where an agent is: what scopes speak of.
struct Group {
  std::uint32_t cluster = 0, block = 0;
  bool operator==(const Group&) const = default;
};

/// What somebody knows: of every agent, up to where everything that it did happened before, and up
/// to where its generic writes were made visible to the async proxy. Immutable; equal ids are equal
/// knowledge, and id 0 knows nothing. Valid until Engine::reset or forget_all_but.
struct Snapshot {
  std::uint32_t id = 0;
  bool operator==(const Snapshot&) const = default;
};

/// An access as shadow memory keeps it; 0 for none.
struct Record {
  std::uint64_t bits = 0;

  static constexpr int epoch_bits = 25, timeline_bits = 19, tag_bits = 16;
  static constexpr std::uint64_t epoch_mask = (std::uint64_t{1} << epoch_bits) - 1;
  static constexpr int timeline_shift = epoch_bits, proxy_shift = timeline_shift + timeline_bits,
                       kind_shift = proxy_shift + 1, tag_shift = kind_shift + 3;
  /// Timeline, proxy, kind and scope.
  static constexpr std::uint64_t source_mask =
      (std::uint64_t{1} << tag_shift) - (std::uint64_t{1} << timeline_shift);

  bool empty() const { return bits == 0; }
  Epoch epoch() const { return static_cast<Epoch>(bits & epoch_mask); }
  Timeline timeline() const {
    return static_cast<Timeline>(bits >> timeline_shift & ((1u << timeline_bits) - 1));
  }
  Proxy proxy() const { return static_cast<Proxy>(bits >> proxy_shift & 1); }
  /// 3 for what is no access.
  std::uint32_t kind() const { return narrow() ? 2 : kind_and_scope(); }
  /// Of an atomic.
  Scope scope() const {
    return narrow() ? static_cast<Scope>(kind_and_scope() - 3) : Scope::device;
  }
  std::uint32_t kind_and_scope() const { return bits >> kind_shift & 7; }
  static constexpr std::uint32_t kind_and_scope(Kind kind, Scope scope) {
    const bool narrow = kind == Kind::atomic && scope != Scope::device;
    return narrow ? 3 + static_cast<std::uint32_t>(scope) : static_cast<std::uint32_t>(kind);
  }
  bool narrow() const { return (bits >> kind_shift & 4) != 0; }
  std::uint32_t tag_number() const { return static_cast<std::uint32_t>(bits >> tag_shift); }
  /// An access by the same agent in the same way: the later one stands for both.
  bool same_source(Record other) const { return ((bits ^ other.bits) & source_mask) == 0; }
  bool operator==(const Record&) const = default;
};

/// What an access is checked with.
struct View {
  const Clock* clock = nullptr;
  Timeline self = ~Timeline{0};  // its own past is known,
  Epoch since = 0;               // from here on
  PerSpace self_fenced = {};

  bool knows(Timeline t, Epoch e) const {
    return (t == self && e >= since) || e <= clock->happened(t);
  }
  bool knows(Record r) const { return knows(r.timeline(), r.epoch()); }
  bool knows_fenced(Space s, Record r) const {
    return r.epoch() <= clock->fenced(s, r.timeline()) ||
           (r.timeline() == self && r.epoch() >= since &&
            r.epoch() <= self_fenced[static_cast<int>(s)]);
  }
};

/// Threads release what they did and acquire what others released; a barrier joins what arrives and
/// hands it to who leaves. An asynchronous operation is an agent of its own: `restart` it with what
/// its issuer released, check and record its accesses at once, and give `release` (or `released`)
/// of it to whoever waits for its completion.
///
/// Used by one OS thread at a time.
class Engine {
 public:
  struct Options {
    /// fence.proxy.async counts for the writes of the thread that executes it only; else for all
    /// that the thread knows.
    bool strict_fences = true;
    /// From so many timelines on, operations go on with those that they have.
    std::uint32_t most_timelines = 3 << (Record::timeline_bits - 2);
  };
  Engine();
  explicit Engine(Options options);
  Engine(const Engine&) = delete;

  /// `through`: the proxy of all that it will do.
  Agent add_agent(Group group = {}, Proxy through = Proxy::generic);
  /// One that accesses no memory: its epochs stand for what threads have seen, which other threads
  /// may learn of by ways that order no accesses (see only_async, only_witnesses).
  Agent add_witness();
  std::uint32_t agents() const { return static_cast<std::uint32_t>(agents_.size()); }

  /// `a` did something of which others may learn, though it accessed nothing.
  void touch(Agent a) { state(a).touched = true; }
  /// All that `a` knows and did so far; what it does later is not covered.
  Snapshot release(Agent a);
  /// Only what `a` itself did so far (since `restart`).
  Snapshot released(Agent a);
  /// From now on `a` knows what `s` knows.
  void acquire(Agent a, Snapshot s);
  /// What either knows.
  Snapshot join(Snapshot a, Snapshot b);
  /// What `s` knows of agents that go through the async proxy, and of witnesses.
  Snapshot only_async(Snapshot s);
  /// What `s` knows of witnesses.
  Snapshot only_witnesses(Snapshot s);
  /// What `s` knows, as if everybody in it had executed fence.proxy.async for these spaces.
  Snapshot fenced(Snapshot s, Spaces spaces);
  /// `a` executed fence.proxy.async for these spaces.
  void fence_async(Agent a, Spaces spaces = all_spaces);
  /// `a` becomes another operation, which knows `s` and nothing else. What it did before stays
  /// history that others know or do not know, as before.
  void restart(Agent a, Snapshot s);
  /// `a` becomes somebody who knows nothing, in another group. What it did before is another's, but
  /// for who is told later of what it does: who knows that counts as knowing what was before too.
  void begin_again(Agent a, Group group);
  /// Whether all that `s` knows happened before what `a` does next.
  bool knows(Agent a, Snapshot s);

  /// How many snapshots there are. They take memory until `reset` or `forget_all_but`.
  std::size_t snapshots() const { return nodes_.size(); }
  /// Forgets all other snapshots and renumbers these. For runs so long that memory counts: every
  /// release and join makes one.
  void forget_all_but(std::span<Snapshot* const> kept);

  /// Forgets agents and snapshots; every Shadow must be cleared.
  void reset();

  // For shadow memory.
  Record record(const Access& access) {
    State& state = this->state(access.agent);
    state.touched = true;
    return {std::uint64_t{tag_number(access.tag)} << Record::tag_shift |
            std::uint64_t{Record::kind_and_scope(access.kind, access.scope)} << Record::kind_shift |
            static_cast<std::uint64_t>(access.proxy) << Record::proxy_shift |
            std::uint64_t{state.timeline} << Record::timeline_shift | state.epoch};
  }
  /// Whether `a` made the access, in its operation or in a former one that it knows.
  bool is_own(Agent a, Record r) { return owners_[r.timeline()].agent == a && view(a).knows(r); }
  Access access(Record record) const;
  View view(Agent a) {
    const State& state = this->state(a);
    return {state.knows, state.timeline, state.since, state.fenced};
  }
  View view(Snapshot s) { return {resolve(s)}; }
  /// Whether the scopes of two atomics, of which `mine` is by agent `a`, include each other.
  bool is_mutual(Record earlier, Agent a, Record mine) const;
  bool is_of_other_block(Record earlier, Agent a) const;
  /// From now on the engine remembers who fenced global memory knowing what: for `is_admitted`.
  void watch_fences() { watches_fences_ = true; }
  /// Whether somebody in the block of `a` executed fence.proxy.async for global memory, knowing of
  /// `earlier`, before what has this view.
  bool is_admitted(Record earlier, Agent a, const View& view) const;

 private:
  struct Owner {
    Agent agent = 0;
    Epoch born = 0;  // what was before is another's
  };
  struct ProxyFence {
    Timeline timeline = 0;
    Epoch epoch = 0;
    const Clock* knows = nullptr;
  };
  /// A timeline of an agent that it left behind: a later operation did not know its end.
  struct Past {
    Timeline timeline = 0;
    Epoch epoch = 0;  // of its last access
  };
  struct State {
    const Clock* knows = nullptr;
    Timeline timeline = 0;
    Epoch epoch = 1;
    Epoch since = 0;  // up to there the timeline is of former operations
    PerSpace fenced = {};
    Group group;
    Proxy through = Proxy::generic;
    bool touched = false;  // something was done in this epoch
    Snapshot acquired;     // last, and known since
    std::vector<Past> left;

    Epoch covered() const { return touched ? epoch : epoch - 1; }
  };
  /// A snapshot, evaluated when somebody needs it: most are only joined into others.
  struct Node {
    enum class Kind : std::uint8_t { clock, release, join };
    const Clock* clock = nullptr;  // once evaluated
    std::uint32_t a = 0, b = 0;    // joined snapshots; of a release the timeline and the knowledge
    Epoch happened = 0;
    PerSpace fenced = {};
    std::uint32_t visit = 0;
    Kind kind = Kind::clock;
  };
  struct Tag {
    std::uint32_t tag = 0, number = 0;
  };
  struct Memo {
    std::uint32_t a = 0, b = 0, joined = 0;
  };
  static constexpr std::size_t tag_memos = 512, join_memos = 256;

  std::uint32_t tag_number(std::uint32_t tag) {
    const Tag& memo = tag_memo_[tag % tag_memos];
    return memo.tag == tag && memo.number != 0 ? memo.number - 1 : new_tag(tag);
  }
  std::uint32_t new_tag(std::uint32_t tag);
  void forget_snapshots();
  Timeline new_timeline(Agent owner);
  const State* owner(Record r) const;
  /// Ends the epoch, so that what follows is not covered; the last epoch in which something was
  /// done.
  Epoch advance(State& state);
  State& state(Agent a) {
    if (a >= agents_.size()) refuse(a);
    return agents_[a];
  }
  [[noreturn]] void refuse(Agent a) const;
  Snapshot add(const Node& node);
  Snapshot snapshot(const Clock* clock);
  const Clock* resolve(Snapshot s);

  Options options_;
  Clocks clocks_;
  std::vector<State> agents_;
  std::vector<Owner> owners_;                                                // of timelines
  std::vector<std::uint32_t> async_timelines_, witness_timelines_;           // a bit for each
  std::unordered_map<std::uint32_t, std::vector<ProxyFence>> proxy_fences_;  // by block
  bool watches_fences_ = false;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> node_of_clock_;
  std::vector<std::uint32_t> pending_;
  std::uint32_t visit_ = 0;
  std::array<Memo, join_memos> join_memo_ = {};
  std::array<Tag, tag_memos> tag_memo_ = {};
  std::unordered_map<std::uint32_t, std::uint32_t> tag_numbers_;
  std::vector<std::uint32_t> tags_;
};

}  // namespace palladium::race
