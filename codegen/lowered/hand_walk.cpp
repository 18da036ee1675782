#include "codegen/lowered/hand_walk.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "codegen/base/format.hpp"
#include "codegen/graph/limits.hpp"
#include "codegen/graph/products.hpp"
#include "codegen/graph/warps.hpp"
#include "codegen/lowered/hand_places.hpp"

namespace palladium::lowered::hand {
namespace {

using graph::Inst;
using graph::Op;
using graph::RegionId;
using Kind = Event::Kind;

class Walk {
 public:
  Walk(const graph::Graph& g, const Facts& facts, protocol::Answers& answers, Position at,
       std::int64_t most, Way& out)
      : g_(g),
        at_(at),
        numbers_(g, facts, answers, at_),
        places_(g, facts, numbers_, at_, out),
        most_(most),
        way_(out) {}

  void run(const graph::Body& body) {
    for (const ValueId p : g_[body.region].params)
      if (numbers_.decides(p)) numbers_.suppose(p, {1, static_cast<int>(position_of(p))});
    region(body.region);
    if (numbers_.supposed() != graph::no_value) way_.supposed = numbers_.supposed();
  }
  std::int64_t happened() const { return happened_; }

 private:
  bool is_over() const { return !way_.stop.empty() || happened_ > most_; }

  void stop(ValueId at, std::string why, bool is_wrong = false) {
    way_.refuse(at, std::move(why), is_wrong);
  }

  std::size_t position_of(ValueId param) const {
    for (const graph::Body& b : g_.bodies) {
      const std::vector<ValueId>& all = g_[b.region].params;
      if (const auto it = std::ranges::find(all, param); it != all.end())
        return static_cast<std::size_t>(it - all.begin());
    }
    return 0;
  }

  void region(RegionId r) {
    for (const ValueId v : g_[r].insts) {
      if (is_over()) return;
      instruction(v);
    }
  }

  void instruction(ValueId v) {
    const Inst& inst = g_[v];
    switch (inst.op) {
    case Op::When:
      if (numbers_.of(inst.args[0]) != 0) region(inst.regions[0]);
      return;
    case Op::Switch: return choose(v, inst);
    case Op::Loop: return loop(v, inst);
    case Op::While: return repeat(v, inst);
    case Op::Scoped:
      for (const ValueId p : g_[inst.regions[0]].params) places_.open(p);
      region(inst.regions[0]);
      return hand_on(v, inst.regions[0]);
    case Op::Warps: return warps(v, inst.regions[0]);
    case Op::Get: return get(v, inst);
    default: break;
    }
    if (graph::is_pure(inst.op)) {
      if (numbers_.decides(v)) numbers_.compute(v, iteration_);
      return;
    }
    memory(v, inst);
  }

  // ---- control

  void warps(ValueId v, RegionId r) {
    add({.kind = Kind::part, .by = v});
    for (at_.warp = 0; at_.warp < graph::num_warps; ++at_.warp) {
      add({.kind = Kind::begin, .by = v});
      region(r);
      add({.kind = Kind::end, .by = v});
    }
    at_.warp = -1;
    add({.kind = Kind::meet, .by = v});
  }

  void choose(ValueId v, const Inst& inst) {
    const std::int64_t last = std::ssize(inst.regions) - 1;
    const std::int64_t taken = std::clamp<std::int64_t>(numbers_.of(inst.args[0]), 0, last);
    const RegionId r = inst.regions[static_cast<std::size_t>(taken)];
    region(r);
    hand_on(v, r);
  }

  std::vector<std::uint64_t> yields(RegionId r) const {
    std::vector<std::uint64_t> all;
    for (const ValueId y : g_[r].yields) all.push_back(numbers_.bits(y));
    return all;
  }
  void hand_on(ValueId v, RegionId r) { results_[v] = yields(r); }

  void get(ValueId v, const Inst& inst) {
    const std::size_t number = graph::result_of(inst);
    const auto found = results_.find(inst.args[0]);
    if (found != results_.end() && number < found->second.size())
      numbers_.set(v, found->second[number]);
    else if (g_[inst.args[0]].op == Op::InlineCuda && numbers_.decides(v))
      numbers_.suppose(v, {5, static_cast<int>(graph::index(v))});
  }

  void begin(RegionId r, std::size_t first, const std::vector<std::uint64_t>& carries) {
    const std::vector<ValueId>& params = g_[r].params;
    for (std::size_t i = first; i < params.size() && i - first < carries.size(); ++i)
      numbers_.set(params[i], carries[i - first]);
  }

  std::vector<std::uint64_t> carried(std::span<const ValueId> from) const {
    std::vector<std::uint64_t> all;
    for (const ValueId c : from) all.push_back(numbers_.bits(c));
    return all;
  }

