#include "codegen/timeline/costs.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "codegen/graph/cost.hpp"
#include "codegen/graph/grid_order.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::timeline {

using graph::ValueId;
using lowered::Statement;
using lowered::Statements;
using Kind = Act::Kind;

namespace {

constexpr double warps_of_group = 4, wavefront = 128, bytes_of_matrices = 512;

void add_with_bodies(const Statements& list, std::set<int>& all) {
  for (const Statement& s : list)
    lowered::for_each_body(s, [&](const Statements& body) {
      all.insert(s.id.number());
      add_with_bodies(body, all);
    });
}

// What is loaded into registers for the next iteration.
void add_ahead(const Statements& list, bool inside, std::set<int>& all) {
  for (const Statement& s : list) {
    const auto* const ahead = std::get_if<lowered::Ahead>(&s.what);
    if (inside) all.insert(s.id.number());
    lowered::for_each_body(s, [&](const Statements& body) {
      add_ahead(body, inside || (ahead != nullptr && !ahead->ring), all);
    });
  }
}

// Whether the value is computed of what the counter is.
bool depends_on(const graph::Graph& g, ValueId v, ValueId counter, std::set<ValueId>& seen) {
  if (v == counter) return true;
  if (!seen.insert(v).second) return false;
  return std::ranges::any_of(g[v].args, [&](ValueId x) { return depends_on(g, x, counter, seen); });
}

/// What a loop that stands in others reads, the same in all of their iterations.
class ReadAgain {
 public:
  explicit ReadAgain(const lowered::Program& l) : l_(l) {
    lowered::for_each_list(l, [&](const Statements& list) { visit(list); });
  }

  std::set<int> all = {};

 private:
  void visit(const Statements& list) {
    for (const Statement& s : list) {
      const lowered::Loop* const loop = std::get_if<lowered::Loop>(&s.what);
      const bool counts = loop != nullptr && graph::trips(l_.graph, loop->inst).value_or(2) > 1;
      if (counts)
        counters_.push_back(l_.graph[graph::LoopView::of(l_.graph[loop->inst]).body].params[0]);
      lowered::for_each_body(s, [&](const Statements& body) { visit(body); });
      if (counts) counters_.pop_back();
      if (is_same_in_any(s)) all.insert(s.id.number());
    }
  }

  bool is_same_in_any(const Statement& s) const {
    for (const lowered::Effect& e : lowered::effects(l_, s)) {
      if (!e.window || e.leaf == graph::no_value || l_.graph[e.leaf].args.empty()) continue;
      for (std::size_t i = 0; i + 1 < counters_.size(); ++i) {
        std::set<ValueId> seen;
        if (!depends_on(l_.graph, l_.graph[e.leaf].args[0], counters_[i], seen)) return true;
      }
    }
    return false;
  }

  const lowered::Program& l_;
  std::vector<ValueId> counters_ = {};  // from the outermost
};

}  // namespace

std::set<int> with_bodies(const lowered::Program& l) {
  std::set<int> all;
  lowered::for_each_list(l, [&](const Statements& list) { add_with_bodies(list, all); });
  return all;
}

Costs::Costs(const lowered::Program& l, const thread::Program& p, const Speeds& speeds)
    : Costs(l, thread::works(p, with_bodies(l)), speeds) {}

Costs::Costs(const lowered::Program& l, std::map<int, thread::Work> works, const Speeds& speeds)
    : l_(l), speeds_(speeds), works_(std::move(works)) {
  lowered::for_each_list(l, [&](const Statements& list) { add_ahead(list, false, ahead_); });
  read_again_ = ReadAgain(l).all;
}

const thread::Work& Costs::work(const Statement& s) const {
  static const thread::Work none;
  const auto it = works_.find(s.id.number());
  return it == works_.end() ? none : it->second;
}

Cost Costs::of_threads(const Act& act, int warpgroups, bool is_one_thread, bool first) const {
  Cost cost;
  if (first) cost = of_work(work(*act.by), act, is_one_thread);
  switch (act.kind) {
  case Kind::sync:
  case Kind::meet:
    cost.alone = std::max(
        cost.alone, warpgroups > 1 && !act.by_warpgroups ? speeds_.meet_more : speeds_.meet_one);
    break;
  case Kind::wait: cost.alone = std::max(cost.alone, speeds_.learn); break;
  default: break;
  }
  if (std::holds_alternative<lowered::Fence>(act.by->what))
    cost.alone = std::max(cost.alone, speeds_.fence);
  return cost;
}

