// What statements touch, as far as their order is concerned, and which memory that is.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/lowered/order.hpp"

namespace palladium::lowered {

using device::Completion;
using Of = device::Effects::Role;
using Role = Effect::Role;

const Order::Facts& Order::facts(const Statement& s) {
  const auto [at, is_new] = facts_.try_emplace(&s);
  if (is_new) at->second = facts_of(s);
  return at->second;
}

Order::Facts Order::facts_of(const Statement& s) {
  const Effects all = effects(l_, s);
  Facts found{.touches = {},
              .syncs = all.syncs,
              .meets_warpgroups = all.meets_warpgroups,
              .fences = all.fences};
  const Copy* const copy = std::get_if<Copy>(&s.what);
  const bool by_hand = copy != nullptr && copy->by_hand;
  if (by_hand && asked_ == Ask::groups) return found;
  for (const Effect& e : all) {
    if (e.completion == Of::awaits && e.role != Role::barrier) continue;
    if (e.role == Role::barrier)
      add_barrier(s, e, found.touches);
    else if (e.storage)
      add_storage(e, all.syncs, found.touches);
    else if (e.window && asked_ == Ask::threads && !std::holds_alternative<Semaphore>(s.what) &&
             !std::holds_alternative<Copy>(s.what))
      add_array(s, e, found.touches);
  }
  // Of operands in shared memory a user says when they are read.
  const Dot* const product = std::get_if<Dot>(&s.what);
  if (product != nullptr && asked_ == Ask::groups &&
      graph::is_product_by_hand(l_.graph[product->inst].op))
    std::erase_if(found.touches,
                  [&](const Touch& t) { return l_.storages[t.room.storage].in_shared(); });
  // Likewise of his memory, if he wants that: what passes have made is ordered all the same.
  if (l_.graph.no_auto_barriers && asked_ == Ask::threads)
    std::erase_if(found.touches, [&](const Touch& t) {
      return t.room.array >= 0 || std::ranges::any_of(l_.windows, [&](const Window& w) {
               return w.storage() == t.room.storage;
             });
    });
  // Who waits for it says so himself.
  if (by_hand)
    for (Touch& t : found.touches) t.on = Completion::none;
  return found;
}

// Who frees a slot says that it has been read: by all threads, where others read it than products,
// of which each warpgroup knows by itself, and where not each warp tells.
void Order::add_barrier(const Statement& s, const Effect& e, std::vector<Touch>& touches) const {
  const Arrive* const arrive = std::get_if<Arrive>(&s.what);
  if (arrive == nullptr || arrive->bytes > 0) {
    touches.push_back(
        {.room = {.storage = e.storage}, .writes = arrive != nullptr, .is_told = !arrive});
    return;
  }
  const RingId ring = l_.barriers[arrive->barrier].ring;
  const bool tells_all = read_by_threads_.contains(ring) && !l_.barriers[arrive->barrier].by_warps;
  if (!ring || (asked_ == Ask::threads && !tells_all)) return;
  for (const StorageId read : l_.storages.ids())
    if (l_.storages[read].ring() == ring)
      touches.push_back({.room = moved({.storage = read}, -arrive->back),
                         .writes = true,
                         .async = asked_ == Ask::groups,
                         .is_told = false});
}

void Order::add_storage(const Effect& e, bool syncs, std::vector<Touch>& touches) const {
  const Storage& s = l_.storages[e.storage];
  if (asked_ == Ask::threads && !s.in_shared()) return;
  const bool is_scratch = e.role == Role::scratch;
  if (is_scratch && shared_bytes(s).value_or(1) == 0) return;
  const bool by_mbarrier = e.on == Completion::mbarrier;
  touches.push_back({.room = moved({.storage = e.storage}, -e.back),
                     .writes = e.writes(),
                     .async = e.proxy == device::Proxy::async,
                     .by_warp = is_scratch && !syncs,
                     .is_told = !by_mbarrier,
                     .is_sum = e.on == Completion::wgmma_group && e.writes(),
                     .is_exchanged = is_scratch && syncs,
                     .on = by_mbarrier ? Completion::none : e.on});
}

void Order::add_array(const Statement& s, const Effect& e, std::vector<Touch>& touches) {
  const Window& w = l_.windows[e.window];
  if (e.role == Role::block || w.mapping < 0) return;
  const int array = l_.graph.alias_class(w.root);
  if (!synchronised_.contains(array) && !refilled_.contains(array)) return;
  const LoopNest* const nest = std::get_if<LoopNest>(&s.what);
  touches.push_back({.room = {.array = array},
                     .writes = e.writes(),
                     .elements = nest != nullptr ? elements_of(*nest, e) : -1});
}

namespace {

// Whether index maps give the same, each value looked at once.
class SameMaps {
 public:
  SameMaps(const graph::Graph& g, graph::RegionId a, graph::RegionId b)
      : g_(g), a_(g[a]), b_(g[b]) {
    for (std::size_t i = 0; i < std::min(a_.params.size(), b_.params.size()); ++i)
      same_[a_.params[i]] = b_.params[i];
  }