  void loop(ValueId v, const Inst& inst) {
    const graph::LoopView l = graph::LoopView::of(inst);
    const std::int64_t high = numbers_.of(l.high);
    std::vector<std::uint64_t> carries = carried(l.carries);
    const int outer = iteration_;
    iteration_ = 0;
    for (std::int64_t i = numbers_.of(l.low); i < high && !is_over(); i += l.step) {
      numbers_.set_number(g_[l.body].params[0], i);
      begin(l.body, 1, carries);
      region(l.body);
      carries = yields(l.body);
      ++iteration_;
      if (++turns_ > most_) return stop(v, fmt::format("more than {} iterations", most_));
    }
    iteration_ = outer;
    results_[v] = std::move(carries);
  }

  void repeat(ValueId v, const Inst& inst) {
    const graph::WhileView w = graph::WhileView::of(inst);
    std::vector<std::uint64_t> carries = carried(w.carries);
    const int outer = iteration_;
    for (iteration_ = 0; !is_over(); ++iteration_) {
      begin(w.condition, 0, carries);
      region(w.condition);
      if (is_over() || numbers_.of(g_[w.condition].yields[0]) == 0) break;
      begin(w.body, 0, carries);
      region(w.body);
      carries = yields(w.body);
      if (++turns_ > most_) return stop(v, fmt::format("more than {} iterations", most_));
    }
    iteration_ = outer;
    results_[v] = std::move(carries);
  }

  // ---- what is done

  void memory(ValueId v, const Inst& inst) {
    switch (inst.op) {
    case Op::BarrierTest:
      return stop(v, "whether a barrier_test succeeds is for the order of threads to say");
    case Op::BarrierArrive:
      return meet(v, inst, Kind::arrive, inst.args[0], inst.args[1], places_.block_of(v, inst));
    case Op::BarrierWait: return meet(v, inst, Kind::wait, inst.args[0], inst.args[1]);
    case Op::CopyToShared: {
      const graph::CopyView c = graph::CopyView::of(inst);
      meet(v, inst, Kind::fetch, c.barrier, c.number);
      return bring_to_others(v, inst);
    }
    case Op::CopyToGlobal: {
      const graph::CopyView c = graph::CopyView::of(inst);
      return add({.kind = Kind::send,
                  .by = v,
                  .from = places_.viewed(c.shared),
                  .to = places_.viewed(c.global)});
    }
    case Op::ReduceToGlobal: {
      const graph::CopyView c = graph::CopyView::of(inst);
      return add({.kind = Kind::send,
                  .by = v,
                  .from = places_.viewed(c.shared),
                  .to = places_.viewed(c.global),
                  .updates = true});
    }
    case Op::FetchToShared: {
      const graph::CopyView c = graph::CopyView::of(inst);
      return add({.kind = Kind::take,
                  .by = v,
                  .from = places_.viewed(c.global),
                  .to = places_.viewed(c.shared)});
    }
    case Op::AwaitFetches:
      return add({.kind = Kind::taken, .by = v, .pending = graph::fetches_left(inst)});
    case Op::Prefetch: return;
    case Op::CommitShared: return add({.kind = Kind::commit, .by = v});
    case Op::CloseCopies: return add({.kind = Kind::close, .by = v});
    case Op::AwaitCopies: {
      const graph::AwaitView a = graph::AwaitView::of(inst);
      return add({.kind = Kind::await, .by = v, .pending = a.pending, .read_only = a.read_only});
    }
    case Op::Wgmma:
    case Op::WgmmaHeld: {
      const graph::DotView d = graph::DotView::of(inst);
      const bool held = inst.op == Op::WgmmaHeld;
      return add({.kind = Kind::multiply,
                  .by = v,
                  .from = held ? -1 : places_.viewed(d.a),
                  .other = places_.viewed(d.b),
                  .sum = places_.memory_of(g_.root(inst.args[0]))});
    }
    case Op::AwaitProducts:
      return add({.kind = Kind::finish, .by = v, .pending = graph::products_left(inst)});
    case Op::SetMaxRegisters:
    case Op::GridDependencyWait:
    case Op::LaunchDependents:
    case Op::Delay:
    case Op::ScopeEvent: return;
    case Op::Load:
    case Op::Store:
      if (const ValueId root = g_.root(inst.args[0]); g_[root].type.space == Space::accumulator)
        return add({.kind = Kind::hold, .by = v, .sum = places_.memory_of(root)});
      return inst.op == Op::Load ? load(v, inst) : store(v, inst);
    default: break;
    }
    const graph::Effects e = graph::effects(inst);
    if (e.syncs || e.is_async)
      return stop(
          v, fmt::format("what {} does for others is not known here", graph::info(inst.op).name));
    if (numbers_.decides(v)) numbers_.suppose(v, {2, static_cast<int>(graph::index(v))});
    const bool is_atomic = inst.op == Op::Atomic;
    for (const graph::Effect& on : e.on_memory())
      touch(v, inst, on.operand, is_atomic ? Kind::atomic : on.writes() ? Kind::write : Kind::read);
  }

