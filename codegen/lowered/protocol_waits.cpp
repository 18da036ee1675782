// Barriers, groups and the end of the kernel: who waits for whom.
#include "codegen/lowered/protocol_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/protocol_table.hpp"

namespace palladium::lowered::protocol {

void Run::arrive(const Event& e, int at, std::int64_t bytes, bool counts) {
  Barrier& b = barriers_[static_cast<std::size_t>(e.barrier)];
  if (b.phases > 0 && !order_.before(b.over.back(), at))
    fail(e,
         fmt::format("{} may be told before its phase {} is over, and count for that", name(e),
                     b.phases - 1),
         {at});
  if (counts && b.pending == 0)
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
  Barrier& b = barriers_[static_cast<std::size_t>(e.barrier)];
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

bool Run::tell_stuck(const std::vector<std::vector<Event>>& events, const std::vector<int>& lasts) {
  for (agent_ = 0; std::cmp_less(agent_, teams_.size()); ++agent_) {
    const auto at = static_cast<std::size_t>(agent_);
    if (teams_[at].next == events[at].size()) continue;
    const Event& e = events[at][teams_[at].next];
    keep(e,
         fmt::format("deadlock: {} waits for phase {} of {}, which nobody ends", m_.agents[at].name,
                     e.phase, name(e)),
         lasts);
    return true;
  }
  return false;
}

// What is under way behind the kernel fills what is no more its own.
void Run::finish(const std::vector<std::vector<Event>>& events) {
  std::vector<int> lasts;
  for (const Team& team : teams_)
    for (const Thread& t : team.threads) lasts.push_back(t.last);
  if (tell_stuck(events, lasts) || found_.is_found()) return;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const CellState& c = cells_[i];
    for (const std::vector<Access>& accesses : {c.fills, c.reads})
      for (const Access& a : accesses)
        if (a.asynchronous &&
            std::ranges::none_of(lasts, [&](int last) { return order_.before(a.end, last); }))
          return fail(*a.event,
                      fmt::format("{} is still under way when the kernel ends", line(*a.event)),
                      {a.begin});
    if (c.version >= 0 && c.is_filled && !c.is_seen)
      return fail(*c.fills[0].event,
                  fmt::format("{} is filled for an iteration that does not read it",
                              name({static_cast<int>(i), c.version, true})),
                  {c.fills[0].begin});
  }
}

}  // namespace palladium::lowered::protocol
