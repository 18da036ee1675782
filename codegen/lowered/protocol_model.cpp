#include "codegen/lowered/protocol_model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/graph/cost.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::lowered::protocol {
namespace {

using device::Completion;
using Of = device::Effects::Role;

bool completes(const Effect& e, Completion on) {
  return e.completion == Of::completes && e.on == on;
}

class Builder {
 public:
  explicit Builder(Model& m) : m_(m), l_(*m.program) {}

  Steps steps(const Statements& list) {
    Steps out;
    for (const Statement& s : list)
      std::visit([&](const auto& what) { add(out, what, s); }, s.what);
    return out;
  }

 private:
  template <class T>
  void add(Steps& out, const T& what, const Statement& s) {
    if constexpr (std::is_same_v<T, When>) {
      std::vector<Steps> bodies{steps(what.body), {}};
      if (is_whole() && is_rare(what.condition)) std::ranges::reverse(bodies);
      choose(out, s, {Question::Of::condition, static_cast<int>(graph::index(what.condition))},
             std::move(bodies));
    } else if constexpr (std::is_same_v<T, IfMasked>) {
      // What is masked alike is cleared in the same iterations.
      std::vector<Steps> bodies{steps(what.body), {}};
      if (is_whole()) std::ranges::reverse(bodies);
      const ValueId mask = graph::MemoryView::of(l_.graph[what.load]).mask;
      choose(out, s, {Question::Of::condition, static_cast<int>(graph::index(mask))},
             std::move(bodies));
    } else if constexpr (std::is_same_v<T, IfWhole> || std::is_same_v<T, Switch>) {
      std::vector<Steps> bodies;
      for (const Statements& body : what.bodies) bodies.push_back(steps(body));
      choose(out, s, question(what), std::move(bodies));
    } else if constexpr (std::is_same_v<T, Loop> || std::is_same_v<T, GridLoop> ||
                         std::is_same_v<T, While>) {
      loop(out, what, s);
    } else if constexpr (std::is_same_v<T, Scope> || std::is_same_v<T, Elected>) {
      append(out, steps(what.body));
    } else if constexpr (std::is_same_v<T, Warps>) {
      const bool outer = std::exchange(in_warps_, true);
      append(out, steps(what.body));
      in_warps_ = outer;
    } else if constexpr (std::is_same_v<T, Lead> || std::is_same_v<T, Ahead>) {
      constexpr auto kind = std::is_same_v<T, Lead> ? Step::Kind::lead : Step::Kind::ahead;
      out.push_back({.kind = kind,
                     .by = &s,
                     .question = of_loop(what.loop, what.axis),
                     .bodies = {steps(what.body)},
                     .ring = what.ring,
                     .iterations = what.iterations});
    } else if constexpr (std::is_same_v<T, Advance>) {
      out.push_back({.kind = Step::Kind::advance, .by = &s, .ring = what.ring});
    } else {
      acts(out, what, s);
    }
  }

