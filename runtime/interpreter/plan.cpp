#include "runtime/interpreter/plan.hpp"

#include <algorithm>
#include <map>

#include "runtime/interpreter/eval.hpp"

namespace palladium::interpreter {

using graph::index;
using graph::Inst;
using graph::Op;
using graph::Region;
using graph::RegionId;
using graph::ValueId;

namespace {

// Constants no larger than this are kept.
constexpr std::size_t most_kept_bytes = 4096;
// Of the widest dtype.
constexpr std::size_t scalar_bytes = 8;

std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + Plan::alignment - 1) / Plan::alignment *
         Plan::alignment;
}

}  // namespace

/// Places one outermost region.
class Plan::Placement {
 public:
  Placement(Plan& plan, RegionId region)
      : plan_(plan), graph_(plan.graph_), end_(rounded(plan.constant_bytes_)) {
    const std::size_t n = graph_.insts.size();
    depth_.assign(n, not_here);
    last_use_.assign(n, 0);
    define(region);
    find_uses(region);
    for (const ValueId p : graph_[region].params) take(p);
    place(region);
    plan_.frame_bytes_ = std::max(plan_.frame_bytes_, end_);
  }

 private:
  static constexpr std::uint32_t not_here = ~0u;

  // The region that owns a value is given by the depth of nesting: uses come from that very region
  // or from those inside it.
  void define(RegionId region) {
    for (const ValueId p : graph_[region].params) depth_[index(p)] = depth();
  }

  std::uint32_t depth() const { return static_cast<std::uint32_t>(position_.size()); }

  void use(ValueId v) {
    const std::uint32_t d = depth_[index(v)];
    if (d != not_here && d < position_.size())
      last_use_[index(v)] = std::max(last_use_[index(v)], position_[d]);
  }

  // A view may look at the index arrays that chose it.
  void use_indices(ValueId v) {
    for (; graph_.is_view(v); v = graph_[v].args[0])
      for (const ValueId a : graph_[v].args) use(a);
  }

  void find_uses(RegionId id) {
    const Region& region = graph_[id];
    const std::uint32_t own = depth();
    position_.push_back(0);
    plan_.depth_ = std::max(plan_.depth_, position_.size());
    for (const ValueId v : region.insts) {
      ++position_.back();
      depth_[index(v)] = own;
      last_use_[index(v)] = position_.back();
      for (const ValueId a : graph_[v].args) {
        use(a);
        use_indices(a);
      }
      for (const RegionId inner : graph_[v].regions) {
        // The parameters of what repeats belong to it: they outlive its regions until the last get.
        for (const ValueId p : graph_[inner].params) depth_[index(p)] = own;
        find_uses(inner);
      }
    }
    ++position_.back();
    for (const ValueId v : region.yields) use(v);
    position_.pop_back();
  }

  std::size_t take(std::size_t bytes) {
    bytes = rounded(bytes);
    std::vector<std::size_t>& free = free_[bytes];
    if (!free.empty()) {
      const std::size_t place = free.back();
      free.pop_back();
      return place;
    }
    const std::size_t place = end_;
    end_ += bytes;
    return place;
  }

  void take(ValueId v) {
    if (graph_[v].type.is_value()) plan_.places_[index(v)] = take(plan_.bytes(v));
  }

  // Room that is free again after a position.
  struct Room {
    std::uint32_t last;
    std::size_t place, bytes;
  };

  void keep_until(std::vector<Room>& alive, std::uint32_t last, ValueId v) const {
    if (graph_[v].type.is_value()) alive.push_back({last, plan_.places_[index(v)], plan_.bytes(v)});
  }

  void release(const Room& room) { free_[rounded(room.bytes)].push_back(room.place); }

  void place(RegionId id) {
    const Region& region = graph_[id];
    std::vector<Room> alive;
    std::uint32_t position = 0;
    for (const ValueId v : region.insts) {
      ++position;
      const Inst& inst = graph_[v];
      if (plan_.is_kept(v)) continue;
      const std::uint32_t last = last_use_[index(v)];
      take(v);
      keep_until(alive, last, v);
      const bool means = inst.op == Op::InlineCuda && !inst.regions.empty();
      if (graph::has_results(inst.op) || means) plan_results(v, alive);
      for (const RegionId inner : inst.regions) place(inner);
      std::erase_if(alive, [&](const Room& room) {
        if (room.last > position) return false;
        release(room);
        return true;
      });
    }
    for (const Room& room : alive) release(room);
  }

