// Puts the weakest wait that will do in front of what needs something asynchronous to be over: what
// passes before it have left is an order of copies, products, those who read what these fill, and
// steps from slot to slot. Nobody else makes waits and arrivals, nor closes groups.
//
// Precondition: software_pipeline, the last to move what is begun and what reads it. It stands
// before place_shared_memory, since what is under way lives.
//
// A barrier is awaited in each iteration in which something completes it, whatever branches that
// takes: in the list where its copies are begun or, of a ring, its slot is left. Groups are awaited
// where they are needed, those of products by the one that reads or overwrites; those of copies by
// threads in front of the copies for later iterations, so that one barrier serves both.
//
// Copies and barriers by hand are the user's, who has said all of that.
//
// What copies bring is expected in front of them, by one arrival for neighbours that complete one
// barrier; who steps from a slot that a producer fills arrives to free it. How many arrive at a
// barrier stands in the table of barriers: codegen/expand makes all that stand there, in front of
// everything, for so many.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/order.hpp"
#include "codegen/lowered/signals.hpp"
#include "codegen/passes/async_copies.hpp"
#include "codegen/passes/free_slots.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/slots.hpp"

namespace palladium::passes {
namespace {

using device::Completion;

// ---- what copies bring is expected

// In front of neighbours that complete one barrier, their bytes.
void expect_copies(const Program& l, Statements& list) {
  Statements out;
  for (std::size_t i = 0; i < list.size();) {
    for_each_body(list[i], [&](Statements& body) { expect_copies(l, body); });
    const std::size_t end = end_of_copies(list, i);
    if (const BarrierId barrier = completed_by(list[i])) {
      Arrive expects{.barrier = barrier, .slot = std::get<Copy>(list[i].what).slot};
      for (const Statement& s : copies_at(list, i)) {
        const Storage& to = l.storages[std::get<Copy>(s.what).to.storage];
        expects.bytes += graph::element_count(to.shape) * to.dtype.bytes();
      }
      out.push_back({expects, list[i].at});
    }
    for (; i < end; ++i) out.push_back(std::move(list[i]));
  }
  list = std::move(out);
}

// ---- groups are closed

Completion begun_by(const Statement& s) {
  if (const LoopNest* const p = std::get_if<LoopNest>(&s.what))
    return is_copied(*p) ? Completion::cp_async_group : Completion::none;
  if (const Copy* const c = std::get_if<Copy>(&s.what))
    return c->completes || c->by_hand ? Completion::none : Completion::bulk_group;
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
    await_full(agent, {});
    if (!fills_.empty()) await_empty(agent);
  }

 private:
  // `early`: of a rotated loop, what is awaited in front of the iteration that leaves its slots.
  void await_full(Statements& list, const std::set<BarrierId>& early) {
    Statements out;
    std::set<BarrierId> open = left_in(list);
    for (const BarrierId b : early)
      if (!open.erase(b)) open.insert(b);
    for (std::size_t i = 0; i < list.size(); ++i) {
      Statement& s = list[i];
      if (!std::holds_alternative<Lead>(s.what) && !std::holds_alternative<Ahead>(s.what)) {
        const std::set<BarrierId> of_loop = awaited_early(s);
        for_each_body(s, [&](Statements& body) { await_full(body, of_loop); });
      }
      for (const BarrierId b : std::set<BarrierId>(open))
        if (needs(s, b)) {
          out.push_back({wait_for(b), at_[b]});
          open.erase(b);
        }
      if (const BarrierId b = completed_by(s); b && !l_.barriers[b].ring) open.insert(b);
      for (const auto& [b, _] : filled_)
        if (!fills_.contains(l_.barriers[b].ring) && is_needed_behind(list, i, b)) open.insert(b);
      out.push_back(std::move(s));
    }
    for (const BarrierId b : open) out.push_back({wait_for(b), at_[b]});
    list = std::move(out);
  }

