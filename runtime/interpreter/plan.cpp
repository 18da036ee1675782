#include "runtime/interpreter/plan.hpp"

#include <algorithm>
#include <map>

namespace palladium::interpreter {

using graph::index;
using graph::Inst;
using graph::Op;
using graph::Region;
using graph::RegionId;
using graph::ValueId;

namespace {

std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + Plan::alignment - 1) / Plan::alignment *
         Plan::alignment;
}

}  // namespace

/// Places one outermost region.
class Plan::Placement {
 public:
  Placement(Plan& plan, RegionId region) : plan_(plan), graph_(plan.graph_) {
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

  void find_uses(RegionId id) {
    const Region& region = graph_[id];
    const std::uint32_t own = depth();
    position_.push_back(0);
    plan_.depth_ = std::max(plan_.depth_, position_.size());
    for (const ValueId v : region.insts) {
      ++position_.back();
      depth_[index(v)] = own;
      last_use_[index(v)] = position_.back();
      for (const ValueId a : graph_[v].args) use(a);
      for (const RegionId inner : graph_[v].regions) {
        // A loop's parameters belong to the loop: they outlive its region until the last get.
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

  void release(ValueId v) {
    if (graph_[v].type.is_value())
      free_[rounded(plan_.bytes(v))].push_back(plan_.places_[index(v)]);
  }

  void place(RegionId id) {
    const Region& region = graph_[id];
    std::vector<std::pair<std::uint32_t, ValueId>> alive;  // last use, value
    std::uint32_t position = 0;
    for (const ValueId v : region.insts) {
      ++position;
      const Inst& inst = graph_[v];
      take(v);
      alive.push_back({last_use_[index(v)], v});
      for (const RegionId inner : inst.regions) {
        for (const ValueId p : graph_[inner].params) take(p);
        if (inst.op == Op::Loop) plan_carries(v, inner);
        place(inner);
        for (const ValueId p : graph_[inner].params)
          alive.push_back({std::max(last_use_[index(v)], last_use_[index(p)]), p});
      }
      std::erase_if(alive, [&](const auto& entry) {
        if (entry.first > position) return false;
        release(entry.second);
        return true;
      });
    }
    for (const auto& entry : alive) release(entry.second);
  }

  void plan_carries(ValueId loop, RegionId id) {
    const Region& region = graph_[id];
    std::vector<CarryCopy> copies;
    for (std::size_t i = 0; i < region.yields.size(); ++i) {
      CarryCopy copy{region.yields[i], region.params[i + 1]};
      if (copy.from == copy.to) continue;
      copy.staged =
          std::find(region.params.begin(), region.params.end(), copy.from) != region.params.end();
      if (copy.staged) copy.stage = take(plan_.bytes(copy.from));
      copies.push_back(copy);
    }
    plan_.loop_number_[index(loop)] = static_cast<std::uint32_t>(plan_.carry_copies_.size());
    plan_.carry_copies_.push_back(std::move(copies));
  }

  Plan& plan_;
  const graph::Graph& graph_;
  std::vector<std::uint32_t> depth_, last_use_;
  std::vector<std::uint32_t> position_;  // in each region on the way to the current one
  std::map<std::size_t, std::vector<std::size_t>> free_;
  std::size_t end_ = 0;
};

Plan::Plan(const graph::Graph& g)
    : graph_(g), places_(g.insts.size()), counts_(g.insts.size()), loop_number_(g.insts.size()) {
  for (std::size_t i = 0; i < g.insts.size(); ++i)
    counts_[i] = graph::element_count(g.insts[i].type.shape);
  for (const graph::Body& body : g.bodies) Placement(*this, body.region);
  for (const BlockMapping& m : g.mapping.block_mappings)
    if (m.index_map != no_region) Placement(*this, RegionId{m.index_map});
}

}  // namespace palladium::interpreter
