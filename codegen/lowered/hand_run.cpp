#include "codegen/lowered/hand_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "codegen/base/format.hpp"

namespace palladium::lowered::hand {

using Kind = Event::Kind;

Run::Run(const graph::Graph& g, const Way& way)
    : g_(g),
      way_(way),
      threads_(way.threads.size()),
      barriers_(way.barriers.size()),
      memories_(way.memories.size()) {
  const std::size_t known = 6 * threads_.size() + barriers_.size();
  for (Thread& t : threads_) t.knows.assign(known, 0);
  for (Memory& m : memories_) m.reads.resize(threads_.size() + 1);
  for (Memory& m : memories_) m.writes.resize(threads_.size() + 1);
  for (Barrier& b : barriers_) {
    b.told.assign(known, 0);
    b.known = b.told;
    b.waits.assign(threads_.size(), 0);
  }
}

Fault Run::operator()() {
  for (bool moves = true; moves && !found_.is_found();) {
    moves = false;
    for (thread_ = 0; thread_ < threads() && !found_.is_found(); ++thread_) {
      Thread& t = threads_[static_cast<std::size_t>(thread_)];
      const std::vector<Event>& all = way_.threads[static_cast<std::size_t>(thread_)];
      while (t.next < all.size() && is_open(thread_, all[t.next]) && !found_.is_found()) {
        const Event& e = all[t.next];
        order_.push_back({thread_, static_cast<int>(t.next++)});
        ++t.knows[static_cast<std::size_t>(thread_)];
        perform(thread_, e);
        moves = true;
      }
    }
  }
  if (!found_.is_found()) tell_stuck();
  if (!found_.is_found()) check_ends();
  return found_;
}

bool Run::is_open(int thread, const Event& e) const {
  const auto of = [&](int other) -> const Thread& {
    return threads_[static_cast<std::size_t>(other)];
  };
  switch (e.kind) {
  case Kind::wait: {
    const Barrier& b = barriers_[static_cast<std::size_t>(e.barrier)];
    return b.completed > waits(b, thread)[0];
  }
  case Kind::begin: return of(thread_of(thread)).parts > of(thread).parts;
  case Kind::meet:
    for (int w = 0; w < graph::num_warps; ++w)
      if (of(warp_of(thread, w)).ended < of(thread).parts) return false;
    return true;
  default: return true;
  }
}

void Run::perform(int thread, const Event& e) {
  Thread& t = threads_[static_cast<std::size_t>(thread)];
  switch (e.kind) {
  case Kind::read: return touch(thread, e, e.from, false);
  case Kind::write:
  case Kind::atomic: return touch(thread, e, e.to, true);
  case Kind::fetch: {
    const int until = fetched(e.barrier);
    const auto completion = barriers_[static_cast<std::size_t>(e.barrier)].completed + 1;
    touch(thread, e, e.from, false, until, completion);
    touch(thread, e, e.to, true, until, completion);
    if (e.parts > 0) barriers_[static_cast<std::size_t>(e.barrier)].coming += e.parts - 1;
    return arrive(thread, e);
  }
  case Kind::bring: return bring(thread, e);
  case Kind::send:
    ++t.open;
    t.sent = &e;
    touch(thread, e, e.from, false, sent(thread, false), t.closed + 1);
    return touch(thread, e, e.to, true, sent(thread, true), t.closed + 1);
  case Kind::take:
    t.taken = &e;
    touch(thread, e, e.from, false, taken(thread), ++t.takes);
    return touch(thread, e, e.to, true, taken(thread), t.takes);
  case Kind::taken: {
    std::int32_t& knows = t.knows[static_cast<std::size_t>(taken(thread))];
    knows = std::max(knows, t.takes - e.pending);
    return;
  }
  case Kind::commit:
    t.knows[static_cast<std::size_t>(committed(thread))] =
        t.knows[static_cast<std::size_t>(thread)];
    return;
  case Kind::close:
    ++t.closed;
    t.has_copies.push_back(std::exchange(t.open, 0) > 0);
    return;
  case Kind::await: return await(thread, e);
  case Kind::multiply:
    t.sums[e.sum] = {++t.products, &e};
    for (const int read : {e.from, e.other})
      if (read >= 0) touch(thread, e, read, false, multiplied(thread), t.products);
    return;
  case Kind::hold: return hold(thread, e);
  case Kind::finish: {
    std::int32_t& knows = t.knows[static_cast<std::size_t>(multiplied(thread))];
    knows = std::max(knows, t.products - e.pending);
    return;
  }
  case Kind::arrive: return arrive(thread, e);
  case Kind::wait: return wait(thread, e);
  case Kind::part: ++t.parts; return;
  case Kind::begin: return begin(thread);
  case Kind::end: return end(thread);
  case Kind::meet: return meet(thread);
  }
}

// ---- accesses

bool Run::is_before(const Access& a, const Clock& known) const {
  return a.until < 0 ? known[static_cast<std::size_t>(a.thread)] >= a.epoch
                     : known[static_cast<std::size_t>(a.until)] >= a.completion;
}

void Run::touch(int thread, const Event& e, int number, bool writes, int until,
                std::int32_t completion) {
  const Region& r = region(number);
  Memory& m = memories_[static_cast<std::size_t>(r.memory)];
  const Clock& known = threads_[static_cast<std::size_t>(thread)].knows;
  const Access mine{.region = number,
                    .thread = thread,
                    .epoch = known[static_cast<std::size_t>(thread)],
                    .until = until,
                    .completion = completion,
                    .event = &e,
                    .is_atomic = e.kind == Kind::atomic || (e.updates && writes)};
  compare(mine, m.writes, known);
  if (writes) compare(mine, m.reads, known);
  if (!writes && r.is_exact && !is_stored(m, r))
    fail(e, fmt::format("{} reads {} at {} before anything was stored there", name(thread),
                        way_.memories[static_cast<std::size_t>(r.memory)].name, at(e)));
  keep(m, mine, writes, known);
}

bool Run::is_stored(const Memory& m, const Region& r) const {
  constexpr int most_steps = 1 << 10;  // of more parts it is believed
  int steps = most_steps;
  return !way_.memories[static_cast<std::size_t>(r.memory)].is_shared ||
         is_stored(m.written, r, steps);
}

// What a region leaves of it the others have.
bool Run::is_stored(std::span<const int> written, Region r, int& steps) const {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const Region& w = region(written[i]);
    if (--steps < 0) return true;
    if (!w.meets(r)) continue;
    const std::span<const int> others = written.subspan(i + 1);
    for (std::size_t d = 0; d < std::min(r.rank, w.rank); ++d) {
      const auto has = [&](Region::Span part) {
        Region left = r;
        left.spans[d] = part;
        return part.from >= part.to || is_stored(others, left, steps);
      };
      const Region::Span mine = r.spans[d], other = w.spans[d];
      if (!has({mine.from, other.from}) || !has({other.to, mine.to})) return false;
      r.spans[d] = {std::max(mine.from, other.from), std::min(mine.to, other.to)};
    }
    return true;
  }
  return false;
}

