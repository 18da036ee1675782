#include "codegen/timeline/run.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "codegen/device/waist.hpp"

namespace palladium::timeline {

using device::Completion;
using Kind = Act::Kind;
using lowered::BarrierId;

Trace Run::operator()(int blocks, int rounds, double apart) {
  rounds_ = rounds;
  begin(blocks, apart);
  do {
    for (bool moves = true; moves;) {
      moves = false;
      for (Worker& w : workers_) moves |= step(w);
    }
  } while (pass_time());
  Trace trace{.flights = flights_, .stretches = fluid_.stretches(), .end = fluid_.now()};
  for (Worker& w : workers_) {
    trace.is_stuck |= !is_done(w);
    trace.tracks.push_back(std::move(w.track));
  }
  return trace;
}

void Run::begin(int blocks, double apart) {
  blocks_.assign(static_cast<std::size_t>(blocks), {});
  for (int b = 0; b < blocks; ++b) {
    Block& x = blocks_[static_cast<std::size_t>(b)];
    x.from = b * apart;
    enter(x);
    timers_.insert({x.from, {}});
    for (std::size_t a = 0; a < m_.agents.size(); ++a) {
      const int groups = m_.agents[a].is_one_thread ? 1 : m_.agents[a].warpgroups;
      for (int g = 0; g < groups; ++g)
        workers_.push_back({.track = {.block = b, .agent = static_cast<int>(a), .group = g}});
    }
  }
}

void Run::enter(Block& b) {
  b.barriers.assign(static_cast<std::size_t>(m_.barriers), {});
  for (const BarrierId id : m_.program->barriers.ids()) {
    const lowered::Barriers& x = m_.program->barriers[id];
    for (std::int64_t s = 0; s < m_.program->storages[x.storage].shape[0]; ++s) {
      Barrier& barrier = b.barriers[static_cast<std::size_t>(m_.first_barrier[id] + s)];
      barrier.arrivals = barrier.pending = x.arrivals;
    }
  }
}

// ---- who works

bool Run::step(Worker& w) {
  if (w.works || is_done(w) || block(w).from > fluid_.now()) return false;
  const Event& e = event(w);
  if (e.is_left_out) {
    ++w.next;
    return true;
  }
  if (!w.has_come) {
    w.has_come = true;
    w.now = {.event = static_cast<int>(w.next), .round = block(w).round, .reached = fluid_.now()};
    w.syncs += e.act->kind == Kind::sync && !e.act->by_warpgroups;
  }
  if (!is_others(w, e) && !is_open(w, e)) return false;
  w.now.open = fluid_.now();
  start(w, e);
  return true;
}

// What one thread does for all is the first warpgroup's.
bool Run::is_others(const Worker& w, const Event& e) const {
  if (w.track.group == 0 || e.act->by_warpgroups) return false;
  const bool is_bulk = e.act->group == Completion::bulk_group;
  switch (e.act->kind) {
  case Kind::copy:
  case Kind::send:
  case Kind::expect: return true;
  case Kind::close:
  case Kind::wait_group: return is_bulk;
  default: return false;
  }
}

bool Run::is_open(const Worker& w, const Event& e) const {
  const Act& a = *e.act;
  if (a.kind == Kind::wait) {
    const Barrier& b = block(w).barriers[static_cast<std::size_t>(e.barrier)];
    return ((b.phases ^ e.phase) & 1) != 0;
  }
  const auto pending = static_cast<std::size_t>(a.pending);
  if (a.kind == Kind::sync && !a.by_warpgroups)
    return std::ranges::all_of(workers_, [&](const Worker& other) {
      return other.track.block != w.track.block || other.track.agent != w.track.agent ||
             other.syncs >= w.syncs;
    });
  if (a.kind != Kind::wait_group) return true;
  if (a.group == Completion::wgmma_group)
    return is_over(w.products, w.products.size() - std::min(pending, w.products.size()));
  const bool is_bulk = a.group == Completion::bulk_group;
  const std::vector<int>& groups = is_bulk ? w.send_groups : w.copy_groups;
  const std::size_t over = groups.size() - std::min(pending, groups.size());
  return over == 0 ||
         is_over(is_bulk ? w.sends : w.copies, static_cast<std::size_t>(groups[over - 1]));
}

bool Run::is_over(const std::vector<int>& flights, std::size_t count) const {
  return std::all_of(flights.begin(), flights.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](int f) { return is_known_[static_cast<std::size_t>(f)]; });
}

// The parts of a statement follow one another: the first has the instructions of all of them.
void Run::start(Worker& w, const Event& e) {
  const lowered::protocol::Agent& agent = m_.agents[static_cast<std::size_t>(w.track.agent)];
  Cost cost;
  if (!is_others(w, e)) {
    const Event* const before =
        w.next > 0 ? &events_[static_cast<std::size_t>(w.track.agent)][w.next - 1] : nullptr;
    const bool is_first = before == nullptr || before->act->by != e.act->by ||
                          before->iteration != e.iteration || before->is_left_out;
    cost = costs_.of_threads(*e.act, agent.warpgroups, agent.is_one_thread, is_first);
  }
  w.works = true;
  w.now.alone = cost.least() + cost.behind;
  w.behind = cost.behind;
  if (w.now.alone == 0) return finish(w);
  w.work = fluid_.begin(cost);
}