  bool run() {
    if (a_.params.size() != b_.params.size() || a_.insts.size() != b_.insts.size()) return false;
    for (std::size_t i = 0; i < a_.insts.size(); ++i) {
      if (!are_alike(g_[a_.insts[i]], g_[b_.insts[i]])) return false;
      same_[a_.insts[i]] = b_.insts[i];
    }
    return are_same(a_.yields, b_.yields);
  }

 private:
  bool are_alike(const graph::Inst& x, const graph::Inst& y) const {
    return x.op == y.op && x.type == y.type && x.attr == y.attr && x.regions.empty() &&
           y.regions.empty() && are_same(x.args, y.args);
  }
  bool are_same(const std::vector<ValueId>& x, const std::vector<ValueId>& y) const {
    return std::ranges::equal(x, y, [&](ValueId v, ValueId w) {
      const auto known = same_.find(v);
      return (known == same_.end() ? v : known->second) == w;
    });
  }

  const graph::Graph& g_;
  const graph::Region &a_, &b_;
  std::map<ValueId, ValueId> same_;
};

// Whether programs see the same block of an array by both, of which none meets another.
bool are_same_blocks(const graph::Graph& g, int a, int b) {
  const BlockMapping &x = g.mapping.block_mappings[static_cast<std::size_t>(a)],
                     &y = g.mapping.block_mappings[static_cast<std::size_t>(b)];
  const auto is_apart = [](const BlockDim& d) {
    return d.kind == BlockDim::Kind::blocked || d.kind == BlockDim::Kind::squeezed;
  };
  if (x.block_shape != y.block_shape || !std::ranges::all_of(x.block_shape, is_apart)) return false;
  if (x.index_map == y.index_map) return true;
  if (x.index_map == no_region || y.index_map == no_region) return false;
  return SameMaps(g, graph::RegionId{x.index_map}, graph::RegionId{y.index_map}).run();
}

// Along which dimensions of its block a view has all of it, where it has one element along the
// others; nothing of other views.
std::optional<std::vector<bool>> whole_dims(const graph::Graph& g, ValueId view) {
  const graph::Inst& at = g[view];
  if (at.op == graph::Op::Param) return std::vector<bool>(at.type.shape.size(), true);
  if (at.op != graph::Op::At || g[at.args[0]].op != graph::Op::Param) return {};
  const Extents& block = g[at.args[0]].type.shape;
  std::vector<bool> whole;
  for (const graph::SubscriptDim& d : graph::Subscript::of(at).dims) {
    const bool is_all = d.is_slice && !d.dynamic && !d.array && d.start == 0 && d.stride == 1 &&
                        d.size == block[whole.size()];
    if (!is_all && (d.array || (d.is_slice && d.size != 1))) return {};
    whole.push_back(is_all);
  }
  return whole;
}

}  // namespace

// A number for nests that go over a block in the same way: each thread touches the elements that it
// has touched before.
int Order::elements_of(const LoopNest& p, const Effect& e) {
  const graph::Graph& g = l_.graph;
  const Store* const store = std::get_if<Store>(&p.sink);
  const bool stores = e.writes() && e.role == Role::result && store != nullptr;
  const bool loads = e.is_element() && e.role == Role::value && e.leaf != graph::no_value &&
                     g[e.leaf].op == graph::Op::Load && e.map == identity_map(p.layout.rank());
  // Of threads that hold the same elements one stores.
  const bool shares = p.layout.replicated_threads() != 0;
  if ((!stores && !loads) || shares || l_.warpgroups > 1 || p.repeats_first) return -1;
  const ValueId view = g[stores ? store->inst : e.leaf].args[0];
  std::optional<std::vector<bool>> whole = whole_dims(g, view);
  if (!whole) return -1;
  const Elements now{l_.windows[e.window].mapping, *std::move(whole), g[view].type.shape, p.layout};
  if (!are_same_blocks(g, now.mapping, now.mapping)) return -1;
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    const Elements& known = elements_[i];
    if (known.whole == now.whole && known.shape == now.shape && known.layout == now.layout &&
        are_same_blocks(g, known.mapping, now.mapping))
      return static_cast<int>(i);
  }
  elements_.push_back(now);
  return static_cast<int>(elements_.size()) - 1;
}