// What a thread does itself is in order.
void Run::compare(const Access& mine, const Accesses& all, const Clock& known) {
  for (std::size_t t = 0; t < all.size(); ++t)
    if (mine.until >= 0 || std::cmp_not_equal(t, mine.thread))
      for (const Access& other : all[t]) compare(mine, other, known);
}

bool Run::is_by_threads(const Access& a) { return a.until < 0 || a.event->kind == Kind::take; }

void Run::compare(const Access& mine, const Access& other, const Clock& known) {
  ++compared_;
  if (mine.is_atomic && other.is_atomic) return;
  const Region &a = region(mine.region), &b = region(other.region);
  if (!a.meets(b)) return;
  const std::string& memory = way_.memories[static_cast<std::size_t>(a.memory)].name;
  std::string why;
  if (!is_before(other, known))
    why = "and nothing orders the two";
  else if (mine.until >= 0 && mine.event->kind != Kind::take && is_by_threads(other) &&
           other.region == other.event->to &&
           known[static_cast<std::size_t>(committed(other.thread))] < other.epoch)
    why = "and no plgpu::commit_smem() stands between the two";
  if (why.empty()) return;
  const std::string both =
      fmt::format("{}: {}, {}, {}", memory, words(mine, false), words(other, true), why);
  if (a.is_exact && b.is_exact)
    fail(*mine.event, "race on " + both, other.event, &known);
  else if (unsure_.empty())
    unsure_ = "data decide whether there is a race on " + both;
}

// What happened before a write that touches all of it needs nobody to look at it again.
void Run::keep(Memory& m, const Access& a, bool writes, const Clock& known) {
  const Region& r = region(a.region);
  const auto is_over = [&](const Access& other) {
    return r.covers(region(other.region)) && is_before(other, known);
  };
  const auto is_same = [&](const Access& other) {
    return is_over(other) && other.is_atomic == a.is_atomic;
  };
  constexpr std::size_t most = 64;  // of long lists nothing is left out: it would take long
  if (!writes) {
    std::vector<Access>& reads = own(m.reads, a);
    if (a.until < 0 && reads.size() < most) std::erase_if(reads, is_same);
    return reads.push_back(a);
  }
  for (Accesses* all : {&m.writes, &m.reads})
    for (std::vector<Access>& list : *all)
      if (list.size() < most) std::erase_if(list, is_over);
  own(m.writes, a).push_back(a);
  if (!way_.memories[static_cast<std::size_t>(r.memory)].is_shared ||
      std::ranges::any_of(m.written, [&](int w) { return region(w).covers(r); }))
    return;
  std::erase_if(m.written, [&](int w) { return r.covers(region(w)); });
  m.written.push_back(a.region);
}

