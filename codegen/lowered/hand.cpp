#include "codegen/lowered/hand.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/hand_run.hpp"
#include "codegen/lowered/hand_walk.hpp"
#include "codegen/lowered/protocol_table.hpp"

namespace palladium::lowered::hand {
namespace {

using Kind = Event::Kind;
using Verdict = Protocol::Verdict;

class Words {
 public:
  Words(const graph::Graph& g, const Way& way) : g_(g), way_(way), agents_(agents(g)) {}

  std::vector<Protocol::Step> rows(std::span<const Happened> steps) const {
    std::vector<Protocol::Step> all;
    for (const Happened& h : steps) {
      const Event& e =
          way_.threads[static_cast<std::size_t>(h.thread)][static_cast<std::size_t>(h.event)];
      all.push_back({.agent = agents_[static_cast<std::size_t>(h.thread)].name,
                     .what = of(e),
                     .iteration = e.iteration,
                     .line = g_.location(e.by).line});
    }
    return all;
  }

 private:
  std::string region(int number) const {
    const Region& r = way_.regions[static_cast<std::size_t>(number)];
    std::vector<std::string> parts;
    for (const Region::Span& s : r.box())
      parts.push_back(s.to - s.from == 1 ? fmt::format("{}", s.from)
                                         : fmt::format("{}:{}", s.from, s.to));
    return fmt::format("{}[{}]{}", way_.memories[static_cast<std::size_t>(r.memory)].name,
                       fmt::join(parts, ","), r.is_exact ? "" : " in part");
  }

  std::string of(const Event& e) const {
    const std::string barrier =
        e.barrier < 0 ? "" : way_.barriers[static_cast<std::size_t>(e.barrier)].name;
    switch (e.kind) {
    case Kind::read: return "reads " + region(e.from);
    case Kind::write: return "writes " + region(e.to);
    case Kind::atomic: return "updates " + region(e.to);
    case Kind::fetch:
      return fmt::format("begins to copy {} to {}, for {}", region(e.from), region(e.to), barrier);
    case Kind::bring:
      return fmt::format("brings its part {} to {}, for {}", region(e.from), region(e.to), barrier);
    case Kind::send: return fmt::format("begins to copy {} to {}", region(e.from), region(e.to));
    case Kind::take:
      return fmt::format("begins to copy {} to {}, for a wait_gmem_to_smem", region(e.from),
                         region(e.to));
    case Kind::taken:
      return fmt::format("waits for all copies without a barrier{}",
                         e.pending > 0 ? fmt::format(" but the last {}", e.pending) : "");
    case Kind::commit: return "commits what it stored";
    case Kind::close: return "closes a group of copies";
    case Kind::await:
      return fmt::format("waits for all groups{}{}",
                         e.pending > 0 ? fmt::format(" but the last {}", e.pending) : "",
                         e.read_only ? " to have read" : "");
    case Kind::multiply:
      return fmt::format("begins to multiply {}{}", e.from < 0 ? "" : region(e.from) + " by ",
                         region(e.other));
    case Kind::hold:
      return "reads or stores to " + way_.memories[static_cast<std::size_t>(e.sum)].name;
    case Kind::finish:
      return fmt::format("waits for all products{}",
                         e.pending > 0 ? fmt::format(" but the last {}", e.pending) : "");
    case Kind::arrive: return "arrives at " + barrier;
    case Kind::wait: return "waits for " + barrier;
    case Kind::part: return "parts into its warps";
    case Kind::meet: return "goes on behind its warps";
    case Kind::begin: return "begins";
    case Kind::end: return "ends";
    }
    return "";
  }

  const graph::Graph& g_;
  const Way& way_;
  std::vector<Agent> agents_;
};

class Explore {
 public:
  Explore(const graph::Graph& g, std::int64_t most) : g_(g), most_(most) {}

  Protocol run() {
    const Facts facts(g_);
    protocol::Answers answers;
    Way way;
    do {
      if (!walk(g_, facts, answers, most_ - work_, way)) return too_much();
      ++out_.ways;
      if (!look_at(way)) return std::move(out_);
      if (work_ > most_) return too_much();
    } while (answers.next());
    if (!unsure_.empty()) {
      out_.verdict = Verdict::not_explored;
      out_.why = unsure_;
    }
    return std::move(out_);
  }

 private:
  // Whether to go on.
  bool look_at(const Way& way) {
    if (!way.stop.empty()) {
      const bool counts = way.is_wrong && way.supposed == graph::no_value;
      if (counts) out_.steps = Words(g_, way).rows(last_thread(way));
      tell(way.stop, way.at, counts);
      return false;
    }
    Run run(g_, way);
    const Fault fault = run();
    work_ += run.work();
    out_.happenings = work_;
    if (unsure_.empty()) unsure_ = run.unsure();
    if (!fault.is_found()) return true;
    if (way.supposed == graph::no_value) {
      out_.steps = Words(g_, way).rows(fault.steps);
      tell(fault.what, fault.by, true);
      return false;
    }
    unsure_ = fmt::format("what is given at {} decides: with some of it, {}",
                          place_of(g_.location(way.supposed)), fault.what);
    return true;
  }

  // What who came last has done.
  static std::vector<Happened> last_thread(const Way& way) {
    std::vector<Happened> all;
    for (int t = 0; std::cmp_less(t, way.threads.size()); ++t) {
      const std::vector<Event>& events = way.threads[static_cast<std::size_t>(t)];
      if (!events.empty()) all.clear();
      for (int e = 0; std::cmp_less(e, events.size()); ++e) all.push_back({t, e});
    }
    return all;
  }

  void tell(const std::string& why, graph::ValueId at, bool is_counterexample) {
    out_.verdict = is_counterexample ? Verdict::counterexample : Verdict::not_explored;
    out_.at = g_.location(at);
    out_.why = is_counterexample ? why : fmt::format("{} ({})", why, place_of(out_.at));
  }

  Protocol too_much() {
    out_.verdict = Verdict::not_explored;
    out_.why = fmt::format("more than {} things happen on its ways, of which {} were looked at",
                           most_, out_.ways);
    return std::move(out_);
  }

  const graph::Graph& g_;
  const std::int64_t most_;
  std::int64_t work_ = 0;
  std::string unsure_;
  Protocol out_;
};

}  // namespace

bool is_by_hand(const graph::Graph& g) {
  return graph::has_async_ops(g) || std::ranges::any_of(g.bodies, [&](const graph::Body& b) {
           return std::ranges::any_of(g[b.region].params, [&](graph::ValueId p) {
             return g[p].type.space == Space::barrier;
           });
         });
}

Protocol protocol_of(const graph::Graph& g, std::int64_t most) { return Explore(g, most).run(); }

std::string schedule(const graph::Graph& g) {
  const Facts facts(g);
  protocol::Answers answers;
  Way way;
  if (!walk(g, facts, answers, most_happenings, way) || !way.stop.empty()) return "";
  Run run(g, way);
  (void)run();
  constexpr std::size_t most_rows = 200;
  const std::span<const Happened> all(run.order());
  std::string text =
      protocol::table_of(Words(g, way).rows(all.first(std::min(all.size(), most_rows))));
  if (all.size() > most_rows) text += fmt::format("and {} more\n", all.size() - most_rows);
  return text;
}

}  // namespace palladium::lowered::hand
