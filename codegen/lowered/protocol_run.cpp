#include "codegen/lowered/protocol_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/protocol_table.hpp"

namespace palladium::lowered::protocol {

using Kind = Act::Kind;

// ---- a run

Fault Run::operator()(const std::vector<std::vector<Event>>& events) {
  begin(events);
  for (bool moves = true; moves;) {
    moves = false;
    for (agent_ = 0; std::cmp_less(agent_, teams_.size()); ++agent_) {
      Team& team = teams_[static_cast<std::size_t>(agent_)];
      const std::vector<Event>& all = events[static_cast<std::size_t>(agent_)];
      while (team.next < all.size() && is_open(events, all[team.next])) {
        event_ = static_cast<int>(team.next++);
        perform(all[static_cast<std::size_t>(event_)]);
        moves = true;
      }
    }
  }
  finish(events);
  total_ += order_.size();
  return std::exchange(found_, {});
}

void Run::begin(const std::vector<std::vector<Event>>& events) {
  order_.clear();
  happenings_.clear();
  meetings_.clear();
  reached_.clear();
  cells_.assign(m_.cells.size() * static_cast<std::size_t>(m_.blocks), {});
  barriers_.assign(static_cast<std::size_t>(m_.barriers * m_.blocks), {});
  for (const BarrierId b : m_.program->barriers.ids()) {
    const std::int64_t slots = m_.program->storages[m_.program->barriers[b].storage].shape[0];
    for (int block = 0; block < m_.blocks; ++block)
      for (std::int64_t s = 0; s < slots; ++s) {
        Barrier& x =
            barriers_[static_cast<std::size_t>(m_.barriers * block + m_.first_barrier[b] + s)];
        x.arrivals = x.pending = m_.program->barriers[b].arrivals + others_that_arrive(b, events);
      }
  }
  teams_.assign(events.size(), {});
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Agent& a = m_.agents[i];
    const int groups = a.is_one_thread        ? 1
                       : m_.counts_warpgroups ? a.warpgroups
                                              : std::min(a.warpgroups, 2);
    for (int g = 0; g < groups; ++g) teams_[i].threads.push_back({.warpgroup = g});
    if (!a.is_one_thread) teams_[i].threads.push_back({.is_first = false});
  }
}

// Threads beside the first ones of warpgroups that tell for their warps: one of each agent, in each
// block that tells.
int Run::others_that_arrive(BarrierId b, const std::vector<std::vector<Event>>& events) const {
  if (!m_.program->barriers[b].by_warps) return 0;
  const auto agents = std::ranges::count_if(events, [&](const std::vector<Event>& of_agent) {
    return std::ranges::any_of(of_agent, [&](const Event& e) {
      return e.act->kind == Kind::arrive && e.act->barrier == b;
    });
  });
  return static_cast<int>(agents) / m_.blocks * blocks_told(*m_.program, b);
}

bool Run::is_open(const std::vector<std::vector<Event>>& events, const Event& e) const {
  if (e.act->kind == Kind::meet)
    return teams_[static_cast<std::size_t>(agent_)].meetings < meetings_.size() || all_meet(events);
  if (e.act->kind != Kind::wait) return true;
  const Barrier& b = barriers_[barrier(e, block())];
  return ((b.phases ^ e.phase) & 1) != 0;
}

void Run::perform(const Event& e) {
  if (e.is_left_out) {
    for (const Touch& t : e.touches) state(t.cell, block()).is_seen = true;
    return;
  }
  switch (e.act->kind) {
  case Kind::access: return access(e);
  case Kind::copy_by_threads: return copy_by_threads(e);
  case Kind::copy: return copy(e);
  case Kind::send: return send(e);
  case Kind::product: return product(e);
  case Kind::expect: {
    Thread& first = teams_[static_cast<std::size_t>(agent_)].threads[0];
    return arrive(e, block(), happen(first), e.act->bytes, 1);
  }
  case Kind::arrive:
    for (Thread& t : teams_[static_cast<std::size_t>(agent_)].threads)
      if (t.is_first || m_.program->barriers[e.act->barrier].by_warps) tell(e, happen(t));
    return;
  case Kind::wait: return wait(e);
  case Kind::close: return close(e);
  case Kind::wait_group: return wait_group(e);
  case Kind::sync: return e.act->by_warpgroups ? sync_warpgroups() : sync();
  case Kind::meet: return meet();
  }
}

