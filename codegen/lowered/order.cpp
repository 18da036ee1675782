#include "codegen/lowered/order.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "codegen/lowered/effects.hpp"

namespace palladium::lowered {
namespace {

using device::Completion;

template <class T>
bool is(const Statement& s) {
  return std::holds_alternative<T>(s.what);
}

// What one thread does for all, behind what it says is to come.
bool is_elected(const Statement& s) {
  const Arrive* const arrive = std::get_if<Arrive>(&s.what);
  const Close* const close = std::get_if<Close>(&s.what);
  return is<Copy>(s) || (arrive != nullptr && arrive->bytes > 0) ||
         (close != nullptr && close->kind == Completion::bulk_group);
}

// Whether something goes on behind its statement.
bool begins_any(const Statements& list) {
  return std::ranges::any_of(list, [](const Statement& s) {
    const LoopNest* const p = std::get_if<LoopNest>(&s.what);
    const Dot* const d = std::get_if<Dot>(&s.what);
    bool found = is<Copy>(s) || (d != nullptr && is_of_wgmma(d->unit));
    if (p != nullptr)
      std::visit(
          [&](const auto& to) {
            if constexpr (requires { to.by.asynchronous; }) found = to.by.asynchronous;
          },
          p->sink);
    for_each_body(s, [&](const Statements& body) { found = found || begins_any(body); });
    return found;
  });
}

std::size_t end_of_unit(const Statements& list, std::size_t at) {
  std::size_t end = at + 1;
  while (is_elected(list[at]) && end < list.size() && is_elected(list[end]) &&
         !is<Arrive>(list[end]))
    ++end;
  return end;
}

}  // namespace

bool Order::State::add(const State& other) {
  const auto size = [&] {
    return accesses.size() + unfenced.size() + fenced.size() + flights.size();
  };
  const std::size_t before = size();
  accesses.insert(other.accesses.begin(), other.accesses.end());
  unfenced.insert(other.unfenced.begin(), other.unfenced.end());
  fenced.insert(other.fenced.begin(), other.fenced.end());
  flights.insert(other.flights.begin(), other.flights.end());
  return size() > before;
}

Order::Order(const Program& l, Ask asked, bool complete)
    : l_(l), asked_(asked), rings_(l.storages.size()) {
  if (complete || asked == Ask::threads) {
    oldest_ = 1;
    for_each_list(l, [&](const Statements& list) { find_oldest(list); });
  }
  for (const StorageId s : l.storages.ids()) rings_[s] = l.storages[s].ring();
  for (const Barriers& b : l.barriers) rings_[b.storage] = b.ring;
  for (const Window& w : l.windows) {
    if (w.mapping < 0) continue;
    const int array = l.graph.alias_class(w.root);
    if (w.is_synchronised()) synchronised_.insert(array);
    if (w.fills() && w.flushes()) refilled_.insert(array);
  }
}

void Order::find_oldest(const Statements& list) {
  for (const Statement& s : list) {
    if (const WaitGroup* const w = std::get_if<WaitGroup>(&s.what))
      oldest_ = std::clamp(w->pending + 1, oldest_, oldest);
    for_each_body(s, [&](const Statements& body) { find_oldest(body); });
  }
}

Needed Order::missing(const Statements& agent) {
  if (asked_ == Ask::groups ? !begins_any(agent) : !shares_any()) return {};
  Home around;
  if (asked_ == Ask::groups)
    find_homes(agent, around);
  else
    for_each_list(l_, [&](const Statements& list) {
      find_async(list);
      find_read_by_threads(list);
    });
  facts_.clear();  // what it is to free a slot is known from here on
  State state;
  walk(agent, state, Mode::note, nullptr);
  leave_out_vain(agent);
  return std::move(needed_);
}

bool Order::shares_any() const {
  return !synchronised_.empty() || !refilled_.empty() ||
         std::ranges::any_of(l_.storages, [](const Storage& s) {
           return s.in_shared() && shared_bytes(s).value_or(1) > 0;
         });
}

// What iterations need of each other was found before what stands around their loop, which may
// serve both; and a fence may come before it is known that another will.
void Order::leave_out_vain(const Statements& agent) {
  is_settled_ = true;
  const bool all = needed_.before.size() <= most_looked_at_again;
  for (const Noted& need : noted_) {
    const auto outer = std::span(last_noted_).first(static_cast<std::size_t>(need.level));
    const bool is_last = std::ranges::all_of(outer, [&](int last) { return last < need.number; });
    const auto at = needed_.before.find(need.before);
    if ((is_last && !all) || at == needed_.before.end()) continue;
    const Need whole = at->second;
    needed_.before.erase(at);
    if (!lacks_any(agent)) continue;
    if (whole.fence) {
      needed_.before[need.before] = {.sync = whole.sync,
                                     .meets_warpgroups = whole.meets_warpgroups};
      if (!lacks_any(agent)) continue;
    }
    needed_.before[need.before] = whole;
  }
}

bool Order::lacks_any(const Statements& agent) {
  left_.clear();
  passed_.clear();
  lacks_ = false;
  State state;
  walk(agent, state, Mode::assume, nullptr);
  return lacks_;
}

void Order::find_read_by_threads(const Statements& list) {
  for (const Statement& s : list) {
    for (const Touch& t : facts(s).touches)
      if (t.room.storage && !t.async && !t.writes)
        if (const RingId ring = l_.storages[t.room.storage].ring()) read_by_threads_.insert(ring);
    for_each_body(s, [&](const Statements& body) { find_read_by_threads(body); });
  }
}

void Order::find_async(const Statements& list) {
  for (const Statement& s : list) {
    for (const Touch& t : facts(s).touches)
      if (t.async && t.room.storage) async_.insert({.storage = t.room.storage, .slot = any_slot});
    for_each_body(s, [&](const Statements& body) { find_async(body); });
  }
}

void Order::find_homes(const Statements& list, Home& around) {
  for (const Statement& s : list) {
    for (const Touch& t : facts(s).touches) {
      if (!t.room.storage || !l_.storages[t.room.storage].in_registers()) continue;
      Home& home = homes_.try_emplace(t.room.storage, around).first->second;
      home.erase(std::ranges::mismatch(home, around).in1, home.end());
    }
    // What is added up is there from iteration to iteration.
    const Dot* const d = std::get_if<Dot>(&s.what);
    if (d != nullptr && d->accumulates) {
      Home& home = homes_[d->result];
      const auto repeated = [](const Statement* x) { return repeats(*x); };
      home.erase(std::ranges::find_if(home, repeated), home.end());
    }
    around.push_back(&s);
    for_each_body(s, [&](const Statements& body) { find_homes(body, around); });
    around.pop_back();
    if (const Rotation loop = rotation_of(s); loop.shared != nullptr)
      for (const StorageId shared : *loop.shared) homes_[shared] = around;
  }
}

// ---- the way through the statements

// `of`: the statement in which the list stands.
void Order::walk(const Statements& list, State& state, Mode mode, const Statement* of) {
  for (std::size_t i = 0; i < list.size();) {
    const std::size_t end = end_of_unit(list, i);
    step(list, i, end, state, mode);
    i = end;
  }
  if (const auto noted = needed_.behind.find(&list); noted != needed_.behind.end())
    meet(noted->second, state);
  if (const Need need = need_at_end(state, of))
    provide(mode == Mode::note ? needed_.behind[&list] : unnoted_, need, state, mode);
  // Nobody can name them any more.
  std::erase_if(state.flights,
                [&](const Flight& f) { return f.is_over && is_home(f.room.storage, of); });
}

// Whether the storage is there within the statement alone.
bool Order::is_home(StorageId storage, const Statement* of) const {
  const auto home = homes_.find(storage);
  return home != homes_.end() && std::ranges::count(home->second, of) > 0;
}

// Registers and shared memory are the block's for as long as it runs.
Need Order::need_at_end(const State& state, const Statement* of) const {
  Need need;
  if (asked_ == Ask::threads) return of != nullptr && is<IfMasked>(*of) ? need_of_few(state) : need;
  for (const Flight& f : state.flights) {
    if (f.is_over) continue;
    if (of == nullptr || is_home(f.room.storage, of)) need_flight(f, need);
  }
  for (auto& [kind, group] : need.groups) name_storages(kind, group, state);
  return need;
}

// Behind what few iterations do, so that the others do not wait for each other.
Need Order::need_of_few(const State& state) const {
  const auto is_read = [&](const Room& room) {
    return async_.contains({.storage = room.storage, .slot = any_slot});
  };
  const bool fence = std::ranges::any_of(state.unfenced, is_read);
  return {.groups = {}, .fence = fence, .sync = fence};
}

void Order::step(const Statements& list, std::size_t first, std::size_t end, State& state,
                 Mode mode) {
  const Statement& s = list[first];
  if (const auto noted = needed_.before.find(&s); noted != needed_.before.end())
    meet(noted->second, state);
  std::vector<Touch> touches;
  const bool at_once = is<Lead>(s) || is<Ahead>(s) || is<Warps>(s) || is<IfWhole>(s) ||
                       (is<Elected>(s) && asked_ == Ask::threads);
  for (std::size_t i = first; i < end; ++i)
    if (at_once)
      add_touches(list[i], 0, touches);
    else
      touches.insert(touches.end(), facts(list[i]).touches.begin(), facts(list[i]).touches.end());
  provide(s, need_of(touches, &s, state), state, mode);
  if (asked_ == Ask::groups && (is<When>(s) || is<Switch>(s) || repeats(s)))
    provide(s, need_of_copies(s, state), state, mode);
  for (std::size_t i = first; i < end; ++i) {
    apply(list[i], state);
    inside(list[i], state, mode);
  }
}

void Order::inside(const Statement& s, State& state, Mode mode) {
  if (repeats(s)) return loop(s, state, mode);
  if (const Lead* const e = std::get_if<Lead>(&s.what)) return lead(*e, s, state, mode);
  if (is<Warps>(s)) return warps(s, state, mode);
  if (const Elected* const e = std::get_if<Elected>(&s.what)) return elected(*e, s, state, mode);
  if (const Ahead* const e = std::get_if<Ahead>(&s.what)) {
    ahead_ += e->iterations;
    walk(e->body, state, mode, &s);
    ahead_ -= e->iterations;
    return;
  }
  if (const Scope* const scope = std::get_if<Scope>(&s.what))
    return walk(scope->body, state, mode, &s);
  if (is<When>(s) || is<IfMasked>(s)) {
    const State otherwise = state;
    for_each_body(s, [&](const Statements& body) { walk(body, state, mode, &s); });
    state.add(otherwise);
    return;
  }
  State behind;
  bool branches = false;
  for_each_body(s, [&](const Statements& body) {
    branches = true;
    State way = state;
    walk(body, way, mode, &s);
    behind.add(way);
  });
  if (branches) state = std::move(behind);
}

void Order::lead(const Lead& lead, const Statement& s, State& state, Mode mode) {
  const int before = ahead_;
  for (int k = 0; k < lead.iterations; ++k) {
    ahead_ = before + k;
    walk(lead.body, state, mode, &s);
  }
  ahead_ = before;
}

// Warps know nothing of each other's way: what they did is behind all of them.
void Order::warps(const Statement& s, State& state, Mode mode) {
  State within;
  within.flights = std::move(state.flights);
  walk(std::get<Warps>(s.what).body, within, mode, &s);
  state.flights = std::move(within.flights);
  std::vector<Touch> touches;
  add_touches(s, 0, touches);
  if (facts(s).syncs) return;
  for (const Touch& t : touches) record(t, s, state);
}

// One thread needs no barrier for what it does itself.
void Order::elected(const Elected& elected, const Statement& s, State& state, Mode mode) {
  if (asked_ == Ask::groups) return walk(elected.body, state, mode, &s);
  std::vector<Touch> touches;
  add_touches(s, 0, touches);
  for (const Touch& t : touches) record(t, s, state);
}

void Order::iteration(const Statement& s, State& state, Mode mode) {
  if (const While* const loop = std::get_if<While>(&s.what)) {
    walk(loop->test, state, mode, &s);
    walk(loop->body, state, mode, &s);
  } else {
    walk(*rotation_of(s).body, state, mode, &s);
  }
}

// Loops in each other are gone through many times, in few ways.
void Order::loop(const Statement& s, State& state, Mode mode) {
  if (mode == Mode::note) return through(s, state, mode);
  Way way{&s, ahead_, state};
  const auto known = passed_.find(way);
  if (known != passed_.end()) {
    state = known->second.behind;
    lacks_ |= known->second.lacks;
    return;
  }
  const bool outer = std::exchange(lacks_, false);
  through(s, state, mode);
  passed_.insert({std::move(way), {state, lacks_}});
  lacks_ |= outer;
}

// What stands in front of the loop and is in the way of an iteration is waited for there, once.
void Order::through(const Statement& s, State& state, Mode mode) {
  const Rotation loop = rotation_of(s);
  State before = state;
  if (loop.is_rotated()) walk(*loop.prologue, state, mode, &s);
  State in = state;
  in.add(left_by_iterations(s));
  State out = in;
  if (lacks(s, out)) {
    lacks_ = true;
    if (loop.is_rotated()) {
      iteration(s, in, mode);
    } else {
      std::vector<Touch> touches;
      add_touches(s, 0, touches);
      provide(s, need_of(touches, nullptr, state), state, mode);
      before = state;
    }
    in = state;
    in.add(left_by_iterations(s));
    out = in;
    iteration(s, out, Mode::assume);
  }
  forget_slots(s, out);
  if (loop.is_rotated()) {
    out.add(state);
    walk(*loop.epilogue, out, mode, &s);
  }
  if (const While* const tested = std::get_if<While>(&s.what)) {
    state = std::move(in);
    return walk(tested->test, state, Mode::assume, &s);
  }
  forget_slots(s, before);
  state = std::move(before);
  state.add(out);
}

const Order::State& Order::left_by_iterations(const Statement& s) {
  const auto [at, is_new] = left_.try_emplace(&s);
  State& left = at->second;
  if (!is_new) return left;
  const int ahead = std::exchange(ahead_, 0);
  const bool lacks = lacks_;
  const auto settle = [&] {
    State next;
    do {
      next = left;
      iteration(s, next, Mode::assume);
    } while (left.add(next));
  };
  settle();
  if (!is_settled_) {
    ++level_;
    State all = left;
    iteration(s, all, Mode::note);
    --level_;
    left = {};
    settle();
  }
  ahead_ = ahead;
  lacks_ = lacks;
  return left;
}

// Whether an iteration lacks anything that begins with `state`, which becomes what it leaves.
bool Order::lacks(const Statement& loop, State& state) {
  const bool outer = std::exchange(lacks_, false);
  iteration(loop, state, Mode::assume);
  return std::exchange(lacks_, outer);
}

// ---- what is in the way

Need Order::need_of(const std::vector<Touch>& touches, const Statement* s,
                    const State& state) const {
  Need need;
  for (const Touch& t : touches)
    if (asked_ == Ask::groups)
      need_groups(t, state, need);
    else
      need_threads(t, s, state, need);
  // Else whoever touches it would have to wait once more.
  need.fence = need.fence || (need.sync && std::ranges::any_of(state.unfenced, [&](const Room& r) {
                                return async_.contains({.storage = r.storage, .slot = any_slot});
                              }));
  for (auto& [kind, group] : need.groups) name_storages(kind, group, state);
  return need;
}

// Groups of copies by threads are waited for outside of branches: behind the wait all threads wait
// for each other, as they do before the next copies. Outside of loops, too, which may not run, but
// for those that the loop goes on to make.
Need Order::need_of_copies(const Statement& s, const State& state) {
  std::vector<Touch> touches;
  add_touches(s, 0, touches);
  State copies;
  for (const Flight& f : state.flights)
    if (f.on == Completion::cp_async_group && !(repeats(s) && ring_of(f.room)))
      copies.flights.insert(f);
  return need_of(touches, &s, copies);
}

void Order::need_groups(const Touch& t, const State& state, Need& need) const {
  for (const Flight& f : state.flights) {
    if (f.is_over || !(f.writes || t.writes) || (f.is_sum && t.is_sum)) continue;
    if (overlaps(f.room, ahead(t.room))) need_flight(f, need);
  }
}

void Order::need_flight(const Flight& f, Need& need) {
  const auto [at, is_new] = need.groups.try_emplace(f.on, Need::Group{f.age - 1});
  at->second.pending = std::min(at->second.pending, f.age - 1);
}

void Order::name_storages(Completion kind, Need::Group& group, const State& state) const {
  if (kind != Completion::wgmma_group) return;
  for (const bool sums : {true, false})
    for (const Flight& f : state.flights) {
      if (f.on != kind || f.age <= group.pending || f.is_sum != sums) continue;
      const bool held = l_.storages[f.room.storage].in_registers();
      if (held && std::ranges::count(group.storages, f.room.storage) == 0)
        group.storages.push_back(f.room.storage);
    }
}

void Order::name_awaited(const WaitGroup& wait, const Statement& s, const State& state) {
  if (wait.kind != Completion::wgmma_group) return;
  Need::Group& group = needed_.named.try_emplace(&s, Need::Group{wait.pending}).first->second;
  name_storages(wait.kind, group, state);
}

void Order::need_threads(const Touch& t, const Statement* s, const State& state, Need& need) const {
  const Room room = ahead(t.room);
  const auto wait = [&](const Room& other, bool is_met) {
    if (are_apart(other, room))
      need.meets_warpgroups |= !is_met;
    else
      need.sync = true;
  };
  for (const Access& a : state.accesses)
    if (conflicts(a, t, room, s)) wait(a.room, a.is_met);
  if (!t.async) return;
  for (const Room& r : state.unfenced)
    if (overlaps(r, room)) need.fence = true, wait(r, false);
  for (const Room& r : state.fenced)
    if (overlaps(r, room)) wait(r, false);
}

bool Order::conflicts(const Access& a, const Touch& t, const Room& room, const Statement* s) const {
  if (!(a.writes || t.writes) || !overlaps(a.room, room)) return false;
  if (room.array >= 0 && a.elements >= 0 && a.elements == t.elements) return false;
  if (room.array >= 0)
    return synchronised_.contains(room.array) || (!a.writes && refilled_.contains(room.array));
  return !t.by_warp || a.by_warp != s;
}

void Order::provide(const Statement& before, const Need& need, State& state, Mode mode) {
  if (!need) return;
  if (mode == Mode::note && asked_ == Ask::threads) number(before);
  provide(mode == Mode::note ? needed_.before[&before] : unnoted_, need, state, mode);
}

void Order::number(const Statement& before) {
  last_noted_.resize(std::max(last_noted_.size(), static_cast<std::size_t>(level_) + 1), -1);
  last_noted_[static_cast<std::size_t>(level_)] = ++number_;
  if (noted_.size() < 2 * most_looked_at_again) noted_.push_back({&before, level_, number_});
}

void Order::provide(Need& noted, const Need& need, State& state, Mode mode) {
  meet(need, state);
  if (mode == Mode::assume) lacks_ = true;
  if (mode != Mode::note) return;
  passed_.clear();
  noted.fence |= need.fence;
  noted.sync |= need.sync;
  noted.meets_warpgroups |= need.meets_warpgroups;
  for (const auto& [kind, group] : need.groups) {
    const auto [at, is_new] = noted.groups.try_emplace(kind, group);
    at->second.pending = std::min(at->second.pending, group.pending);
    for (const StorageId s : group.storages)
      if (std::ranges::count(at->second.storages, s) == 0) at->second.storages.push_back(s);
  }
}

void Order::meet(const Need& need, State& state) const {
  for (const auto& [kind, group] : need.groups) end_groups(kind, group.pending, state);
  if (need.fence) fence(state);
  if (need.sync) sync(state);
  if (need.meets_warpgroups) meet_warpgroups(state);
}

void Order::fence(State& state) { state.fenced.merge(state.unfenced), state.unfenced.clear(); }
void Order::sync(State& state) { state.accesses.clear(), state.fenced.clear(); }

// Who touches the same memory by another name has to wait for all, as before.
void Order::meet_warpgroups(State& state) const {
  const auto is_apart = [&](const Room& r) { return are_apart(r, r); };
  std::set<Access> all;
  for (Access a : state.accesses) a.is_met |= is_apart(a.room), all.insert(a);
  state.accesses = std::move(all);
  std::erase_if(state.fenced, is_apart);
}

// ---- what a statement leaves

void Order::apply(const Statement& s, State& state) {
  if (const WaitGroup* const w = std::get_if<WaitGroup>(&s.what)) {
    if (asked_ == Ask::groups && w->storages.empty()) name_awaited(*w, s, state);
    return end_groups(w->kind, w->pending, state);
  }
  if (const Close* const c = std::get_if<Close>(&s.what)) return close(c->kind, state);
  if (const Advance* const a = std::get_if<Advance>(&s.what)) return advance(a->ring, state);
  const Facts& all = facts(s);
  if (all.fences) fence(state);
  if (all.syncs) sync(state);
  if (all.meets_warpgroups) meet_warpgroups(state);
  for (const Touch& t : all.touches) record(t, s, state);
  if (const Dot* const d = std::get_if<Dot>(&s.what); d && is_of_wgmma(d->unit))
    close(Completion::wgmma_group, state);
}

void Order::record(const Touch& t, const Statement& s, State& state) const {
  const Room room = ahead(t.room);
  if (t.on != Completion::none) {
    state.flights.insert({room, t.writes, t.is_sum, t.on, 0, false});
  } else if (asked_ == Ask::threads && t.is_told) {
    const bool writes = t.writes && !t.is_exchanged;
    state.accesses.insert({room, writes, t.by_warp ? &s : nullptr, t.elements});
    if (t.writes) store(room, state);
  }
}

void Order::store(const Room& room, State& state) const {
  if (room.storage && std::ranges::any_of(async_, [&](const Room& r) { return overlaps(room, r); }))
    state.unfenced.insert(room);
}

// Who waits for a group knows that it is over; others have to wait for him. What has not been
// closed nobody can wait for.
void Order::end_groups(Completion kind, int pending, State& state) const {
  std::set<Flight> all;
  for (Flight f : state.flights) {
    const bool ends = f.on == kind && f.age > std::max(pending, 0);
    if (ends && asked_ == Ask::threads) {
      state.accesses.insert({f.room, f.writes, nullptr});
      if (f.writes) store(f.room, state);
    }
    f.is_over |= ends;
    if (!ends || (pending > 0 && f.is_sum && asked_ == Ask::groups)) all.insert(f);
  }
  state.flights = std::move(all);
}

void Order::close(Completion kind, State& state) const {
  std::set<Flight> all;
  for (Flight f : state.flights) {
    if (f.on == kind)
      f.age = std::min(f.age + 1, f.is_over ? std::min(oldest_over, oldest_) : oldest_);
    all.insert(f);
  }
  state.flights = std::move(all);
}

template <class Change>
void Order::change_rooms(State& state, const Change& change) {
  State changed;
  for (Access a : state.accesses) change(a.room), changed.accesses.insert(a);
  for (Flight f : state.flights) change(f.room), changed.flights.insert(f);
  for (Room r : state.unfenced) change(r), changed.unfenced.insert(r);
  for (Room r : state.fenced) change(r), changed.fenced.insert(r);
  state = std::move(changed);
}

void Order::advance(RingId ring, State& state) const {
  change_rooms(state, [&](Room& room) {
    if (ring_of(room) == ring) room = moved(room, -1);
  });
}

// How often a loop has gone on is not known behind it. Copies for iterations that it has not are
// not made: those of all others have been waited for.
void Order::forget_slots(const Statement& s, State& state) const {
  const std::set<RingId> advanced = rings_advanced(s);
  std::erase_if(state.flights, [&](const Flight& f) {
    return f.on == Completion::cp_async_group && advanced.contains(ring_of(f.room));
  });
  change_rooms(state, [&](Room& room) {
    if (advanced.contains(ring_of(room))) room.slot = any_slot;
  });
}

}  // namespace palladium::lowered