  // Of a rotated loop, barriers of slots that an iteration leaves to the next one, and touches.
  std::set<BarrierId> awaited_early(const Statement& s) const {
    const Rotation loop = rotation_of(s);
    std::set<BarrierId> early;
    if (!loop.is_rotated()) return early;
    for (const BarrierId b : left_in(*loop.body))
      for (std::size_t i = 0; i < loop.body->size(); ++i)
        if (is_needed_behind(*loop.body, i, b)) early.insert(b);
    return early;
  }

  // Whether there, where the slot of the barrier is left, others in the list touch the next one.
  bool is_needed_behind(const Statements& list, std::size_t step, BarrierId b) const {
    const Advance* const a = std::get_if<Advance>(&list[step].what);
    return a != nullptr && a->ring == l_.barriers[b].ring &&
           std::any_of(list.begin() + static_cast<std::ptrdiff_t>(step) + 1, list.end(),
                       [&](const Statement& s) { return needs(s, b); });
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
      if (const BarrierId b = completed_by(s)) {
        filled_[b].insert(std::get<Copy>(s.what).to.storage);
        at_.try_emplace(b, s.at);
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
    if (std::ranges::any_of(effects(l_, s), [&](const Effect& e) {
          return e.storage && e.back == 0 && filled_.at(b).contains(e.storage);
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
  return any_within(s, [](const Statement& x) {
    const Close* const close = std::get_if<Close>(&x.what);
    return close != nullptr && close->kind == Completion::cp_async_group;
  });
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
    const Ahead* const ahead = std::get_if<Ahead>(&s.what);
    if (ahead != nullptr && ahead->ring) best = place, wait.pending = left;
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

// Where operands of products that are under way would keep memory that others need, those that
// stand in no slot are awaited at once.
void await_products(const Program& l, Statements& list) {
  Statements out;
  for (Statement& s : list) {
    for_each_body(s, [&](Statements& body) { await_products(l, body); });
    const Dot* const d = std::get_if<Dot>(&s.what);
    const bool holds =
        d != nullptr && is_of_wgmma(d->unit) && !graph::is_product_by_hand(l.graph[d->inst].op) &&
        (!l.storages[d->b].ring() || (l.storages[d->a].in_shared() && !l.storages[d->a].ring()));
    WaitGroup wait{.kind = Completion::wgmma_group};
    if (holds) wait.storages = {d->result};
    if (holds && l.storages[d->a].is_packed()) wait.storages.push_back(d->a);
    const Location at = s.at;
    out.push_back(std::move(s));
    if (holds) out.push_back({std::move(wait), at});
  }
  list = std::move(out);
}

Location end_of(const Statements& list) { return list.empty() ? Location{} : list.back().at; }

// Who is told that a slot is free, where the next statement awaits more products, is told behind
// those: of two waits one behind the other ptxas may not see which sums are done (C7514).
void join_waits(const Statements& list, Needed& needed) {
  constexpr auto kind = Completion::wgmma_group;
  const auto need_of = [&](const Statement& s) -> Need::Group* {
    const auto found = needed.before.find(&s);
    if (found == needed.before.end()) return nullptr;
    const auto group = found->second.groups.find(kind);
    return group == found->second.groups.end() ? nullptr : &group->second;
  };
  const auto tells = [](const Statement& s) { return std::holds_alternative<Arrive>(s.what); };
  for (std::size_t i = 0; i < list.size(); ++i) {
    Need::Group* const own = tells(list[i]) ? need_of(list[i]) : nullptr;
    for (std::size_t k = i + 1; own != nullptr && k < list.size(); ++k) {
      const Need::Group* const next = need_of(list[k]);
      if (next != nullptr && next->pending < own->pending) {
        own->pending = next->pending;
        for (const StorageId s : next->storages)
          if (std::ranges::count(own->storages, s) == 0) own->storages.push_back(s);
        needed.before.at(&list[k]).groups.erase(kind);
      }
      if (!tells(list[k])) break;
    }
  }
}

// Of products of the iteration before none is left under way where threads touch registers of those
// that are awaited, in front of the next product: ptxas counts what this iteration has begun, and
// not across the loop's begin (C7514).
void await_iteration_before(const Program& l, const Statements& iteration, Needed& needed) {
  int begun = 0;
  for (auto s = iteration.begin(); s != iteration.end(); ++s) {
    const auto found = needed.before.find(&*s);
    if (found != needed.before.end() && found->second.groups.contains(Completion::wgmma_group)) {
      Need::Group& group = found->second.groups.at(Completion::wgmma_group);
      const auto is_awaited = [&](const Effect& e) {
        return e.storage && std::ranges::count(group.storages, e.storage) > 0;
      };
      if (std::any_of(s, std::find_if(s, iteration.end(), is_wgmma),
                      [&](const Statement& x) { return any_effect(l, x, is_awaited); }))
        group.pending = std::min(group.pending, begun);
    }
    begun += is_wgmma(*s);
  }
}

void await_groups(const Program& l, Statements& list, Needed& needed) {
  join_waits(list, needed);
  Statements out;
  for (Statement& s : list) {
    if (const auto found = needed.before.find(&s); found != needed.before.end())
      add(out, found->second, s.at);
    if (const auto found = needed.named.find(&s); found != needed.named.end())
      std::get<WaitGroup>(s.what).storages = found->second.storages;
    const bool repeated = repeats(s);
    for_each_body(s, [&](Statements& body) {
      if (repeated) await_iteration_before(l, body, needed);
      await_groups(l, body, needed);
    });
    out.push_back(std::move(s));
  }
  if (const auto found = needed.behind.find(&list); found != needed.behind.end())
    add(out, found->second, end_of(out));
  list = std::move(out);
}

// ---- barriers are made for those who arrive

void find_arrivals(const Statements& list, std::map<BarrierId, bool>& frees) {
  for (const Statement& s : list) {
    if (const Arrive* const a = std::get_if<Arrive>(&s.what)) frees[a->barrier] = a->bytes == 0;
    for_each_body(s, [&](const Statements& body) { find_arrivals(body, frees); });
  }
}

void count_arrivals(Program& l) {
  std::map<BarrierId, int> arrivals;
  for (const Body& b : l.bodies)
    for (const Agent& agent : b.agents) {
      std::map<BarrierId, bool> frees;
      find_arrivals(agent.statements, frees);
      for (const auto& [barrier, by_all] : frees)
        arrivals[barrier] += by_all ? agent.warpgroups : 1;
    }
  for (const auto& [barrier, count] : arrivals)
    if (!l.barriers[barrier].by_hand)
      l.barriers[barrier].arrivals = count * lowered::blocks_told(l, barrier);
}

// ---- blocks of a cluster

bool is_shared(const Statement& s) {
  return any_within(s, [](const Statement& x) {
    const Copy* const c = std::get_if<Copy>(&x.what);
    return c != nullptr && c->share.axes != 0;
  });
}

// Who fills the memory of other blocks, and arrives there, finds it: none ends before all are done.
void meet_at_end(Program& l) {
  bool shares = false;
  for_each_list(
      l, [&](const Statements& list) { shares = shares || std::ranges::any_of(list, is_shared); });
  if (!shares) return;
  for_each_list(l, [&](Statements& list) {
    list.push_back({Sync{Sync::Of::cluster}, l.graph.at});
  });
}

void complete(Program& l, bool is_crowded) {
  if (graph::has_async_ops(l.graph)) leave_out_idle_syncs(l);
  BarrierWaits barriers(l);
  for_each_list(l, [&](Statements& list) {
    if (is_crowded) await_products(l, list);
    expect_copies(l, list);
    close_groups(l, list);
    barriers.await(list);
    free_slots(l, list);
    Needed needed = Order(l, Order::Ask::groups).missing(list);
    await_groups(l, list, needed);
  });
  count_arrivals(l);
  meet_at_end(l);
}

}  // namespace

void complete_async(Program& l) {
  if (l.wgmma_products == 0 || unshared_bytes(l).within(0, l.machine.max_shared_bytes))
    return complete(l, false);
  Program apart = l;
  complete(apart, false);
  if (!fits_shared_memory(apart)) complete(apart = l, true);
  l = std::move(apart);
}

}  // namespace palladium::passes
