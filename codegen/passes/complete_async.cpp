// Puts the weakest wait that will do in front of what needs something asynchronous to be over: what
// passes before it have left is an order of copies, products and those who read and free what these
// fill. Nobody else makes waits, nor closes groups.
//
// Precondition: software_pipeline, the last to move what is begun and what reads it. It stands
// before place_shared_memory, since what is under way lives.
//
// A barrier is awaited in each iteration in which something completes it, whatever branches that
// takes: in the list where its copies are begun or, of a ring, its slot is left. Groups are awaited
// where they are needed, those of products by the one that reads or overwrites; those of copies by
// threads in front of the copies for later iterations, so that one barrier serves both.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/order.hpp"
#include "codegen/lowered/signals.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/slots.hpp"

namespace palladium::passes {
namespace {

using device::Completion;

// ---- groups are closed

Completion begun_by(const Statement& s) {
  if (const LoopNest* const p = std::get_if<LoopNest>(&s.what))
    return is_copied(*p) ? Completion::cp_async_group : Completion::none;
  if (const Copy* const c = std::get_if<Copy>(&s.what))
    return c->completes ? Completion::none : Completion::bulk_group;
  Completion found = Completion::none;
  if (const Ahead* const ahead = std::get_if<Ahead>(&s.what))
    for (const Statement& inner : ahead->body) found = std::max(found, begun_by(inner));
  return found;
}

// What may stand between copies of one group.
bool is_aside(const Statement& s) {
  return std::holds_alternative<Scalar>(s.what) || std::holds_alternative<EnterWindow>(s.what) ||
         std::holds_alternative<Arrive>(s.what) || std::holds_alternative<Copy>(s.what) ||
         std::holds_alternative<Ahead>(s.what);
}

void add_filled(const Program& l, const Statement& s, std::set<StorageId>& filled) {
  for (const Effect& e : effects(l, s))
    if (e.on == Completion::cp_async_group && e.storage) filled.insert(e.storage);
  for_each_body(s, [&](const Statements& body) {
    for (const Statement& inner : body) add_filled(l, inner, filled);
  });
}

bool leads(const Statement& s, Completion kind) {
  const Lead* const lead = std::get_if<Lead>(&s.what);
  return lead != nullptr && std::ranges::any_of(lead->body, [&](const Statement& inner) {
           return begun_by(inner) == kind;
         });
}

// Those of a kind that stand together, up to who asks for what they fill, are one.
void close_groups(const Program& l, Statements& list) {
  Statements closed;
  std::size_t behind = 0;  // the last copy of the group
  Completion kind = Completion::none;
  std::set<StorageId> filled;
  Location at;
  const auto close = [&] {
    if (kind == Completion::none) return;
    closed.insert(closed.begin() + static_cast<std::ptrdiff_t>(behind), {Close{kind}, at});
    kind = Completion::none;
    filled.clear();
  };
  for (Statement& s : list) {
    if (!std::holds_alternative<Ahead>(s.what))
      for_each_body(s, [&](Statements& body) { close_groups(l, body); });
    const Completion begun = begun_by(s);
    // The first of the groups of a Lead takes in what stands in front of it.
    if (leads(s, kind)) kind = Completion::none;
    const bool asks = kind == Completion::cp_async_group && any_effect(l, s, [&](const Effect& e) {
                        return e.storage && filled.contains(e.storage);
                      });
    if (asks || (begun == Completion::none ? !is_aside(s) : begun != kind)) close();
    at = s.at;
    if (begun == Completion::cp_async_group) add_filled(l, s, filled);
    closed.push_back(std::move(s));
    if (begun != Completion::none) kind = begun, behind = closed.size();
  }
  close();
  list = std::move(closed);
}

// ---- barriers

class BarrierWaits {
 public:
  explicit BarrierWaits(const Program& l) : l_(l) {
    for_each_list(l, [&](const Statements& list) { find(list); });
  }

  /// An agent that fills slots for others waits until they are free, those until they are full.
  void await(Statements& agent) {
    fills_ = rings_filled(l_, agent);
    await_full(agent);
    if (!fills_.empty()) await_empty(agent);
  }

 private:
  void await_full(Statements& list) {
    Statements out;
    std::set<BarrierId> open = left_in(list);
    for (Statement& s : list) {
      if (!std::holds_alternative<Lead>(s.what) && !std::holds_alternative<Ahead>(s.what))
        for_each_body(s, [&](Statements& body) { await_full(body); });
      for (const BarrierId b : std::set<BarrierId>(open))
        if (needs(s, b)) {
          out.push_back({wait_for(b), at_[b]});
          open.erase(b);
        }
      if (const Copy* const c = std::get_if<Copy>(&s.what))
        if (c->completes && !l_.barriers[c->completes].ring) open.insert(c->completes);
      out.push_back(std::move(s));
    }
    for (const BarrierId b : open) out.push_back({wait_for(b), at_[b]});
    list = std::move(out);
  }