// ---- barriers and groups

namespace {

template <class Clock>
void join(Clock& to, const Clock& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

void Run::arrive(int thread, const Event& e) {
  Barrier& b = barriers_[static_cast<std::size_t>(e.barrier)];
  const Clock& known = threads_[static_cast<std::size_t>(thread)].knows;
  if (named(e.barrier).arrivals > 1 && !knows_last(b, e.barrier, known))
    return fail(e, fmt::format("{} may arrive at {} at {} before its phase {} is over, and "
                               "count for that",
                               name(thread), named(e.barrier).name, at(e), b.completed - 1));
  if (b.arrived == named(e.barrier).arrivals)
    return fail(e, fmt::format("{} arrives at {} at {} once more, while parts of what other blocks "
                               "copy are missing for its phase {}",
                               name(thread), named(e.barrier).name, at(e), b.completed));
  join(b.told, known);
  b.by_copies = b.by_copies || e.kind == Kind::fetch;
  ++b.arrived;
  if (is_complete(b, e.barrier)) complete(b, e);
}

bool Run::is_complete(const Barrier& b, int number) const {
  return b.arrived == named(number).arrivals && b.coming == 0;
}

// What comes counts for the phase that its barrier is in.
void Run::bring(int thread, const Event& e) {
  Barrier& b = barriers_[static_cast<std::size_t>(e.barrier)];
  const Clock& known = threads_[static_cast<std::size_t>(thread)].knows;
  if (!knows_last(b, e.barrier, known))
    return fail(e, fmt::format("the copy of {} at {} may bring its part to {} before phase {} of "
                               "that is over, and count for that",
                               name(thread), at(e), named(e.barrier).name, b.completed - 1));
  touch(thread, e, e.to, true, fetched(e.barrier), b.completed + 1);
  // That its thread has seen barriers complete before it asked for the copy holds for who sees
  // that; what the thread did to memory a copy tells nobody.
  for (int other = 0; std::cmp_less(other, barriers_.size()); ++other) {
    const auto of = static_cast<std::size_t>(fetched(other));
    b.told[of] = std::max(b.told[of], known[of]);
  }
  b.by_copies = true;
  --b.coming;
  if (is_complete(b, e.barrier)) complete(b, e);
}

// By a wait, or because all who arrived had.
bool Run::knows_last(const Barrier& b, int number, const Clock& known) const {
  if (known[static_cast<std::size_t>(fetched(number))] >= b.completed) return true;
  if (b.last_by_copies) return false;
  for (std::size_t t = 0; t < threads_.size(); ++t)
    if (known[t] < b.known[t]) return false;
  return true;
}

void Run::complete(Barrier& b, const Event& e) {
  const std::string& barrier = named(e.barrier).name;
  const auto is_known = [&](const Seen& s) {
    return b.told[static_cast<std::size_t>(s.thread)] >= s.epoch;
  };
  if (b.completed > 0 && std::ranges::none_of(b.seen, is_known))
    return fail(e,
                fmt::format("{} completes phase {} with the arrival at {}, and nobody who arrives "
                            "knows that a thread has waited for phase {}",
                            barrier, b.completed, at(e), b.completed - 1),
                nullptr, &b.told);
  for (const Seen& s : b.seen)
    if (!is_known(s))
      return fail(
          e,
          fmt::format("{} may complete phase {} with the arrival at {} before {} has "
                      "waited for phase {} at {}",
                      barrier, b.completed, at(e), name(s.thread), b.completed - 1, at(*s.event)),
          s.event, &b.told);
  b.arrived = 0;
  b.last_by_copies = std::exchange(b.by_copies, false);
  ++b.completed;
  b.known = b.told;
  b.known[static_cast<std::size_t>(fetched(e.barrier))] = b.completed;
  b.seen.clear();
}

// How often it has waited, or each of its warps, of which each knows that for itself.
std::span<const std::int32_t> Run::waits(const Barrier& b, int thread) const {
  const std::span<const std::int32_t> all = b.waits;
  if (way_.first_warp == 0 || is_warp(thread))
    return all.subspan(static_cast<std::size_t>(thread), 1);
  return all.subspan(static_cast<std::size_t>(warp_of(thread, 0)), graph::num_warps);
}

void Run::wait(int thread, const Event& e) {
  Barrier& b = barriers_[static_cast<std::size_t>(e.barrier)];
  const std::span<const std::int32_t> own = waits(b, thread);
  const std::int32_t waited = own[0];
  if (std::ranges::any_of(own, [&](std::int32_t w) { return w != waited; }))
    return fail(e, fmt::format("{} waits at {} for {}, for which its warps have waited {} times: "
                               "all of them wait equally often before it does",
                               name(thread), at(e), named(e.barrier).name, fmt::join(own, ", ")));
  if (b.completed > waited + 1)
    return fail(e,
                fmt::format("{} waits at {} for phase {} of {}, which has completed phase "
                            "{}: a thread that waits for a barrier waits for every completion "
                            "of it",
                            name(thread), at(e), waited, named(e.barrier).name, b.completed - 1));
  const auto first = static_cast<std::size_t>(own.data() - b.waits.data());
  for (std::size_t i = 0; i < own.size(); ++i) ++b.waits[first + i];
  Clock& knows = threads_[static_cast<std::size_t>(thread)].knows;
  join(knows, b.known);
  b.seen.push_back({thread, knows[static_cast<std::size_t>(thread)], &e});
}

void Run::await(int thread, const Event& e) {
  Thread& t = threads_[static_cast<std::size_t>(thread)];
  const std::int32_t done = std::max(0, t.closed - e.pending);
  t.read = std::max(t.read, done);
  const auto learn = [&](bool is_written) {
    std::int32_t& knows = t.knows[static_cast<std::size_t>(sent(thread, is_written))];
    knows = std::max(knows, done);
  };
  learn(false);
  if (!e.read_only) learn(true);
}

// Of an accumulator nobody but products knows anything while one may add to it.
void Run::hold(int thread, const Event& e) {
  const Thread& t = threads_[static_cast<std::size_t>(thread)];
  const auto last = t.sums.find(e.sum);
  if (last == t.sums.end()) return;
  const auto& [number, product] = last->second;
  if (t.knows[static_cast<std::size_t>(multiplied(thread))] >= number) return;
  fail(e,
       fmt::format("{} {} {} at {} while its product that began at {} may still add to it: "
                   "plgpu::wgmma_wait({})",
                   name(thread), g_[e.by].op == graph::Op::Load ? "reads" : "stores to",
                   way_.memories[static_cast<std::size_t>(e.sum)].name, at(e), at(*product),
                   t.products - number),
       product);
}

// ---- warps

// What its thread knows a warp knows, and its thread what its warps know when they have ended.
void Run::begin(int warp) {
  Thread& t = threads_[static_cast<std::size_t>(warp)];
  ++t.parts;
  join(t.knows, threads_[static_cast<std::size_t>(thread_of(warp))].knows);
}

void Run::end(int warp) {
  Thread& t = threads_[static_cast<std::size_t>(warp)];
  ++t.ended;
  if (std::exchange(t.open, 0) > 0) {
    ++t.closed;
    t.has_copies.push_back(true);
  }
  check_sent(warp);
}

void Run::meet(int thread) {
  for (int w = 0; w < graph::num_warps; ++w)
    join(threads_[static_cast<std::size_t>(thread)].knows,
         threads_[static_cast<std::size_t>(warp_of(thread, w))].knows);
}

// ---- ends

void Run::tell_stuck() {
  std::string all;
  const Event* first = nullptr;
  for (int i = 0; i < threads(); ++i) {
    const Thread& t = threads_[static_cast<std::size_t>(i)];
    const std::vector<Event>& events = way_.threads[static_cast<std::size_t>(i)];
    if (t.next == events.size() || events[t.next].kind != Kind::wait) continue;
    const Event& e = events[t.next];
    if (first == nullptr) first = &e;
    const Barrier& b = barriers_[static_cast<std::size_t>(e.barrier)];
    all += fmt::format("{}{} waits at {} for phase {} of {}, to which {} of {} arrivals come",
                       all.empty() ? "" : "; ", name(i), at(e), b.completed, named(e.barrier).name,
                       b.arrived, named(e.barrier).arrivals);
    if (b.coming > 0)
      all += fmt::format(", and {} parts of what other blocks copy are missing", b.coming);
  }
  if (first != nullptr) fail(*first, "deadlock: " + all);
}

void Run::check_ends() {
  for (int i = 0; std::cmp_less(i, barriers_.size()) && !found_.is_found(); ++i) check_end(i);
  for (thread_ = 0; thread_ < threads() && !found_.is_found(); ++thread_) {
    Thread& t = threads_[static_cast<std::size_t>(thread_)];
    if (t.taken != nullptr && t.knows[static_cast<std::size_t>(taken(thread_))] < t.takes)
      return fail(*t.taken, fmt::format("{} ends before its copy of {} is there: "
                                        "plgpu::wait_gmem_to_smem(0)",
                                        name(thread_), at(*t.taken)));
    if (t.open > 0) t.has_copies.push_back(true);
    check_sent(thread_);
  }
}

void Run::check_sent(int thread) {
  const Thread& t = threads_[static_cast<std::size_t>(thread)];
  if (std::cmp_less(t.read, t.has_copies.size()) &&
      std::any_of(t.has_copies.begin() + t.read, t.has_copies.end(), [](bool has) { return has; }))
    fail(*t.sent, fmt::format("{} ends before its copy of {} has read what it copies: "
                              "plgpu::wait_smem_to_gmem(0)",
                              name(thread), at(*t.sent)));
}

// Who of a thread has waited for some completions and not for others: all of it, a warp, nobody:
// -1.
int Run::who_misses(const Barrier& b, int thread) const {
  const std::span<const std::int32_t> own = waits(b, thread);
  const auto first = std::ranges::find_if(own, [&](auto w) { return w > 0 && w < b.completed; });
  if (first == own.end()) return -1;
  const bool all = std::ranges::all_of(own, [&](auto w) { return w == *first; });
  return all ? thread : warp_of(thread, static_cast<int>(first - own.begin()));
}

void Run::check_end(int number) {
  const Barrier& b = barriers_[static_cast<std::size_t>(number)];
  const Event* last = nullptr;
  for (const Happened& h : order_) {
    const Event& e =
        way_.threads[static_cast<std::size_t>(h.thread)][static_cast<std::size_t>(h.event)];
    if (e.barrier == number && e.kind != Kind::wait) last = &e;
  }
  if (last == nullptr) return;
  const std::string& barrier = named(number).name;
  const bool is_awaited = std::ranges::any_of(b.waits, [](std::int32_t w) { return w > 0; });
  for (int t = 0; t < threads() && is_awaited; ++t)
    if (const int who = who_misses(b, t); who >= 0)
      return fail(*last,
                  fmt::format("{} completes phase {} with the arrival at {}, and {} "
                              "waits for it {} times: there is a barrier_wait for each "
                              "completion",
                              barrier, b.completed - 1, at(*last), name(who), waits(b, who)[0]));
  if (b.completed > 0 && !is_awaited)
    return fail(*last, fmt::format("{} completes with the arrival at {}, and nobody waits for it",
                                   barrier, at(*last)));
  if (b.coming != 0)
    return fail(*last, fmt::format("{} parts of copies that other blocks share {} for {}, the last "
                                   "at {}: all blocks along collective_axes say the same copy",
                                   std::abs(b.coming), b.coming < 0 ? "come" : "are missing",
                                   barrier, at(*last)));
  if (b.arrived > 0)
    fail(*last, fmt::format("{} of {} arrivals that complete {} come, the last of them at {}",
                            b.arrived, named(number).arrivals, barrier, at(*last)));
}

// ---- what is told

std::string Run::at(const Event& e) const { return place_of(g_.location(e.by)); }

std::string Run::words(const Access& a, bool is_earlier) const {
  const bool writes = a.region == a.event->to;
  if (a.until < 0)
    return fmt::format("{} {} at {}", name(a.thread),
                       is_earlier ? writes ? "wrote" : "read"
                       : writes   ? "writes"
                                  : "reads",
                       at(*a.event));
  return fmt::format("a {} of {} that began at {} {} it",
                     a.event->kind == Kind::multiply ? "product" : "copy", name(a.thread),
                     at(*a.event), writes ? "fills" : "reads");
}

void Run::fail(const Event& e, std::string what, const Event* other, const Clock* known) {
  if (found_.is_found()) return;
  found_ = {
      .what = std::move(what), .by = e.by, .other = other != nullptr ? other->by : graph::no_value};
  const Clock& sure =
      known != nullptr ? *known
                       : threads_[static_cast<std::size_t>(std::min(thread_, threads() - 1))].knows;
  for (const Happened& h : order_) {
    const Event& own =
        way_.threads[static_cast<std::size_t>(h.thread)][static_cast<std::size_t>(h.event)];
    if (&own == &e || &own == other || thread_ == threads() ||
        h.event < sure[static_cast<std::size_t>(h.thread)])
      found_.steps.push_back(h);
  }
}

}  // namespace palladium::lowered::hand