  static void append(Steps& out, Steps more) {
    out.insert(out.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  }

  static Question question(const IfWhole& i) {
    return {Question::Of::whole, i.windows.empty() ? -1 : i.windows[0].number()};
  }
  static Question question(const Switch& s) {
    return {Question::Of::branch, static_cast<int>(graph::index(s.inst))};
  }
  static Question of_loop(ValueId loop, int axis) {
    return loop != graph::no_value
               ? Question{Question::Of::loop, static_cast<int>(graph::index(loop))}
               : Question{Question::Of::axis, axis};
  }
  static Question question(const Loop& l) { return of_loop(l.inst, -1); }
  static Question question(const GridLoop& l) { return of_loop(graph::no_value, l.axis); }
  static Question question(const While& w) {
    return {Question::Of::repetition, static_cast<int>(graph::index(w.inst))};
  }

  bool is_whole() const { return m_.detail == Detail::statements; }

  // Of one iteration of many, or of none.
  bool is_rare(ValueId condition) const {
    const graph::Inst& i = l_.graph[condition];
    return i.op == graph::Op::Eq ||
           (i.op == graph::Op::And &&
            std::ranges::any_of(i.args, [&](ValueId v) { return is_rare(v); }));
  }

  // Accesses order nothing: what can go wrong where some are left out can where all are made, once
  // each.
  static bool only_accesses(const Steps& steps) {
    return std::ranges::all_of(steps, [](const Step& s) {
      return s.kind == Step::Kind::act && s.act.kind == Act::Kind::access;
    });
  }

  void choose(Steps& out, const Statement& s, Question q, std::vector<Steps> bodies) {
    if (!is_whole() && std::ranges::all_of(bodies, only_accesses)) {
      for (Steps& body : bodies) append(out, std::move(body));
      return;
    }
    out.push_back(
        {.kind = Step::Kind::choice, .by = &s, .question = q, .bodies = std::move(bodies)});
  }

  // Iterations of which nobody knows how many they are: from none to more than there are slots; of
  // known numbers those that leave each slot in its turn.
  template <class T>
  void loop(Steps& out, const T& what, const Statement& s) {
    Step step{.kind = Step::Kind::loop, .by = &s, .question = question(what), .bodies = {{}}};
    ++loops_;
    if constexpr (requires { what.prologue; }) {
      step.prologue = steps(what.prologue);
      step.epilogue = steps(what.epilogue);
      step.rotated = !what.prologue.empty();
    }
    if constexpr (std::is_same_v<T, While>) step.epilogue = steps(what.test);
    step.bodies[0] = steps(what.body);
    --loops_;
    if constexpr (std::is_same_v<T, Loop> || std::is_same_v<T, GridLoop>)
      (what.ring && l_.rings[what.ring].unrolled ? step.ring : step.grouped) = what.ring;
    if (is_whole()) return repeat(out, std::move(step), what, s);
    if (only_accesses(step.bodies[0]) && only_accesses(step.prologue) &&
        only_accesses(step.epilogue)) {
      for (Steps* body : {&step.prologue, &step.bodies[0], &step.epilogue})
        append(out, std::move(*body));
      return;
    }
    if constexpr (std::is_same_v<T, While>) {
      // The test comes once more than the body.
      Steps test = step.epilogue;
      append(test, std::move(step.bodies[0]));
      step.bodies[0] = std::move(test);
    }
    const std::optional<std::int64_t> known = trips(what);
    const int most = most_slots(what) + 2;
    for (int n = known ? static_cast<int>(std::min<std::int64_t>(*known, 1)) : 0; n <= most; ++n)
      if (!known || *known > most || n == *known) step.counts.push_back(n);
    step.varies = !known && loops_ > 0 && !is_alike(what);
    out.push_back(std::move(step));
  }

  // What an iteration does for the loop itself stands in front of all.
  template <class T>
  void repeat(Steps& out, Step step, const T& what, const Statement& s) {
    Steps body{{.kind = Step::Kind::act, .by = &s, .act = {.by = &s}}};
    if constexpr (std::is_same_v<T, While>) append(body, step.epilogue);
    append(body, std::move(step.bodies[0]));
    step.bodies[0] = std::move(body);
    const bool is_inner =
        std::ranges::none_of(what.body, [](const Statement& x) { return has_loop(x); });
    // Slots that were filled before the loop began are used up slowly.
    constexpr int each_slot = 12, least = 16, outer = 3;
    const int most = is_inner ? each_slot * most_slots(what) + least : outer;
    constexpr std::int64_t steady = 3;  // a loop of fewer iterations never is
    step.trips = trips(what);
    const std::int64_t known = step.trips.value_or(steady);
    step.counts = {known < steady ? static_cast<int>(known) : most};
    out.push_back(std::move(step));
  }
  static bool has_loop(const Statement& s) {
    bool found = repeats(s);
    for_each_body(
        s, [&](const Statements& body) { found = found || std::ranges::any_of(body, has_loop); });
    return found;
  }

  // Whether it has as many iterations whenever it begins.
  template <class T>
  bool is_alike(const T& what) const {
    if constexpr (std::is_same_v<T, GridLoop>) return l_.end_of(what.axis) == graph::no_value;
    return false;
  }
  std::optional<std::int64_t> trips(const Loop& l) const { return graph::trips(l_.graph, l.inst); }
  static std::optional<std::int64_t> trips(const While&) { return {}; }
  std::optional<std::int64_t> trips(const GridLoop& l) const {
    if (l.axis == programs_axis || l_.end_of(l.axis) != graph::no_value) return {};
    const Dim& d = l_.graph.mapping.grid[static_cast<std::size_t>(l.axis)];
    return d.is_static() && std::cmp_less(l.axis, l_.graph.mapping.bounds.size()) &&
                   l_.graph.mapping.bounds[static_cast<std::size_t>(l.axis)] >= 0
               ? std::nullopt
           : d.is_static() ? std::optional(d.value())
                           : std::nullopt;
  }

  // Of rings that the loop turns; of the loops inside of it, too, when they go on where they were.
  template <class T>
  int most_slots(const T& what) const {
    int most = 1;
    visit_all(what.body, [&](const Statement& s) {
      for (const Effect& e : effects(l_, s)) {
        const RingId ring = e.ring ? e.ring : e.storage ? l_.storages[e.storage].ring() : RingId();
        if (ring) most = std::max(most, l_.rings[ring].slots);
      }
    });
    return most;
  }
  template <class F>
  static void visit_all(const Statements& list, const F& f) {
    for (const Statement& s : list) {
      f(s);
      for_each_body(s, [&](const Statements& body) { visit_all(body, f); });
    }
  }

  // ---- what does not decide

  template <class T>
  void acts(Steps& out, const T& what, const Statement& s) {
    const Effects all = effects(l_, s);
    Act act{.by = &s};
    for (const Effect& e : all) touch(act, e);
    if (all.syncs && !std::is_same_v<T, Sync>) return exchange(out, std::move(act), s);
    complete(act, what, all);
    const bool only_touches = act.kind == Act::Kind::access;
    if (act.kind == Act::Kind::sync && in_warps_) return;
    if (only_touches && act.reads.empty() && act.fills.empty() && !is_whole()) return;
    out.push_back({.kind = Step::Kind::act, .by = &s, .act = std::move(act)});
  }

  // Threads have read when they wait for each other, and fill behind that.
  void exchange(Steps& out, Act act, const Statement& s) const {
    Act fills{.by = &s, .fills = std::move(act.fills)};
    act.fills.clear();
    if (!act.reads.empty()) out.push_back({.kind = Step::Kind::act, .by = &s, .act = act});
    if (!in_warps_)
      out.push_back(
          {.kind = Step::Kind::act, .by = &s, .act = {.kind = Act::Kind::sync, .by = &s}});
    if (!fills.fills.empty())
      out.push_back({.kind = Step::Kind::act, .by = &s, .act = std::move(fills)});
  }

  void touch(Act& act, const Effect& e) const {
    if (!e.storage || e.role == Effect::Role::barrier || e.completion == Of::awaits ||
        m_.first_cell[e.storage] < 0)
      return;
    const auto note = [](auto& to, const auto& what) {
      if (std::ranges::find(to, what) == to.end()) to.push_back(what);
    };
    if (e.access == Effect::Access::read) note(act.reads, Act::Read{e.storage, e.back});
    if (e.writes()) note(act.fills, e.storage);
  }

  void complete(Act& act, const auto&, const Effects& all) {
    if (all.syncs) act.kind = Act::Kind::sync;
    for (const Effect& e : all)
      if (completes(e, Completion::cp_async_group)) act.kind = Act::Kind::copy_by_threads;
  }
  void complete(Act& act, const Dot&, const Effects& all) {
    for (const Effect& e : all)
      if (completes(e, Completion::wgmma_group)) act.kind = Act::Kind::product;
  }
  void complete(Act& act, const Copy& c, const Effects& all) {
    act.kind = c.completes ? Act::Kind::copy : Act::Kind::send;
    act.barrier = c.completes;
    if (c.from.storage && l_.storages[c.from.storage].is_by_warpgroups()) {
      act.by_warpgroups = true;
      act.bytes = shared_bytes(l_.storages[c.from.storage]).value() / (l_.num_warps / 4);
    }
    if (c.share.axes != 0) act.along = {c.share.axes};
    if (!c.completes) return;
    for (const Effect& e : all)
      if (completes(e, Completion::mbarrier) && e.storage)
        act.bytes += graph::element_count(l_.storages[e.storage].shape) *
                     l_.storages[e.storage].dtype.bytes();
  }
  void complete(Act& act, const Arrive& a, const Effects&) {
    act.kind = a.bytes > 0 ? Act::Kind::expect : Act::Kind::arrive;
    act.barrier = a.barrier;
    act.bytes = a.bytes;
    act.back = a.back;
    if (a.bytes == 0) act.along = l_.barriers[a.barrier].along;
    m_.counts_warpgroups |= a.bytes == 0;
  }
  void complete(Act& act, const Wait& w, const Effects&) {
    act.kind = Act::Kind::wait;
    act.barrier = w.barrier;
  }
  void complete(Act& act, const Close& c, const Effects&) {
    act.kind = Act::Kind::close;
    act.group = c.kind;
    act.by_warpgroups = c.kind == Completion::bulk_group && sends_by_warpgroups(l_);
  }
  void complete(Act& act, const Sync& s, const Effects&) {
    act.kind = s.of == Sync::Of::cluster ? Act::Kind::meet : Act::Kind::sync;
    act.by_warpgroups = s.of == Sync::Of::warpgroup;
  }
  void complete(Act& act, const WaitGroup& w, const Effects&) {
    act.kind = Act::Kind::wait_group;
    act.group = w.kind;
    act.pending = w.pending;
    act.by_warpgroups = w.kind == Completion::bulk_group && sends_by_warpgroups(l_);
  }

  Model& m_;
  const Program& l_;
  int loops_ = 0;
  bool in_warps_ = false;
};

// Agents that go through one loop go through it as often.
void share_counts(const Steps& from, Steps& to) {
  for (Step& s : to) {
    for (Steps* inner : {&s.prologue, &s.epilogue}) share_counts(from, *inner);
    for (Steps& body : s.bodies) share_counts(from, body);
  }
  for (const Step& other : from) {
    for (const Steps& body : other.bodies) share_counts(body, to);
    if (other.kind != Step::Kind::loop) continue;
    for (Step& s : to)
      if (s.kind == Step::Kind::loop && s.question == other.question &&
          (s.counts.size() < other.counts.size() ||
           (s.counts.size() == 1 && other.counts.size() == 1 && s.counts < other.counts)))
        s.counts = other.counts;
  }
}

bool is_end_of_cluster(const Statement& s) {
  const Sync* const sync = std::get_if<Sync>(&s.what);
  return sync != nullptr && sync->of == Sync::Of::cluster;
}

// What an agent does of which nobody but one thread does anything; nullptr: others do.
const Elected* one_thread_of(const lowered::Agent& a) {
  const Elected* found = nullptr;
  for (const Statement& s : a.statements) {
    if (std::holds_alternative<SetRegisters>(s.what) || is_end_of_cluster(s)) continue;
    const Elected* const elected = std::get_if<Elected>(&s.what);
    if (elected == nullptr || found != nullptr) return nullptr;
    found = elected;
  }
  return found;
}

const Statement* end_of_cluster(const Statements& list) {
  return !list.empty() && is_end_of_cluster(list.back()) ? &list.back() : nullptr;
}

bool share_copies(const Statements& list) {
  return std::ranges::any_of(list, [](const Statement& s) {
    const Copy* const c = std::get_if<Copy>(&s.what);
    bool found = c != nullptr && c->share.axes != 0;
    for_each_body(s, [&](const Statements& body) { found = found || share_copies(body); });
    return found;
  });
}

}  // namespace

std::vector<Agent> agents(const Program& l) {
  std::vector<Agent> all;
  for (std::size_t i = 0; i < l.bodies.size(); ++i)
    for (const lowered::Agent& a : l.bodies[i].agents) {
      const Elected* const elected = one_thread_of(a);
      const bool alone = l.bodies[i].agents.size() == 1;
      const std::string name = a.name != "compute" ? a.name : alone ? "threads" : "consumers";
      all.push_back({.name = l.bodies.size() > 1 ? fmt::format("{} of body {}", name, i) : name,
                     .statements = elected != nullptr ? &elected->body : &a.statements,
                     .warpgroups = elected != nullptr ? 1 : std::max(1, a.warpgroups),
                     .is_one_thread = elected != nullptr,
                     .end = elected != nullptr ? end_of_cluster(a.statements) : nullptr});
    }
  return all;
}

Model model_of(const Program& l, Detail detail) {
  Model m{.program = &l, .agents = agents(l), .detail = detail};
  find_cells(m);
  m.first_barrier = Table<BarrierId, int>(l.barriers.size());
  for (const BarrierId b : l.barriers.ids()) {
    m.first_barrier[b] = m.barriers;
    m.barriers += static_cast<int>(l.storages[l.barriers[b].storage].shape[0]);
  }
  if (m.is_empty() && detail == Detail::waits) return m;
  Builder builder(m);
  for (const Agent& a : m.agents) {
    m.steps.push_back(builder.steps(*a.statements));
    if (a.end != nullptr)
      m.steps.back().push_back({.by = a.end, .act = {.kind = Act::Kind::meet, .by = a.end}});
  }
  for (Steps& to : m.steps)
    for (const Steps& from : m.steps)
      if (&from != &to) share_counts(from, to);
  return m;
}

Model model_of_cluster(const Program& l) {
  Model m = model_of(l);
  if (std::ranges::none_of(m.agents, [](const Agent& a) { return share_copies(*a.statements); }))
    return m;
  m.blocks = static_cast<int>(graph::cluster_blocks(l.graph));
  const std::vector<Agent> own = m.agents;
  const std::vector<Steps> steps = m.steps;
  for (Agent& a : m.agents) a.name += " of block 0";
  for (int block = 1; block < m.blocks; ++block)
    for (std::size_t i = 0; i < own.size(); ++i) {
      m.agents.push_back(own[i]);
      m.agents.back().name += fmt::format(" of block {}", block);
      m.agents.back().block = block;
      m.steps.push_back(steps[i]);
    }
  return m;
}

}  // namespace palladium::lowered::protocol