  void await_empty(Statements& list) {
    Statements out;
    std::set<RingId> free;
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { await_empty(body); });
      if (const Advance* const a = std::get_if<Advance>(&s.what)) free.erase(a->ring);
      const Arrive* const a = std::get_if<Arrive>(&s.what);
      const RingId ring = a != nullptr && a->bytes > 0 ? l_.barriers[a->barrier].ring : RingId();
      if (fills_.contains(ring) && free.insert(ring).second)
        out.push_back({wait_for(l_.rings[ring].empty_barriers), s.at});
      out.push_back(std::move(s));
    }
    list = std::move(out);
  }

  void find(const Statements& list) {
    for (const Statement& s : list) {
      if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->completes) {
        filled_[c->completes].insert(c->to.storage);
        at_.try_emplace(c->completes, s.at);
      }
      for_each_body(s, [&](const Statements& body) { find(body); });
    }
  }

  Wait wait_for(BarrierId b) const {
    if (l_.barriers[b].ring) return {.barrier = b};
    return {.barrier = b, .phase = Tracked{}};
  }

  // The full barriers of slots that are left in the list for the next ones.
  std::set<BarrierId> left_in(const Statements& list) const {
    std::set<BarrierId> found;
    for (const Statement& s : list)
      if (const Advance* const a = std::get_if<Advance>(&s.what))
        for (const auto& [barrier, _] : filled_)
          if (l_.barriers[barrier].ring == a->ring && !fills_.contains(a->ring))
            found.insert(barrier);
    return found;
  }

  // Whether the statement touches what the barrier knows to be there, or leaves it.
  bool needs(const Statement& s, BarrierId b) const {
    const RingId ring = l_.barriers[b].ring;
    if (std::holds_alternative<Lead>(s.what) || std::holds_alternative<Ahead>(s.what)) return false;
    if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->completes == b)
      return false;
    if (const Advance* const a = std::get_if<Advance>(&s.what)) return ring && a->ring == ring;
    if (const Arrive* const a = std::get_if<Arrive>(&s.what))
      return ring && a->barrier == l_.rings[ring].empty_barriers && a->back == 0;
    if (std::ranges::any_of(effects(l_, s), [&](const Effect& e) {
          return e.storage && filled_.at(b).contains(e.storage);
        }))
      return true;
    bool found = false;
    for_each_body(s, [&](const Statements& body) {
      for (const Statement& inner : body) found = found || needs(inner, b);
    });
    return found;
  }

  const Program& l_;
  std::map<BarrierId, std::set<StorageId>> filled_;
  std::map<BarrierId, Location> at_;
  std::set<RingId> fills_ = {};  // of the agent
};

// ---- groups are awaited

bool closes_copies(const Statement& s) {
  const Close* const close = std::get_if<Close>(&s.what);
  bool found = close != nullptr && close->kind == Completion::cp_async_group;
  for_each_body(s, [&](const Statements& body) {
    found = found || std::ranges::any_of(body, closes_copies);
  });
  return found;
}

// A wait for copies by threads goes in front of those for later iterations; the groups that are
// closed meanwhile are not among those that it leaves then.
void await_copies(Statements& list, WaitGroup wait, Location at) {
  auto place = list.end(), best = list.end();
  int left = wait.pending;
  while (place != list.begin()) {
    const Statement& s = *std::prev(place);
    const bool closes = closes_copies(s);
    if (closes && (!std::holds_alternative<Close>(s.what) || left == 0)) break;
    --place;
    left -= closes;
    if (std::holds_alternative<Ahead>(s.what)) best = place, wait.pending = left;
  }
  list.insert(best, {std::move(wait), at});
}

void add(Statements& list, const Need& need, Location at) {
  for (const auto& [kind, group] : need.groups) {
    WaitGroup wait{.kind = kind, .pending = group.pending, .storages = group.storages};
    if (kind == Completion::cp_async_group)
      await_copies(list, std::move(wait), at);
    else
      list.push_back({std::move(wait), at});
  }
}

Location end_of(const Statements& list) { return list.empty() ? Location{} : list.back().at; }

void await_groups(Statements& list, const Needed& needed) {
  Statements out;
  for (Statement& s : list) {
    if (const auto found = needed.before.find(&s); found != needed.before.end())
      add(out, found->second, s.at);
    for_each_body(s, [&](Statements& body) { await_groups(body, needed); });
    out.push_back(std::move(s));
  }
  if (const auto found = needed.behind.find(&list); found != needed.behind.end())
    add(out, found->second, end_of(out));
  list = std::move(out);
}

}  // namespace

void complete_async(Program& l) {
  BarrierWaits barriers(l);
  for_each_list(l, [&](Statements& list) {
    close_groups(l, list);
    barriers.await(list);
    await_groups(list, Order(l, Order::Ask::groups).missing(list));
  });
}

}  // namespace palladium::passes