// Of a statement with all that stands inside of it; of loops in any of their iterations.
void Order::add_touches(const Statement& s, int by, std::vector<Touch>& all) {
  const std::size_t begin = all.size();
  for (Touch t : facts(s).touches) {
    t.room = moved(t.room, by);
    all.push_back(t);
  }
  const auto add = [&](const Statements& body, int ahead) {
    for (const Statement& inner : body) add_touches(inner, ahead, all);
  };
  if (const Lead* const lead = std::get_if<Lead>(&s.what)) {
    for (int k = 0; k < lead->iterations; ++k) add(lead->body, by + k);
  } else if (const Ahead* const e = std::get_if<Ahead>(&s.what)) {
    add(e->body, by + e->iterations);
  } else {
    for_each_body(s, [&](const Statements& body) { add(body, by); });
  }
  if (!repeats(s)) return;
  const std::set<RingId> advanced = rings_advanced(s);
  for (std::size_t i = begin; i < all.size(); ++i)
    if (advanced.contains(ring_of(all[i].room))) all[i].room.slot = any_slot;
}

namespace {

void find_rings(const Statements& list, std::set<RingId>& advanced) {
  for (const Statement& s : list) {
    if (const Advance* const a = std::get_if<Advance>(&s.what)) advanced.insert(a->ring);
    for_each_body(s, [&](const Statements& body) { find_rings(body, advanced); });
  }
}

}  // namespace

std::set<RingId> Order::rings_advanced(const Statement& s) {
  std::set<RingId> advanced;
  for_each_body(s, [&](const Statements& body) { find_rings(body, advanced); });
  return advanced;
}

// ---- rooms

RingId Order::ring_of(const Room& room) const {
  return room.storage ? rings_[room.storage] : RingId();
}

Order::Room Order::moved(Room room, int by) const {
  const RingId ring = ring_of(room);
  if (!ring || room.slot == any_slot) return room;
  const int slots = l_.rings[ring].slots;
  room.slot = ((room.slot + by) % slots + slots) % slots;
  return room;
}

bool Order::overlaps(const Room& a, const Room& b) const {
  if (a.array >= 0 || b.array >= 0) return a.array == b.array;
  const RingId ring = ring_of(a);
  if (ring && ring == ring_of(b)) {
    if (a.slot != b.slot && a.slot != any_slot && b.slot != any_slot) return false;
    return a.storage == b.storage || meet(span_in_slot(a.storage), span_in_slot(b.storage));
  }
  if (a.storage == b.storage) return true;
  return asked_ == Ask::threads && meet(span(a.storage), span(b.storage));
}

// Whether no warpgroup touches what another one does.
bool Order::are_apart(const Room& a, const Room& b) const {
  return a.storage && a.storage == b.storage && l_.storages[a.storage].is_by_warpgroups();
}

Order::Span Order::span_in_slot(StorageId storage) const {
  const Storage& s = l_.storages[storage];
  if (!s.in_shared() || !s.ring()) return {};
  return {s.shared().offset, s.shared().offset + shared_bytes(s).value_or(0)};
}

// Of all that there are of it; of what lies in a ring, of the ring.
Order::Span Order::span(StorageId storage) const {
  const Storage& s = l_.storages[storage];
  if (!s.in_shared()) return {};
  const Storage& room = l_.storages[l_.room_of(storage)];
  const Within& within = s.shared().within;
  const std::int64_t copies = (room.shared().per_warpgroup ? l_.warpgroups : 1) *
                              (room.shared().per_warp ? graph::num_warps : 1);
  const bool is_part = within.storage && copies == 1;
  const std::int64_t begin = room.shared().offset + (is_part ? within.offset : 0);
  return {begin, begin + shared_bytes(is_part ? s : room).value_or(0) * copies};
}

}  // namespace palladium::lowered
