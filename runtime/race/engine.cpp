#include "runtime/race/engine.hpp"

#include <algorithm>

#include "codegen/base/format.hpp"

namespace palladium::race {

Engine::Engine() : Engine(Options{}) {}
Engine::Engine(Options options) : options_(options) { reset(); }

void Engine::reset() {
  clocks_.clear();
  agents_.clear();
  owners_.clear();
  async_timelines_.clear();
  witness_timelines_.clear();
  proxy_fences_.clear();
  watches_fences_ = false;
  forget_snapshots();
  tag_memo_ = {};
  tag_numbers_.clear();
  tags_.clear();
}

void Engine::forget_snapshots() {
  nodes_.clear();
  node_of_clock_.clear();
  join_memo_ = {};
  snapshot(clocks_.nothing());  // id 0
}

void Engine::forget_all_but(std::span<Snapshot* const> kept) {
  std::vector<const Clock*> clocks;
  for (const State& s : agents_) clocks.push_back(s.knows);
  for (const Snapshot* s : kept) clocks.push_back(resolve(*s));
  for (const auto& [block, fences] : proxy_fences_)
    for (const ProxyFence& f : fences) clocks.push_back(f.knows);
  clocks_.forget_all_but(clocks);
  forget_snapshots();
  std::size_t next = agents_.size() + kept.size();
  for (auto& [block, fences] : proxy_fences_)
    for (ProxyFence& f : fences) f.knows = clocks[next++];
  next = 0;
  for (State& s : agents_) {
    s.knows = clocks[next++];
    s.acquired = {};
  }
  for (Snapshot* s : kept) *s = snapshot(clocks[next++]);
}

Timeline Engine::new_timeline(Agent owner) {
  if (owners_.size() >> Record::timeline_bits != 0)
    throw InternalError(fmt::format("race: more than {} agents", owners_.size()));
  const auto added = static_cast<Timeline>(owners_.size());
  owners_.push_back({.agent = owner});
  if (added % 32 == 0) {
    async_timelines_.push_back(0);
    witness_timelines_.push_back(0);
  }
  if (agents_[owner].through == Proxy::async) async_timelines_[added / 32] |= 1u << added % 32;
  return added;
}

Agent Engine::add_agent(Group group, Proxy through) {
  State& added = agents_.emplace_back();
  const Agent a = agents() - 1;
  added.knows = clocks_.nothing();
  added.group = group;
  added.through = through;
  added.timeline = new_timeline(a);
  return a;
}

Agent Engine::add_witness() {
  const Agent a = add_agent({}, Proxy::async);
  const Timeline t = agents_[a].timeline;
  witness_timelines_[t / 32] |= 1u << t % 32;
  return a;
}

void Engine::refuse(Agent a) const {
  throw InternalError(fmt::format("race: agent {} of {}", a, agents_.size()));
}

Epoch Engine::advance(State& state) {
  const Epoch covered = state.covered();
  if (state.touched && ++state.epoch > Record::epoch_mask)
    throw CompileError(fmt::format(
        "race: a thread synchronised {} times, more than a search for races keeps apart; run the "
        "kernel on fewer elements",
        covered));
  state.touched = false;
  return covered;
}

Snapshot Engine::add(const Node& node) {
  if (nodes_.size() > 0xffffffff) throw InternalError("race: more than 2^32 snapshots");
  nodes_.push_back(node);
  return {static_cast<std::uint32_t>(nodes_.size() - 1)};
}

Snapshot Engine::snapshot(const Clock* clock) {
  const std::uint32_t number = clocks_.number(clock);
  if (number >= node_of_clock_.size()) node_of_clock_.resize(number + 1, ~0u);
  if (node_of_clock_[number] == ~0u) node_of_clock_[number] = add({.clock = clock}).id;
  return {node_of_clock_[number]};
}

const Clock* Engine::resolve(Snapshot s) {
  if (s.id >= nodes_.size())
    throw InternalError(fmt::format("race: snapshot {} of {}", s.id, nodes_.size()));
  if (nodes_[s.id].clock != nullptr) return nodes_[s.id].clock;
  clocks_.start();
  ++visit_;
  pending_.assign(1, s.id);
  while (!pending_.empty()) {
    Node& node = nodes_[pending_.back()];
    pending_.pop_back();
    if (node.clock != nullptr) {
      clocks_.add(node.clock);
    } else if (node.kind == Node::Kind::release) {
      clocks_.add(nodes_[node.b].clock);
      clocks_.add(node.a, node.happened, node.fenced);
    } else if (node.visit != visit_) {
      node.visit = visit_;
      pending_.push_back(node.a);
      pending_.push_back(node.b);
    }
  }
  return nodes_[s.id].clock = clocks_.finish();
}

Snapshot Engine::release(Agent a) {
  State& s = state(a);
  const Epoch covered = advance(s);
  const Snapshot known = snapshot(s.knows);
  bool adds = s.knows->happened(s.timeline) < covered;
  for (const Space space : {Space::shared, Space::global})
    adds = adds || s.knows->fenced(space, s.timeline) < s.fenced[static_cast<int>(space)];
  if (!adds) return known;
  return add({.a = s.timeline,
              .b = known.id,
              .happened = covered,
              .fenced = s.fenced,
              .kind = Node::Kind::release});
}

Snapshot Engine::released(Agent a) {
  State& s = state(a);
  const Epoch covered = advance(s);
  const auto fenced = [&](Timeline t) {
    return PerSpace{s.knows->fenced(Space::shared, t), s.knows->fenced(Space::global, t)};
  };
  clocks_.start();
  PerSpace mine = fenced(s.timeline);
  for (std::uint32_t i = 0; i < spaces; ++i) mine[i] = std::max(mine[i], s.fenced[i]);
  clocks_.add(s.timeline, covered, mine);
  for (const Past& past : s.left)
    clocks_.add(past.timeline, s.knows->happened(past.timeline), fenced(past.timeline));
  return snapshot(clocks_.finish());
}

void Engine::acquire(Agent a, Snapshot s) {
  State& into = state(a);
  if (into.acquired == s) return;
  into.knows = clocks_.join(into.knows, resolve(s));
  into.acquired = s;
}

Snapshot Engine::join(Snapshot a, Snapshot b) {
  if (a == b || b.id == 0) return a;
  if (a.id == 0) return b;
  if (a.id >= nodes_.size() || b.id >= nodes_.size())
    throw InternalError(fmt::format("race: snapshots {} and {} of {}", a.id, b.id, nodes_.size()));
  const Clock *known_a = nodes_[a.id].clock, *known_b = nodes_[b.id].clock;
  if (known_a != nullptr && known_b != nullptr) return snapshot(clocks_.join(known_a, known_b));
  Memo& memo = join_memo_[(a.id * 31 + b.id) % join_memos];
  if (memo.a != a.id || memo.b != b.id)
    memo = {a.id, b.id, add({.a = a.id, .b = b.id, .kind = Node::Kind::join}).id};
  return {memo.joined};
}

Snapshot Engine::only_async(Snapshot s) {
  return snapshot(clocks_.only(resolve(s), async_timelines_, 0));
}

Snapshot Engine::only_witnesses(Snapshot s) {
  return snapshot(clocks_.only(resolve(s), witness_timelines_, 1));
}

Snapshot Engine::fenced(Snapshot s, Spaces which) {
  return snapshot(clocks_.fence_all(resolve(s), which));
}

void Engine::fence_async(Agent a, Spaces which) {
  State& s = state(a);
  const bool watched = watches_fences_ && (which & only(Space::global)) != 0;
  s.touched = s.touched || watched;
  const Epoch covered = advance(s);
  if (watched) proxy_fences_[s.group.block].push_back({s.timeline, covered, s.knows});
  for (std::uint32_t i = 0; i < spaces; ++i)
    if ((which >> i & 1) != 0) s.fenced[i] = covered;
  if (!options_.strict_fences) {
    s.knows = clocks_.fence_all(s.knows, which);
  } else if (!s.left.empty()) {
    clocks_.start();
    clocks_.add(s.knows);
    for (const Past& past : s.left) {
      PerSpace fenced = {};
      for (std::uint32_t i = 0; i < spaces; ++i)
        if ((which >> i & 1) != 0) fenced[i] = s.knows->happened(past.timeline);
      clocks_.add(past.timeline, 0, fenced);
    }
    s.knows = clocks_.finish();
  }
}

const Engine::State* Engine::owner(Record r) const {
  const Owner& o = owners_[r.timeline()];
  return r.epoch() < o.born ? nullptr : &agents_[o.agent];
}

bool Engine::is_mutual(Record earlier, Agent a, Record mine) const {
  const Scope scope = std::max(earlier.scope(), mine.scope());
  if (scope == Scope::device) return true;
  const State* theirs = owner(earlier);
  if (theirs == nullptr) return false;
  const Group& group = agents_[a].group;
  return scope == Scope::block ? theirs->group == group : theirs->group.cluster == group.cluster;
}

bool Engine::is_of_other_block(Record earlier, Agent a) const {
  const State* theirs = owner(earlier);
  return theirs == nullptr || theirs->group != agents_[a].group;
}

bool Engine::is_admitted(Record earlier, Agent a, const View& view) const {
  const auto fences = proxy_fences_.find(agents_[a].group.block);
  return fences != proxy_fences_.end() &&
         std::any_of(fences->second.rbegin(), fences->second.rend(), [&](const ProxyFence& f) {
           return f.knows->happened(earlier.timeline()) >= earlier.epoch() &&
                  view.knows(f.timeline, f.epoch);
         });
}

void Engine::begin_again(Agent a, Group group) {
  State& s = state(a);
  advance(s);
  s.knows = clocks_.nothing();
  s.acquired = {};
  s.fenced = {};
  s.group = group;
  s.since = s.epoch;
  owners_[s.timeline].born = s.epoch;
  for (const Past& past : s.left) owners_[past.timeline].born = past.epoch + 1;
}

void Engine::restart(Agent a, Snapshot s) {
  State& restarted = state(a);
  const Clock* known = resolve(s);
  const Epoch last = advance(restarted);
  restarted.knows = known;
  restarted.acquired = s;
  restarted.fenced = {};
  restarted.since = restarted.epoch;
  // A timeline is one sequence: it goes on only where its end is known.
  if (known->happened(restarted.timeline) >= last) return;
  if (owners_.size() >= options_.most_timelines) return;
  restarted.left.push_back({restarted.timeline, last});
  restarted.touched = false;
  for (Past& past : restarted.left) {
    if (known->happened(past.timeline) < past.epoch) continue;
    restarted.timeline = past.timeline;
    restarted.since = restarted.epoch = past.epoch + 1;
    past = restarted.left.back();
    restarted.left.pop_back();
    return;
  }
  restarted.timeline = new_timeline(a);
  restarted.since = restarted.epoch = 1;
}

bool Engine::knows(Agent a, Snapshot s) {
  const State& mine = state(a);
  return clocks_.covers(mine.knows, resolve(s), mine.timeline, mine.since);
}

std::uint32_t Engine::new_tag(std::uint32_t tag) {
  const auto [known, added] =
      tag_numbers_.try_emplace(tag, static_cast<std::uint32_t>(tags_.size()));
  if (added) {
    if (tags_.size() >> Record::tag_bits != 0)
      throw CompileError(fmt::format(
          "race: more than {} places of a kernel access memory, more than a search for races keeps "
          "apart; repeat them by pl::loop",
          tags_.size()));
    tags_.push_back(tag);
  }
  tag_memo_[tag % tag_memos] = {tag, known->second + 1};
  return known->second;
}

Access Engine::access(Record record) const {
  const Owner& owner = owners_[record.timeline()];
  return {.agent = owner.agent,
          .kind = static_cast<Kind>(record.kind()),
          .proxy = record.proxy(),
          .tag = tags_[record.tag_number()],
          .scope = record.scope(),
          .former = record.epoch() < owner.born};
}

}  // namespace palladium::race
