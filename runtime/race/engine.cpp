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
  clocks_.forget_all_but(clocks);
  forget_snapshots();
  std::size_t next = 0;
  for (State& s : agents_) s.knows = clocks[next++];
  for (Snapshot* s : kept) *s = snapshot(clocks[next++]);
}

Timeline Engine::new_timeline(Agent owner) {
  if (owners_.size() >> Record::timeline_bits != 0)
    throw InternalError(fmt::format("race: more than {} agents", owners_.size()));
  owners_.push_back(owner);
  return static_cast<Timeline>(owners_.size() - 1);
}

Agent Engine::add_agent() {
  State& added = agents_.emplace_back();
  const Agent a = agents() - 1;
  added.knows = clocks_.nothing();
  added.timeline = new_timeline(a);
  return a;
}

void Engine::refuse(Agent a) const {
  throw InternalError(fmt::format("race: agent {} of {}", a, agents_.size()));
}

Epoch Engine::advance(State& state) {
  const Epoch covered = state.covered();
  if (state.touched && ++state.epoch > Record::epoch_mask)
    throw InternalError(fmt::format("race: an agent synchronised {} times", covered));
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
  if (s.knows->happened(s.timeline) >= covered && s.knows->fenced(s.timeline) >= s.fenced)
    return known;
  return add({.a = s.timeline,
              .b = known.id,
              .happened = covered,
              .fenced = s.fenced,
              .kind = Node::Kind::release});
}

Snapshot Engine::released(Agent a) {
  State& s = state(a);
  const Epoch covered = advance(s);
  clocks_.start();
  clocks_.add(s.timeline, covered, std::max(s.fenced, s.knows->fenced(s.timeline)));
  for (const Past& past : s.left)
    clocks_.add(past.timeline, s.knows->happened(past.timeline), s.knows->fenced(past.timeline));
  return snapshot(clocks_.finish());
}

void Engine::acquire(Agent a, Snapshot s) {
  State& into = state(a);
  into.knows = clocks_.join(into.knows, resolve(s));
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

void Engine::fence_async(Agent a) {
  State& s = state(a);
  s.fenced = advance(s);
  if (!options_.strict_fences) {
    s.knows = clocks_.fence_all(s.knows);
  } else if (!s.left.empty()) {
    clocks_.start();
    clocks_.add(s.knows);
    for (const Past& past : s.left) clocks_.add(past.timeline, 0, s.knows->happened(past.timeline));
    s.knows = clocks_.finish();
  }
}

void Engine::restart(Agent a, Snapshot s) {
  State& restarted = state(a);
  const Clock* known = resolve(s);
  const Epoch last = advance(restarted);
  restarted.knows = known;
  restarted.fenced = 0;
  // A timeline is one sequence: it goes on only where its end is known.
  if (known->happened(restarted.timeline) >= last) return;
  restarted.left.push_back({restarted.timeline, last});
  restarted.touched = false;
  for (Past& past : restarted.left) {
    if (known->happened(past.timeline) < past.epoch) continue;
    restarted.timeline = past.timeline;
    restarted.epoch = past.epoch + 1;
    past = restarted.left.back();
    restarted.left.pop_back();
    return;
  }
  restarted.timeline = new_timeline(a);
  restarted.epoch = 1;
}

bool Engine::knows(Agent a, Snapshot s) {
  const State& mine = state(a);
  return clocks_.covers(mine.knows, resolve(s), mine.timeline);
}

std::uint32_t Engine::new_tag(std::uint32_t tag) {
  const auto [known, added] =
      tag_numbers_.try_emplace(tag, static_cast<std::uint32_t>(tags_.size()));
  if (added) {
    if (tags_.size() >> Record::tag_bits != 0)
      throw InternalError(fmt::format("race: more than {} tags", tags_.size()));
    tags_.push_back(tag);
  }
  tag_memo_[tag % tag_memos] = {tag, known->second + 1};
  return known->second;
}

Access Engine::access(Record record) const {
  return {owners_[record.timeline()], static_cast<Kind>(record.kind()), record.proxy(),
          tags_[record.tag_number()]};
}

}  // namespace palladium::race
