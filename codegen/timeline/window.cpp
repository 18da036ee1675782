#include "codegen/timeline/window.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/base/format.hpp"

namespace palladium::timeline {

using Span = Timeline::Span;

namespace {

constexpr double shortest = 0.5;  // of a wait or a span, cycles
constexpr double busy = 0.9;      // that nobody waits for anything else

bool is_same(Location a, Location b) { return a.line == b.line && a.file == b.file; }

// What follows without a gap and is the same is one.
void add(std::vector<Span>& spans, Span s) {
  if (s.end - s.begin < shortest) return;
  if (!spans.empty()) {
    Span& last = spans.back();
    if (last.what == s.what && last.waits == s.waits && is_same(last.at, s.at) &&
        s.begin - last.end < shortest) {
      last.end = s.end;
      return;
    }
  }
  spans.push_back(std::move(s));
}

}  // namespace

Window::Window(const Model& m, const Events& events, const Trace& trace, Repeated of, int blocks)
    : m_(m), events_(events), trace_(trace), of_(of), blocks_(blocks) {
  for (const std::vector<Event>& all : events)
    for (const Event& e : all)
      if (of_ != nullptr && e.loop != nullptr && e.loop->question == of_->question)
        entry_ = std::max(entry_, e.entry);
}

int Window::iteration_of(const Track& t, const Moment& m) const {
  if (of_ == nullptr) return m.round;
  const Event& e = event(t.agent, m.event);
  const bool is_in = e.loop != nullptr && e.loop->question == of_->question && e.entry == entry_;
  return is_in ? e.iteration : -1;
}

bool Window::is_steady(const Track& t, const Moment& m) const {
  const int i = iteration_of(t, m);
  return i >= first_ && i < last_;
}

// When each iteration begins.
std::vector<double> Window::starts(const Track& t) const {
  std::vector<double> all;
  for (const Moment& m : t.moments)
    if (const int i = iteration_of(t, m); std::cmp_equal(i, all.size())) all.push_back(m.reached);
  return all;
}

// A third of the iterations behind the middle: before, what has been filled in front of the loop is
// used up, behind, nothing is fetched any more.
bool Window::find_steady() {
  const Track* first = nullptr;
  double sum = 0;
  int tracks = 0;
  for (const Track& t : trace_.tracks) {
    const bool computes = !m_.agents[static_cast<std::size_t>(t.agent)].is_one_thread;
    const std::vector<double> begins = starts(t);
    if (!computes || std::ssize(begins) < least_iterations) continue;
    count_ = static_cast<int>(begins.size());
    first_ = std::max(1, count_ / 2);
    last_ = std::max(first_ + 1, count_ - std::max(1, count_ / 6));
    const auto at = [&](int i) { return begins[static_cast<std::size_t>(i)]; };
    sum += (at(last_) - at(first_)) / (last_ - first_);
    ++tracks;
    if (first != nullptr) continue;
    first = &t;
    begin_ = at(first_);
    end_ = at(last_);
  }
  if (first == nullptr) return false;
  cycles_ = sum / tracks;
  return cycles_ > 0;
}

std::optional<Timeline::Loop> Window::loop() const {
  Window found = *this;
  if (!found.find_steady()) return {};
  Timeline::Loop out{.at = of_ != nullptr ? of_->by->at : m_.program->graph.at,
                     .is_kernel = of_ == nullptr,
                     .cycles = found.cycles_,
                     .blocks = blocks_};
  if (of_ != nullptr && blocks_ == 1)
    out.around = std::max(0.0, trace_.end / (entry_ + 1) - found.count_ * found.cycles_);
  found.add_lanes(out);
  found.add_waits(out);
  found.add_uses(out);
  found.judge(out);
  return out;
}

// ---- the picture

std::string Window::name_of(const Track& t, bool names_group) const {
  const lowered::protocol::Agent& a = m_.agents[static_cast<std::size_t>(t.agent)];
  std::string name = a.name;
  if (names_group && !a.is_one_thread && a.warpgroups > 1) name += fmt::format(" {}", t.group);
  return names_group && blocks_ > 1 ? fmt::format("{} of block {}", name, t.block) : name;
}

void Window::add_lanes(Timeline::Loop& out) const {
  const double end = begin_ + 2 * cycles_;
  constexpr int most_blocks = 4;
  for (const Track& t : trace_.tracks)
    if (t.block < most_blocks) out.lanes.push_back(lane_of(t, end));
  add_flights(out, end);
}

Timeline::Lane Window::lane_of(const Track& t, double end) const {
  Timeline::Lane lane{name_of(t, true), {}};
  const auto show = [&](double from, double to, std::string what, Location at, bool waits) {
    from = std::max(from, begin_);
    to = std::min(to, end);
    if (from < to) add(lane.spans, {from - begin_, to - begin_, std::move(what), at, waits});
  };
  for (const Moment& m : t.moments) {
    if (m.end <= begin_ || m.reached >= end) continue;
    const Event& e = event(t.agent, m.event);
    if (m.open > m.reached) {
      const Reason r = reason_of(m_, events_, e);
      show(m.reached, m.open, r.what, r.at, true);
    }
    show(m.open, m.end, words_of(m_, e), e.act->by->at, false);
  }
  return lane;
}

void Window::add_flights(Timeline::Loop& out, double end) const {
  constexpr std::pair<Queue, const char*> named[] = {{Queue::products, "tensor cores"},
                                                     {Queue::copies, "TMA"},
                                                     {Queue::copies_from_memory, "TMA from memory"},
                                                     {Queue::sends, "TMA stores"}};
  for (const auto& [queue, name] : named) {
    Timeline::Lane lane{name, {}};
    for (const Flight& f : trace_.flights) {
      const double from = std::max(f.begin, begin_), to = std::min(f.end, end);
      if (f.queue != queue || from >= to) continue;
      const Event& e = event(f.agent, f.event);
      const Track of{.block = f.block, .agent = f.agent, .group = f.group};
      const std::string who = queue == Queue::products ? " for " + name_of(of, true)
                              : blocks_ > 1            ? fmt::format(" of block {}", f.block)
                                                       : "";
      const std::string what = queue == Queue::products ? "a product"
                               : queue == Queue::sends  ? "a send"
                                                        : "a copy";
      add(lane.spans, {from - begin_, to - begin_, what + who, e.act->by->at, false});
    }
    if (!lane.spans.empty()) out.lanes.push_back(std::move(lane));
  }
}

// ---- the table

void Window::add_waits(Timeline::Loop& out) const {
  std::map<std::string, int> tracks;  // of each agent
  for (const Track& t : trace_.tracks) ++tracks[name_of(t, false)];
  const auto note = [&](const Track& t, const Reason& r, double cycles) {
    if (cycles <= 0) return;
    const std::string agent = name_of(t, false);
    cycles /= tracks[agent] * (last_ - first_);
    const auto same = std::ranges::find_if(out.waits, [&](const Timeline::Wait& w) {
      return w.agent == agent && w.what == r.what && is_same(w.at, r.at);
    });
    if (same != out.waits.end())
      same->cycles += cycles;
    else
      out.waits.push_back({agent, r.what, r.at, cycles});
  };
  for (const Track& t : trace_.tracks)
    for (const Moment& m : t.moments) {
      if (!is_steady(t, m)) continue;
      const Event& e = event(t.agent, m.event);
      note(t, reason_of(m_, events_, e), m.open - m.reached);
      note(t, {others, {}}, m.end - m.open - m.alone);
    }
  std::erase_if(out.waits, [](const Timeline::Wait& w) { return w.cycles < shortest; });
  std::ranges::stable_sort(out.waits, std::greater(), &Timeline::Wait::cycles);
}

void Window::add_uses(Timeline::Loop& out) const {
  Demand sum = {};
  for (const Fluid::Stretch& s : trace_.stretches) {
    const double time = std::min(s.end, end_) - std::max(s.begin, begin_);
    for (std::size_t p = 0; p < parts && time > 0; ++p) sum[p] += time * s.busy[p];
  }
  for (std::size_t p = 0; p < parts; ++p)
    if (sum[p] > 0)
      out.uses.push_back({timeline::name_of(static_cast<Part>(p)), sum[p] / (end_ - begin_)});
  std::ranges::stable_sort(out.uses, std::greater(), &Timeline::Use::share);
}

void Window::judge(Timeline::Loop& out) const {
  for (const Timeline::Use& u : out.uses)
    if (u.part == timeline::name_of(Part::tensor) || u.part == timeline::name_of(Part::l2) ||
        u.part == timeline::name_of(Part::memory))
      out.fraction = std::max(out.fraction, u.share);
  if (!out.uses.empty() && out.uses[0].share >= busy) {
    out.bound_by = out.uses[0].part;
    return;
  }
  for (const Timeline::Wait& w : out.waits)
    for (const lowered::protocol::Agent& a : m_.agents)
      if (out.bound_by.empty() && a.name == w.agent && !a.is_one_thread)
        out.bound_by = w.what == others ? out.uses[0].part
                                        : fmt::format("the wait of the {} for {}", w.agent, w.what);
  if (out.bound_by.empty()) out.bound_by = "one thing behind the other";
}

}  // namespace palladium::timeline