int Run::happen(Thread& t, std::initializer_list<int> behind) {
  const int n = order_.add({t.last});
  for (const int b : behind) order_.add_to(n, b);
  happenings_.push_back({agent_, event_, false});
  return t.last = n;
}

int Run::end_of(int begun, int behind) {
  happenings_.push_back({agent_, event_, true});
  return order_.add({begun, behind});
}

// ---- what is read and filled

void Run::access(const Event& e) {
  for (Thread& t : teams_[static_cast<std::size_t>(agent_)].threads) {
    const int at = happen(t);
    for (const Touch& touch : e.touches)
      if (!touch.fills) read(touch, {at, at, t.warpgroup * 2 + !t.is_first, &e, false});
  }
  for (const Touch& touch : e.touches) {
    if (!touch.fills) continue;
    std::vector<Access> all;
    for (const Thread& t : teams_[static_cast<std::size_t>(agent_)].threads)
      all.push_back({t.last, t.last, t.warpgroup * 2 + !t.is_first, &e, false});
    fill(touch, all);
  }
}

void Run::copy_by_threads(const Event& e) {
  std::vector<Access> all;
  for (Thread& t : teams_[static_cast<std::size_t>(agent_)].threads) {
    const int at = happen(t), end = end_of(at);
    t.copies.push_back(end);
    all.push_back({at, end, t.warpgroup * 2 + !t.is_first, &e, true});
    for (const Touch& touch : e.touches)
      if (!touch.fills) read(touch, {at, at, all.back().thread, &e, false});
  }
  for (const Touch& touch : e.touches)
    if (touch.fills) fill(touch, all);
}

void Run::copy(const Event& e) {
  const int at = happen(teams_[static_cast<std::size_t>(agent_)].threads[0]), end = end_of(at);
  // Alone a block stands for all who bring parts.
  const std::vector<int> blocks = told(e);
  for (const int filled : blocks) {
    if (filled != block()) reached_.push_back({filled, end, &e});
    for (const Touch& touch : e.touches)
      if (touch.fills) fill(touch, {{at, end, -1, &e, true}}, filled);
    arrive(e, filled, end, -e.act->bytes / std::ssize(blocks), 0);
  }
}

void Run::send(const Event& e) {
  Thread& first = teams_[static_cast<std::size_t>(agent_)].threads[0];
  const int at = happen(first), end = end_of(at);
  first.sends.push_back(end);
  for (const Touch& touch : e.touches)
    if (!touch.fills) read(touch, {at, end, -2, &e, true});
}

// Products of a warpgroup end one behind the other, when all of its threads have begun them.
void Run::product(const Event& e) {
  std::vector<Access> all;
  std::vector<Thread>& threads = teams_[static_cast<std::size_t>(agent_)].threads;
  const int other = threads.back().is_first ? -1 : happen(threads.back());
  for (Thread& t : threads) {
    if (!t.is_first) continue;
    const int at = happen(t);
    const int end = end_of(at, t.products.empty() ? -1 : t.products.back());
    if (t.warpgroup == 0 && other >= 0) order_.add_to(end, other);
    t.products.push_back(end);
    all.push_back({at, end, 100 + t.warpgroup, &e, true});
    for (const Touch& touch : e.touches)
      if (!touch.fills) read(touch, all.back());
  }
  for (const Touch& touch : e.touches)
    if (touch.fills) fill(touch, all);
}

void Run::read(const Touch& t, const Access& a) {
  CellState& c = state(t.cell, block());
  const Cell& cell = m_.cells[static_cast<std::size_t>(t.cell)];
  if (cell.in_registers && a.thread % 100 != 0) return;
  c.is_seen = true;
  if (t.version >= 0 && !c.is_filled)
    fail(*a.event, fmt::format("{} is read, and nobody has filled it", name(t)), {a.begin});
  else if (t.version >= 0 && c.version != t.version)
    fail(*a.event,
         fmt::format("{} is read, and holds what another iteration reads, by {}", name(t),
                     line(*c.fills[0].event)),
         {a.begin});
  else
    for (const Access& f : c.fills)
      if ((f.asynchronous || a.asynchronous) &&
          !(cell.in_registers && a.thread >= 100 && f.thread >= 100) &&
          !order_.before(f.end, a.begin)) {
        fail(*a.event,
             fmt::format("{} is read before it is full: what {} fills it with may still be under "
                         "way",
                         name(t), line(*f.event)),
             {a.begin});
        break;
      }
  const auto same = std::ranges::find_if(
      c.reads, [&](const Access& r) { return r.thread == a.thread && r.end <= a.end; });
  if (same == c.reads.end())
    c.reads.push_back(a);
  else
    *same = a;
}