// A warpgroup has a warp on each quarter of the multiprocessor; one thread has a quarter for
// itself, and does one thing behind the other.
Cost Costs::of_work(const thread::Work& w, const Act& act, bool is_one_thread) const {
  const Statement& s = *act.by;
  const InstructionMix& m = w.mix;
  const bool is_product = w.wgmma > 0;
  const double warps = is_one_thread ? 1 : warps_of_group;
  const double instructions = m.global_loads + m.global_stores + m.shared_loads + m.shared_stores +
                              m.operations + m.exchanges + m.barriers + m.multiply_adds + w.wgmma +
                              w.mma + (is_product ? 0 : w.tensor_bytes / bytes_of_matrices) +
                              w.special_steps + w.conversions;
  Cost cost;
  cost.of(Part::issue) = instructions * warps / warps_of_group;
  cost.of(Part::integer) = w.integer * speeds_.integer_cycles * warps / warps_of_group;
  cost.of(Part::special) = m.special * speeds_.special_cycles * warps / warps_of_group;
  cost.of(Part::shared) = (w.wavefronts + m.exchanges) * warps;
  if (is_one_thread) cost.alone = instructions * speeds_.operation_latency;
  if (!is_product) {
    cost.of(Part::shared) += w.tensor_bytes * warps / wavefront;
    cost.of(Part::tensor) = w.mma * speeds_.mma_cycles * warps / warps_of_group;
  }
  const bool is_awaited =
      act.kind != Kind::copy_by_threads && w.loaded_bytes > 0 && !ahead_.contains(s.id.number());
  if (w.loaded_bytes + w.stored_bytes > 0 && !is_product)
    move(cost, (w.loaded_bytes + w.stored_bytes) * warps, s);
  if (m.operations > 0) cost.behind = speeds_.operation_latency;
  if (m.special > 0) cost.behind = speeds_.special_latency;
  if (m.exchanges + w.wavefronts > 0) cost.behind = speeds_.shared_latency;
  if (w.mma > 0) cost.behind = speeds_.mma_latency;
  if (is_awaited)
    cost.behind = speeds_.load_latency + (is_read_once(s) ? speeds_.device_latency : 0);
  return cost;
}

Cost Costs::of_flight(const Act& act) const {
  const Statement& s = *act.by;
  const thread::Work& w = work(s);
  Cost cost;
  switch (act.kind) {
  case Kind::product:
    cost.of(Part::tensor) = w.wgmma_columns / speeds_.wgmma_columns +
                            w.wgmma_from_registers * speeds_.wgmma_from_registers;
    cost.of(Part::shared) = w.tensor_bytes / wavefront;
    for (const auto& [part, share] : {std::pair(Part::issue, speeds_.wgmma_issue),
                                      {Part::integer, speeds_.wgmma_integer},
                                      {Part::special, speeds_.wgmma_special}})
      cost.of(part) = share * cost.of(Part::tensor);
    cost.behind = speeds_.wgmma_latency;
    break;
  case Kind::copy: {
    const double bytes = static_cast<double>(act.bytes);
    cost.of(Part::copies) = bytes / speeds_.copy_bytes;
    move(cost, bytes / blocks_of(s), s);  // what other blocks bring of it they read
    cost.behind = speeds_.copy_latency + (is_read_once(s) ? speeds_.device_latency : 0);
    break;
  }
  // Threads ask for it, so that it is theirs already, but for the way.
  case Kind::copy_by_threads:
    cost.behind = speeds_.load_latency + (is_read_once(s) ? speeds_.device_latency : 0);
    break;
  case Kind::send: {
    const double bytes = act.by_warpgroups ? static_cast<double>(act.bytes) : bytes_of(act.reads);
    cost.of(Part::sends) = bytes / speeds_.send_bytes;
    cost.of(Part::shared) = bytes / wavefront;
    cost.of(Part::memory) = bytes / speeds_.device_bytes;
    cost.behind = speeds_.send_latency;
    break;
  }
  default: break;
  }
  return cost;
}

double Costs::blocks_of(const Statement& s) const {
  const lowered::Copy* const c = std::get_if<lowered::Copy>(&s.what);
  return c == nullptr ? 1 : static_cast<double>(graph::blocks_along(l_.graph, c->share.axes));
}

void Costs::move(Cost& cost, double bytes, const Statement& s) const {
  cost.of(Part::l2) += bytes / speeds_.l2_bytes;
  if (is_read_once(s)) cost.of(Part::memory) += bytes / speeds_.device_bytes;
}

double Costs::bytes_of(const std::vector<lowered::protocol::Act::Read>& reads) const {
  double bytes = 0;
  for (const lowered::protocol::Act::Read& r : reads)
    bytes += static_cast<double>(graph::element_count(l_.storages[r.storage].shape) *
                                 l_.storages[r.storage].dtype.bytes());
  return bytes;
}

// Each program has a part of the array for itself, which nobody has brought to the L2 cache; what
// several share, or one goes through again, is there from the second time on.
bool Costs::is_read_once(const Statement& s) const {
  if (read_again_.contains(s.id.number())) return false;
  for (const lowered::Effect& e : lowered::effects(l_, s)) {
    if (!e.window || l_.windows[e.window].mapping < 0) continue;
    const int mapping = l_.windows[e.window].mapping;
    const bool is_own = std::ranges::all_of(l_.parallel_axes, [&](int axis) {
      const Dim& size = l_.graph.mapping.grid[static_cast<std::size_t>(axis)];
      return (size.is_static() && size.value() <= 1) ||
             graph::depends_on_axis(l_.graph, mapping, axis);
    });
    if (is_own && !l_.parallel_axes.empty()) return true;
  }
  return false;
}

}  // namespace palladium::timeline