  // Carries lie where the results do, for both regions of a while.
  void plan_results(ValueId v, std::vector<Room>& alive) {
    const Inst& inst = graph_[v];
    Results results;
    if (!graph::repeats(inst.op)) {
      for (const ValueId y : graph_[inst.regions[0]].yields) {
        results.places.push_back(take(plan_.bytes(y)));
        alive.push_back({last_use_[index(v)], results.places.back(), plan_.bytes(y)});
      }
      for (const RegionId r : inst.regions) results.handed_on.push_back(handed_on(results, r, {}));
    } else {
      const graph::Repeated repeated = graph::Repeated::of(inst);
      const std::span<const ValueId> params = graph_[repeated.region].params;
      for (const ValueId p : params) {
        take(p);
        keep_until(alive, std::max(last_use_[index(v)], last_use_[index(p)]), p);
      }
      const std::span<const ValueId> carries = params.subspan(repeated.first);
      for (const ValueId p : carries) results.places.push_back(plan_.places_[index(p)]);
      results.handed_on.resize(inst.regions.size());
      for (std::size_t n = 0; n < inst.regions.size(); ++n) {
        const std::vector<ValueId>& own = graph_[inst.regions[n]].params;
        if (inst.regions[n] == repeated.region)
          results.handed_on[n] = handed_on(results, inst.regions[n], carries);
        else
          for (std::size_t i = 0; i < own.size(); ++i)
            plan_.places_[index(own[i])] = results.places[i];
      }
    }
    plan_.number_[index(v)] = static_cast<std::uint32_t>(plan_.results_.size());
    plan_.results_.push_back(std::move(results));
  }

  std::vector<Handing> handed_on(const Results& results, RegionId id,
                                 std::span<const ValueId> carries) {
    const Region& region = graph_[id];
    std::vector<Handing> all;
    for (std::size_t i = 0; i < region.yields.size(); ++i) {
      Handing h{region.yields[i], results.places[i]};
      if (i < carries.size() && h.from == carries[i]) continue;
      h.staged = std::ranges::find(carries, h.from) != carries.end();
      if (h.staged) h.stage = take(plan_.bytes(h.from));
      all.push_back(h);
    }
    return all;
  }

  Plan& plan_;
  const graph::Graph& graph_;
  std::vector<std::uint32_t> depth_, last_use_;
  std::vector<std::uint32_t> position_;  // in each region on the way to the current one
  std::map<std::size_t, std::vector<std::size_t>> free_;
  std::size_t end_;
};

Plan::Plan(const graph::Graph& g)
    : graph_(g),
      places_(g.insts.size()),
      counts_(g.insts.size()),
      is_used_(g.insts.size()),
      steps_(g.regions.size()),
      number_(g.insts.size()) {
  for (std::size_t i = 0; i < g.insts.size(); ++i)
    counts_[i] = graph::element_count(g.insts[i].type.shape);
  for (std::size_t r = 0; r < g.regions.size(); ++r)
    for (const ValueId v : g.regions[r].insts) {
      decode(v);
      if (!is_kept(v)) steps_[r].push_back({evaluation(g[v].op), &g[v], v});
    }
  for (const Inst& inst : g.insts)
    for (const ValueId a : inst.args) is_used_[index(a)] = true;
  for (const Region& region : g.regions)
    for (const ValueId y : region.yields) is_used_[index(y)] = true;
  place_constants();
  place_arrays();
  for (const graph::Body& body : g.bodies) Placement(*this, body.region);
  for (const BlockMapping& m : g.mapping.block_mappings)
    if (m.index_map != no_region) Placement(*this, RegionId{m.index_map});
}

bool Plan::is_kept(ValueId v) const {
  return graph_[v].op == Op::Constant && bytes(v) <= most_kept_bytes;
}

void Plan::place_constants() {
  for (std::size_t i = 0; i < graph_.insts.size(); ++i) {
    const ValueId v{static_cast<std::uint32_t>(i)};
    if (!is_kept(v)) continue;
    if (count(v) > 1) continue;
    places_[i] = constant_bytes_;
    constant_bytes_ += scalar_bytes;
    constants_.push_back(v);
  }
}

void Plan::place_arrays() {
  constant_bytes_ = rounded(constant_bytes_);
  for (std::size_t i = 0; i < graph_.insts.size(); ++i) {
    const ValueId v{static_cast<std::uint32_t>(i)};
    if (!is_kept(v) || count(v) == 1) continue;
    places_[i] = constant_bytes_;
    constant_bytes_ += rounded(bytes(v));
    constants_.push_back(v);
  }
}

void Plan::decode(ValueId v) {
  const auto add = [&](auto& all, auto decoded) {
    number_[index(v)] = static_cast<std::uint32_t>(all.size());
    all.push_back(std::move(decoded));
  };
  switch (graph_[v].op) {
  case Op::At: return add(subscripts_, graph::Subscript::of(graph_[v]));
  case Op::Load:
  case Op::Store:
  case Op::Swap:
  case Op::Atomic: return add(memories_, graph::MemoryView::of(graph_[v]));
  default: return;
  }
}

}  // namespace palladium::interpreter