void Run::finish(Worker& w) {
  const Event& e = event(w);
  w.now.end = fluid_.now();
  w.track.moments.push_back(w.now);
  if (!is_others(w, e)) perform(w, e);
  ++w.next;
  w.works = w.has_come = false;
  if (is_done(w)) end_round(block(w), w.track.block);
}

// Barriers are made anew for the block that takes the place of one that is done.
void Run::end_round(Block& b, int number) {
  const auto is_of = [&](const Worker& w) { return w.track.block == number; };
  if (std::ranges::any_of(workers_, [&](const Worker& w) { return is_of(w) && !is_done(w); }))
    return;
  if (++b.round >= rounds_) return;
  enter(b);
  for (Worker& w : workers_)
    if (is_of(w)) w.next = 0;
}

// ---- what they do

void Run::perform(Worker& w, const Event& e) {
  const Act& a = *e.act;
  switch (a.kind) {
  case Kind::product: w.products.push_back(launch(w, e, Queue::products)); break;
  case Kind::copy: launch(w, e, Queue::copies, a.bytes); break;
  case Kind::send: w.sends.push_back(launch(w, e, Queue::sends)); break;
  case Kind::copy_by_threads: w.copies.push_back(launch(w, e, Queue::thread_copies)); break;
  case Kind::close:
    if (a.group == Completion::bulk_group)
      w.send_groups.push_back(static_cast<int>(w.sends.size()));
    else
      w.copy_groups.push_back(static_cast<int>(w.copies.size()));
    break;
  case Kind::expect: arrive(w.track.block, e.barrier, a.bytes, 1); break;
  case Kind::arrive:
    timers_.insert({fluid_.now() + costs_.speeds().tell,
                    {.barrier = e.barrier,
                     .block = w.track.block,
                     .counts = lowered::blocks_told(*m_.program, a.barrier)}});
    break;
  default: break;
  }
}

int Run::launch(Worker& w, const Event& e, Queue queue, std::int64_t bytes) {
  const auto flight = static_cast<int>(flights_.size());
  Cost cost = costs_.of_flight(*e.act);
  if (queue == Queue::copies && cost.of(Part::memory) > 0) queue = Queue::copies_from_memory;
  flights_.push_back({.queue = queue,
                      .block = w.track.block,
                      .agent = w.track.agent,
                      .group = w.track.group,
                      .event = static_cast<int>(w.next)});
  is_known_.push_back(false);
  lines_[static_cast<std::size_t>(queue)].waiting.push_back(
      {flight, cost, bytes > 0 ? e.barrier : -1, bytes});
  pump(queue);
  return flight;
}

// What was begun first is done first.
void Run::pump(Queue queue) {
  Line& line = lines_[static_cast<std::size_t>(queue)];
  if (line.work >= 0 || line.waiting.empty()) return;
  flights_[static_cast<std::size_t>(line.waiting.front().flight)].begin = fluid_.now();
  line.work = fluid_.begin(line.waiting.front().cost);
}

void Run::arrive(int block, int barrier, std::int64_t bytes, int counts) {
  Barrier& b = blocks_[static_cast<std::size_t>(block)].barriers[static_cast<std::size_t>(barrier)];
  b.bytes += bytes;
  b.pending -= counts;
  if (b.pending > 0 || b.bytes > 0) return;
  b.pending = b.arrivals;
  b.bytes = 0;
  ++b.phases;
}

// ---- time

bool Run::pass_time() {
  const double until = timers_.empty() ? std::numeric_limits<double>::infinity()
                                       : std::max(0.0, timers_.begin()->first - fluid_.now());
  const double time = std::min(fluid_.until_next(), until);
  if (time == std::numeric_limits<double>::infinity()) return false;
  for (const int work : fluid_.advance(time)) done(work);
  while (!timers_.empty() && timers_.begin()->first <= fluid_.now() + 1e-9) {
    const Timer t = timers_.begin()->second;
    timers_.erase(timers_.begin());
    ring(t);
  }
  return true;
}

void Run::done(int work) {
  for (std::size_t q = 0; q < queues; ++q) {
    Line& line = lines_[q];
    if (line.work != work) continue;
    const Waiting over = line.waiting.front();
    line.waiting.pop_front();
    line.work = -1;
    Flight& f = flights_[static_cast<std::size_t>(over.flight)];
    f.end = fluid_.now();
    timers_.insert(
        {fluid_.now() + over.cost.behind,
         {.flight = over.flight, .barrier = over.barrier, .block = f.block, .bytes = over.bytes}});
    return pump(static_cast<Queue>(q));
  }
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].works && workers_[i].work == work)
      timers_.insert({fluid_.now() + workers_[i].behind, {.worker = static_cast<int>(i)}});
}

void Run::ring(const Timer& t) {
  if (t.worker >= 0) finish(workers_[static_cast<std::size_t>(t.worker)]);
  if (t.flight >= 0) is_known_[static_cast<std::size_t>(t.flight)] = true;
  if (t.barrier >= 0) arrive(t.block, t.barrier, -t.bytes, t.counts);
}

}  // namespace palladium::timeline