  void add(Event e) {
    e.iteration = iteration_;
    events().push_back(e);
    ++happened_;
  }
  std::vector<Event>& events() { return way_.threads[way_.agent(at_)]; }

  // ---- other blocks

  // The parts of a copy that blocks share which this one brings to others.
  void bring_to_others(ValueId v, const Inst& inst) {
    const graph::CopyView c = graph::CopyView::of(inst);
    const std::int64_t blocks = graph::blocks_along(g_, c.axes);
    const int divided = graph::divided_among(g_[c.shared].type.shape, blocks);
    if (blocks == 1 || is_over()) return;
    const graph::Extents own = graph::place_in_cluster(g_, at_.block);
    const auto is_along = [&](std::size_t axis) { return (c.axes >> axis & 1) != 0; };
    std::int64_t number = 0;
    for (std::size_t axis = 0; axis < own.size(); ++axis)
      if (is_along(axis)) number = number * g_.cluster[axis] + own[axis];
    Event& fetch = events().back();
    fetch.parts = static_cast<int>(blocks);
    fetch.from = places_.part(c.global, divided, blocks, number);
    fetch.to = places_.part(c.shared, divided, blocks, number);
    const Event mine = fetch;
    for (int block = 0; block < graph::cluster_blocks(g_); ++block) {
      const graph::Extents place = graph::place_in_cluster(g_, block);
      bool shares = block != at_.block;
      for (std::size_t axis = 0; axis < own.size(); ++axis)
        shares = shares && (is_along(axis) || place[axis] == own[axis]);
      if (!shares) continue;
      Region there = way_.regions[static_cast<std::size_t>(mine.to)];
      there.memory = places_.memory_of(g_.root(c.shared), block);
      add({.kind = Kind::bring,
           .by = v,
           .from = mine.from,
           .to = places_.keep(there),
           .barrier = barrier_in(c.barrier, numbers_.of(c.number), block)});
    }
  }

  int barrier_in(ValueId all, std::int64_t n, int block) {
    const graph::Type& type = g_[all].type;
    const int memory = places_.memory_of(g_.root(all), block);
    const auto [it, is_new] =
        way_.barrier_of.try_emplace({memory, n}, static_cast<int>(way_.barriers.size()));
    if (is_new) way_.barriers.push_back({name_of_barrier(memory, type, n), type.arrivals});
    return it->second;
  }

  // ---- barriers

  void meet(ValueId v, const Inst& inst, Kind kind, ValueId all, ValueId number, int block = -1) {
    const graph::Type& type = g_[all].type;
    const std::int64_t n = numbers_.of(number);
    const int memory = places_.memory_of(g_.root(all), block);
    if (const std::int64_t count = graph::element_count(type.shape); n < 0 || n >= count)
      return stop(v,
                  fmt::format("{} says barrier {} of {} at {}, which are {}", name(), n,
                              way_.memories[static_cast<std::size_t>(memory)].name,
                              place_of(g_.location(v)), count),
                  true);
    Event e{.kind = kind, .by = v, .barrier = barrier_in(all, n, block)};
    if (kind == Kind::fetch) {
      const graph::CopyView c = graph::CopyView::of(inst);
      e.from = places_.viewed(c.global);
      e.to = places_.viewed(c.shared);
    }
    add(e);
  }

  std::string name_of_barrier(int memory, const graph::Type& type, std::int64_t n) const {
    std::string index;
    for (std::size_t d = type.shape.size(); d > 0; --d) {
      index = fmt::format("[{}]", n % type.shape[d - 1]) + index;
      n /= type.shape[d - 1];
    }
    return way_.memories[static_cast<std::size_t>(memory)].name + index;
  }

  bool is_own(ValueId ref) const { return graph::is_own(g_[g_.root(ref)].type.space); }

  void touch(ValueId v, const Inst& inst, std::size_t operand, Kind kind) {
    const ValueId ref = inst.args[operand];
    if (is_own(ref)) return;
    int region = places_.viewed(ref);
    const bool masked =
        inst.op != Op::InlineCuda && graph::MemoryView::of(inst).mask != graph::no_value;
    if (masked || (inst.op == Op::InlineCuda && kind == Kind::write))
      way_.regions[static_cast<std::size_t>(region)].is_exact = false;
    Event e{.kind = kind, .by = v};
    (kind == Kind::read ? e.from : e.to) = region;
    add(e);
  }

