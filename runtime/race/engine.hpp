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

/// Atomics conflict with plain accesses, not with each other.
enum class Kind : std::uint8_t { read, write, atomic };

struct Access {
  Agent agent = 0;
  Kind kind = Kind::read;
  Proxy proxy = Proxy::generic;
  std::uint32_t tag = 0;  ///< the caller's, for example a line; at most 65,535 different ones
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

  static constexpr int epoch_bits = 27, timeline_bits = 18, tag_bits = 16;
  static constexpr std::uint64_t epoch_mask = (std::uint64_t{1} << epoch_bits) - 1;
  static constexpr int timeline_shift = epoch_bits, proxy_shift = timeline_shift + timeline_bits,
                       kind_shift = proxy_shift + 1, tag_shift = kind_shift + 2;
  /// Timeline, proxy and kind.
  static constexpr std::uint64_t source_mask =
      (std::uint64_t{1} << tag_shift) - (std::uint64_t{1} << timeline_shift);

  bool empty() const { return bits == 0; }
  Epoch epoch() const { return static_cast<Epoch>(bits & epoch_mask); }
  Timeline timeline() const {
    return static_cast<Timeline>(bits >> timeline_shift & ((1u << timeline_bits) - 1));
  }
  Proxy proxy() const { return static_cast<Proxy>(bits >> proxy_shift & 1); }
  /// 3 for what is no access.
  std::uint32_t kind() const { return bits >> kind_shift & 3; }
  std::uint32_t tag_number() const { return static_cast<std::uint32_t>(bits >> tag_shift); }
  /// An access by the same agent in the same way: the later one stands for both.
  bool same_source(Record other) const { return ((bits ^ other.bits) & source_mask) == 0; }
  bool operator==(const Record&) const = default;
};

/// What an access is checked with.
struct View {
  const Clock* clock = nullptr;
  Timeline self = ~Timeline{0};  // its own past is known
  Epoch self_fenced = 0;

  bool knows(Record r) const {
    return r.timeline() == self || r.epoch() <= clock->happened(r.timeline());
  }
  bool knows_fenced(Record r) const {
    return r.epoch() <= clock->fenced(r.timeline()) ||
           (r.timeline() == self && r.epoch() <= self_fenced);
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
  };
  Engine();
  explicit Engine(Options options);
  Engine(const Engine&) = delete;

  Agent add_agent();
  std::uint32_t agents() const { return static_cast<std::uint32_t>(agents_.size()); }

  /// All that `a` knows and did so far; what it does later is not covered.
  Snapshot release(Agent a);
  /// Only what `a` itself did so far (since `restart`).
  Snapshot released(Agent a);
  /// From now on `a` knows what `s` knows.
  void acquire(Agent a, Snapshot s);
  /// What either knows.
  Snapshot join(Snapshot a, Snapshot b);
  /// `a` executed fence.proxy.async.
  void fence_async(Agent a);
  /// `a` becomes another operation, which knows `s` and nothing else. What it did before stays
  /// history that others know or do not know, as before.
  void restart(Agent a, Snapshot s);
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
            static_cast<std::uint64_t>(access.kind) << Record::kind_shift |
            static_cast<std::uint64_t>(access.proxy) << Record::proxy_shift |
            std::uint64_t{state.timeline} << Record::timeline_shift | state.epoch};
  }
  /// Whether `a` made the access, in its operation or in a former one that it knows.
  bool is_own(Agent a, Record r) { return owners_[r.timeline()] == a && view(a).knows(r); }
  Access access(Record record) const;
  View view(Agent a) {
    const State& state = this->state(a);
    return {state.knows, state.timeline, state.fenced};
  }
  View view(Snapshot s) { return {resolve(s)}; }

 private:
  /// A timeline of an agent that it left behind: a later operation did not know its end.
  struct Past {
    Timeline timeline = 0;
    Epoch epoch = 0;  // of its last access
  };
  struct State {
    const Clock* knows = nullptr;
    Timeline timeline = 0;
    Epoch epoch = 1;
    Epoch fenced = 0;
    bool touched = false;  // something was done in this epoch
    std::vector<Past> left;

    Epoch covered() const { return touched ? epoch : epoch - 1; }
  };
  /// A snapshot, evaluated when somebody needs it: most are only joined into others.
  struct Node {
    enum class Kind : std::uint8_t { clock, release, join };
    const Clock* clock = nullptr;  // once evaluated
    std::uint32_t a = 0, b = 0;    // joined snapshots; of a release the timeline and the knowledge
    Epoch happened = 0, fenced = 0;
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
  std::vector<Agent> owners_;  // of timelines
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