void Run::fill(const Touch& t, const std::vector<Access>& all, int block) {
  CellState& c = state(t.cell, block);
  const Cell& cell = m_.cells[static_cast<std::size_t>(t.cell)];
  for (const Access& a : all) {
    if (cell.in_registers && a.thread % 100 != 0) continue;
    require_free(c, t, a, true);
    for (const int other : cell.others)
      require_free(state(other, block), {other, state(other, block).version, true}, a, false);
  }
  if (is_other_part(c, t, all[0])) return c.fills.push_back(all[0]);
  if (t.version >= 0 && c.is_filled && !c.is_seen && c.version != t.version)
    fail(*all[0].event,
         fmt::format("{} is filled again, and nobody has read what {} filled it with", name(t),
                     line(*c.fills[0].event)),
         {all[0].begin});
  c.before.swap(c.reads);
  for (const int other : cell.others) {
    CellState& o = state(other, block);
    c.before.insert(c.before.end(), o.reads.begin(), o.reads.end());
    o.is_filled = false;
    o.fills.clear();
    o.reads.clear();
  }
  c.is_seen = c.is_seen && c.is_filled && c.version == t.version;
  c.fills = all;
  if (cell.in_registers)
    std::erase_if(c.fills, [](const Access& a) { return a.thread % 100 != 0; });
  c.reads.clear();
  c.version = t.version;
  c.is_filled = true;
}

// Whether other blocks bring, or have brought, parts of the same.
bool Run::is_other_part(const CellState& c, const Touch& t, const Access& a) {
  return m_.blocks > 1 && !a.event->act->along.empty() && c.is_filled && c.version == t.version &&
         c.fills[0].event->act->by == a.event->act->by && c.fills[0].event != a.event;
}

// Of what threads alone touch, barriers between them are another rule's.
void Run::require_free(const CellState& c, const Touch& t, const Access& a, bool same) {
  const bool registers = m_.cells[static_cast<std::size_t>(t.cell)].in_registers;
  const auto is_early = [&](const Access& other) {
    if (!other.asynchronous && !a.asynchronous) return false;
    if (registers && same && other.thread >= 100 && a.thread >= 100) return false;
    return !order_.before(other.end, a.begin);
  };
  const bool is_part = is_other_part(c, t, a);
  std::vector<Access> reads = c.reads;
  if (is_part) reads.insert(reads.end(), c.before.begin(), c.before.end());
  for (const Access& r : reads)
    if (is_early(r))
      return fail(*a.event,
                  fmt::format("{} is filled before it is free: {} may still be reading it", name(t),
                              line(*r.event)),
                  {a.begin, same ? -1 : r.begin});
  for (const Access& f : c.fills)
    if (is_early(f) && f.event != a.event && !is_part)
      return fail(*a.event,
                  fmt::format("{} is filled before it is free: what {} fills it with may still be "
                              "under way",
                              name(t), line(*f.event)),
                  {a.begin});
}

// ---- what is told

std::string Run::line(const Event& e) const {
  const Statement& s = *e.act->by;
  return s.at.line > 0 ? fmt::format("line {}", s.at.line) : "a statement of no line";
}

std::string Run::name(const Touch& t) const {
  return name_of(m_, m_.cells[static_cast<std::size_t>(t.cell)]);
}

std::string Run::name(const Event& e) const { return name_of(m_, e); }

void Run::fail(const Event& e, const std::string& what, std::initializer_list<int> behind) {
  keep(e, what, {behind.begin(), behind.size()});
}

// All that leads there, in the order in which it happened.
void Run::keep(const Event& e, std::string what, std::span<const int> behind) {
  std::vector<Happening> steps;
  for (int i = 0; i < order_.size(); ++i)
    if (std::ranges::any_of(behind, [&](int b) { return b >= 0 && order_.before(i, b); }))
      steps.push_back(happenings_[static_cast<std::size_t>(i)]);
  if (found_.is_found() && found_.steps.size() <= steps.size()) return;
  found_ = {.what = std::move(what), .by = e.act->by, .steps = std::move(steps)};
}

}  // namespace palladium::lowered::protocol