  // ---- numbers in memory

  // Of one element, where it is known which one.
  std::optional<std::pair<ValueId, std::vector<std::int64_t>>> element(ValueId ref) {
    const Region r = places_.region_of(ref);
    std::vector<std::int64_t> at;
    for (const Region::Span& s : r.box()) {
      if (s.to - s.from != 1) return {};
      at.push_back(s.from);
    }
    if (!r.is_exact) return {};
    return std::pair{g_.root(ref), std::move(at)};
  }

  void load(ValueId v, const Inst& inst) {
    if (numbers_.decides(v)) {
      const auto at = element(inst.args[0]);
      const auto found = at ? held_.find(*at) : held_.end();
      if (found != held_.end())
        numbers_.set(v, found->second);
      else
        numbers_.suppose(v, question_of(v, at));
    }
    touch(v, inst, 0, Kind::read);
  }

  template <class At>
  std::vector<int> question_of(ValueId v, const At& at) {
    if (!at) return {3, static_cast<int>(graph::index(v)), iteration_ % 2};
    std::vector<int> question{4, places_.memory_of(at->first)};
    for (const std::int64_t n : at->second) question.push_back(static_cast<int>(n));
    return question;
  }

  void store(ValueId v, const Inst& inst) {
    if (is_own(inst.args[0])) {
      const auto at = element(inst.args[0]);
      const graph::MemoryView m = graph::MemoryView::of(inst);
      if (at && m.mask == graph::no_value && numbers_.decides(m.value))
        held_[*at] = numbers_.bits(m.value);
      else
        std::erase_if(held_, [&](const auto& h) { return h.first.first == g_.root(inst.args[0]); });
    }
    touch(v, inst, 0, Kind::write);
  }

  const std::string& name() const { return way_.names[way_.agent(at_)]; }

  const graph::Graph& g_;
  Position at_;
  Numbers numbers_;
  Places places_;
  const std::int64_t most_;
  Way& way_;
  std::map<ValueId, std::vector<std::uint64_t>> results_;
  std::map<std::pair<ValueId, std::vector<std::int64_t>>, std::uint64_t> held_;  // in registers
  int iteration_ = -1;
  std::int64_t turns_ = 0, happened_ = 0;
};

}  // namespace

std::string place_of(const Location& at) {
  return at.line == 0 ? "a line of no name" : to_string(at);
}

bool Region::meets(const Region& o) const {
  for (std::size_t d = 0; d < rank; ++d)
    if (spans[d].from >= o.spans[d].to || o.spans[d].from >= spans[d].to) return false;
  return true;
}

bool Region::covers(const Region& o) const {
  if (!is_exact) return false;
  for (std::size_t d = 0; d < rank; ++d)
    if (spans[d].from > o.spans[d].from || spans[d].to < o.spans[d].to) return false;
  return true;
}

std::vector<Agent> agents(const graph::Graph& g) {
  const bool reach = graph::reach_other_blocks(g);
  const auto blocks = static_cast<int>(reach ? graph::cluster_blocks(g) : 1);
  int threads = 0;
  for (const graph::Body& b : g.bodies) threads += b.warpgroups;
  std::vector<Agent> all;
  for (int block = 0; block < blocks; ++block) {
    int thread = 0;
    for (const graph::Body& b : g.bodies)
      for (int t = 0; t < b.warpgroups; ++t, ++thread) {
        std::string name = fmt::format("thread {}", thread);
        if (reach) name += fmt::format(" of block {}", block);
        all.push_back({&b, std::move(name), {thread, threads, reach ? block : -1}});
      }
  }
  if (!graph::has_warps(g)) return all;
  for (std::size_t t = 0, whole = all.size(); t < whole; ++t)
    for (int w = 0; w < graph::num_warps; ++w) {
      Agent warp = all[t];
      warp.name = fmt::format("warp {} of {}", w, warp.name);
      warp.at.warp = w;
      all.push_back(std::move(warp));
    }
  return all;
}

bool walk(const graph::Graph& g, const Facts& facts, protocol::Answers& answers, std::int64_t most,
          Way& out) {
  const std::vector<Agent> all = agents(g);
  out = {};
  out.threads.resize(all.size());
  for (const Agent& a : all) out.names.push_back(a.name);
  const auto first = std::ranges::find_if(all, [](const Agent& a) { return a.at.warp >= 0; });
  if (first != all.end()) out.first_warp = static_cast<int>(first - all.begin());
  for (const Agent& a : std::span(all.begin(), first)) {
    Walk way(g, facts, answers, a.at, most, out);
    way.run(*a.body);
    if (!out.stop.empty()) return true;
    most -= way.happened();
    if (most < 0) return false;
  }
  return true;
}

}  // namespace palladium::lowered::hand
