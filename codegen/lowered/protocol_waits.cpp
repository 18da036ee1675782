// Barriers, groups and the end of the kernel: who waits for whom.
#include "codegen/lowered/protocol_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/protocol_table.hpp"

namespace palladium::lowered::protocol {

using Kind = Act::Kind;

// The blocks that something is done to.
std::vector<int> Run::told(const Event& e) const {
  if (m_.blocks == 1 || e.act->along.empty()) return {block()};
  const std::uint64_t beside = blocks_beside(m_.program->graph, block(), e.act->along);
  std::vector<int> all;
  for (int other = 0; other < m_.blocks; ++other)
    if ((beside >> other & 1) != 0) all.push_back(other);
  return all;
}

void Run::tell(const Event& e, int at) {
  const int counts = m_.blocks == 1 ? blocks_told(*m_.program, e.act->barrier) : 1;
  for (const int other : told(e)) {
    if (other != block()) reached_.push_back({other, at, &e});
    arrive(e, other, at, 0, counts);
  }
}

void Run::arrive(const Event& e, int block, int at, std::int64_t bytes, int counts) {
  Barrier& b = barriers_[barrier(e, block)];
  if (b.phases > 0 && !order_.before(b.over.back(), at))
    fail(e,
         fmt::format("{} may be told before its phase {} is over, and count for that", name(e),
                     b.phases - 1),
         {at});
  if (b.pending < counts)
    fail(e, fmt::format("{} is told more often than it counts", name(e)), {at});
  b.behind.push_back(at);
  b.bytes += bytes;
  b.pending -= counts;
  if (b.pending > 0) return;
  if (b.bytes < 0)
    fail(e, fmt::format("{} gets {} bytes more than are expected of it", name(e), -b.bytes), {at});
  if (b.bytes <= 0) end_phase(e, b);
}

void Run::end_phase(const Event& e, Barrier& b) {
  const int end = order_.add(b.behind);
  happenings_.push_back({agent_, event_, true});
  for (const Barrier::Awaited& w : b.awaited)
    if (w.phase == b.phases - 1 && !order_.before(w.at, end)) {
      fail(e,
           fmt::format("{} ends its phase {} before {} has seen that phase {} is over", name(e),
                       b.phases, line(*w.event), b.phases - 1),
           {end});
      break;
    }
  std::erase_if(b.awaited, [&](const Barrier::Awaited& w) { return w.phase < b.phases; });
  b.over.push_back(end);
  b.behind.clear();
  b.bytes = 0;
  b.pending = b.arrivals;
  ++b.phases;
}

void Run::wait(const Event& e) {
  Barrier& b = barriers_[barrier(e, block())];
  const std::int64_t n = e.phase;
  if (b.phases != n + 1)
    fail(e,
         fmt::format("the wait for phase {} of {} takes the end of phase {} for it", n, name(e),
                     b.phases - 1),
         {teams_[static_cast<std::size_t>(agent_)].threads[0].last,
          b.over.empty() ? -1 : b.over.back()});
  for (Thread& t : teams_[static_cast<std::size_t>(agent_)].threads) {
    if (n >= 1 && std::cmp_less(n - 1, b.over.size()) &&
        !order_.before(b.over[static_cast<std::size_t>(n - 1)], t.last))
      fail(e,
           fmt::format("the wait for phase {} of {} may come before phase {} is over, and pass", n,
                       name(e), n - 1),
           {t.last});
    const int over =
        n >= 0 && std::cmp_less(n, b.over.size()) ? b.over[static_cast<std::size_t>(n)] : -1;
    const int at = happen(t, {over});
    b.awaited.push_back({n, at, &e});
  }
}

void Run::close(const Event& e) {
  const bool bulk = e.act->group == device::Completion::bulk_group;
  for (Thread& t : teams_[static_cast<std::size_t>(agent_)].threads) {
    std::vector<int>& open = bulk ? t.sends : t.copies;
    std::vector<int>& groups = bulk ? t.send_groups : t.groups;
    if (!groups.empty()) open.push_back(groups.back());
    happenings_.push_back({agent_, event_, false});
    groups.push_back(order_.add(open));
    open.clear();
    if (bulk) return;
  }
}

void Run::wait_group(const Event& e) {
  const bool bulk = e.act->group == device::Completion::bulk_group;
  const bool products = e.act->group == device::Completion::wgmma_group;
  std::vector<Thread>& threads = teams_[static_cast<std::size_t>(agent_)].threads;
  for (Thread& t : threads) {
    const std::vector<int>& groups = bulk ? t.send_groups
                                     : products
                                         ? threads[static_cast<std::size_t>(t.warpgroup)].products
                                         : t.groups;
    const std::int64_t last = std::ssize(groups) - 1 - e.act->pending;
    happen(t, {last >= 0 ? groups[static_cast<std::size_t>(last)] : -1});
    if (bulk) return;
  }
}

void Run::sync() {
  std::vector<Thread>& threads = teams_[static_cast<std::size_t>(agent_)].threads;
  const int at = happen(threads[0]);
  for (Thread& t : threads)
    if (const int last = std::exchange(t.last, at); last != at) order_.add_to(at, last);
}

void Run::sync_warpgroups() {
  std::map<int, int> met;
  for (Thread& t : teams_[static_cast<std::size_t>(agent_)].threads) {
    const auto [at, is_first] = met.try_emplace(t.warpgroup, -1);
    if (is_first) at->second = happen(t);
    if (const int last = std::exchange(t.last, at->second); last != at->second)
      order_.add_to(at->second, last);
  }
}

bool Run::all_meet(const std::vector<std::vector<Event>>& events) const {
  for (std::size_t i = 0; i < teams_.size(); ++i) {
    const Team& team = teams_[i];
    if (team.meetings > meetings_.size()) continue;
    if (team.next == events[i].size() || events[i][team.next].act->kind != Kind::meet) return false;
  }
  return true;
}

// The first to go on is behind all others.
void Run::meet() {
  Team& own = teams_[static_cast<std::size_t>(agent_)];
  if (own.meetings == meetings_.size()) {
    std::vector<int> all;
    for (const Team& team : teams_)
      for (const Thread& t : team.threads) all.push_back(t.last);
    happenings_.push_back({agent_, event_, false});
    meetings_.push_back(order_.add(all));
  }
  const int at = meetings_[own.meetings++];
  for (Thread& t : own.threads) happen(t, {at});
}

bool Run::tell_stuck(const std::vector<std::vector<Event>>& events, const std::vector<int>& lasts) {
  for (agent_ = 0; std::cmp_less(agent_, teams_.size()); ++agent_) {
    const auto at = static_cast<std::size_t>(agent_);
    if (teams_[at].next == events[at].size()) continue;
    const Event& e = events[at][teams_[at].next];
    const std::string what =
        e.act->kind == Kind::meet
            ? "the cluster, of which not all come"
            : fmt::format("phase {} of {}, which nobody ends", e.phase, name(e));
    keep(e, fmt::format("deadlock: {} waits for {}", m_.agents[at].name, what), lasts);
    return true;
  }
  return false;
}

bool Run::is_over(int at, const std::vector<int>& lasts) const {
  return std::ranges::any_of(lasts, [&](int last) { return order_.before(at, last); });
}

// What is under way behind the kernel fills what is no more its own; so does what other blocks do
// to a block that has ended.
void Run::finish(const std::vector<std::vector<Event>>& events) {
  std::vector<std::vector<int>> lasts(static_cast<std::size_t>(m_.blocks));
  std::vector<int> all;
  for (std::size_t i = 0; i < teams_.size(); ++i)
    for (const Thread& t : teams_[i].threads) {
      lasts[static_cast<std::size_t>(m_.agents[i].block)].push_back(t.last);
      all.push_back(t.last);
    }
  if (tell_stuck(events, all) || found_.is_found()) return;
  for (const Reach& r : reached_)
    if (!is_over(r.at, lasts[static_cast<std::size_t>(r.block)]))
      return fail(*r.event,
                  fmt::format("block {} may have ended before {} reaches its memory", r.block,
                              line(*r.event)),
                  {r.at});
  end_cells(lasts);
}

void Run::end_cells(const std::vector<std::vector<int>>& lasts) {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const CellState& c = cells_[i];
    for (const std::vector<Access>& accesses : {c.fills, c.reads})
      for (const Access& a : accesses)
        if (a.asynchronous && !is_over(a.end, lasts[i / m_.cells.size()]))
          return fail(*a.event,
                      fmt::format("{} is still under way when the kernel ends", line(*a.event)),
                      {a.begin});
    if (c.version >= 0 && c.is_filled && !c.is_seen)
      return fail(*c.fills[0].event,
                  fmt::format("{} is filled for an iteration that does not read it",
                              name({static_cast<int>(i % m_.cells.size()), c.version, true})),
                  {c.fills[0].begin});
  }
}

}  // namespace palladium::lowered::protocol
