// Moves work out of the loops that would repeat it: loads of what nobody writes while the kernel
// runs, elementary functions, reductions, and what is computed of their results element by element.
//
// Precondition: place_windows. Of a pl::loop or a pl::while_loop the instructions move to the
// region around it; around the sequential axes of the grid there is none, so that of those `around`
// says how many stand around an instruction. The rest stays: it is recomputed for nothing, or costs
// registers if kept.
#include <algorithm>
#include <set>

#include "codegen/passes/indices.hpp"
#include "codegen/passes/iterations.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;
using graph::RegionId;

class Invariants {
 public:
  explicit Invariants(Program& l) : l_(l), g_(l.graph), all_(num_axes(l)) {}

  void run() {
    l_.around.assign(g_.insts.size(), all_);
    for (const graph::Body& b : g_.bodies) {
      hoist_invariants(b.region);
      if (all_ > 0) leave_end(b.region);
      if (all_ > 0) leave_axes(b.region);
    }
  }

 private:
  static int num_axes(const Program& l) { return static_cast<int>(l.sequential_axes.size()); }

  // ---- loops of a body, from the innermost

  void hoist_invariants(RegionId r) {
    std::vector<ValueId> insts;
    for (const ValueId v : g_[r].insts) {
      for (const RegionId inner : g_[v].regions) hoist_invariants(inner);
      // A condition is asked once, whatever it says.
      if (g_[v].op == Op::Loop) take_from(g_[v].regions[0], runs_at_least_once(g_[v]), insts);
      if (g_[v].op == Op::While) {
        const graph::WhileView loop = graph::WhileView::of(g_[v]);
        take_from(loop.condition, true, insts);
        take_from(loop.body, false, insts);
      }
      insts.push_back(v);
    }
    g_[r].insts = std::move(insts);
  }

  // `changes`: what stands around and is not the same in all iterations.
  void take_from(RegionId repeated, bool runs, std::vector<ValueId>& before,
                 std::vector<bool> changes = {}) {
    graph::Region& body = g_[repeated];
    changes.resize(g_.insts.size());
    std::vector<bool> inside(g_.insts.size());
    for (const ValueId p : body.params) inside[index(p)] = true;
    for (const ValueId v : body.insts) inside[index(v)] = true;
    const std::vector<ValueId> inner = body.insts;
    for (const ValueId p : body.params) changes[index(p)] = true;
    const bool waits = waits_for_others(repeated);
    for (const ValueId v : inner)
      changes[index(v)] =
          !may_move(v, runs) || (waits && g_[v].op == Op::Load) ||
          std::ranges::any_of(g_[v].args, [&](ValueId a) { return changes[index(a)]; });
    const std::vector<bool> moves =
        worth_moving(inner, [&](ValueId v) { return inside[index(v)] && !changes[index(v)]; });
    const auto leaves = [&](ValueId v) { return moves[index(v)]; };
    std::ranges::copy_if(inner, std::back_inserter(before), leaves);
    std::erase_if(body.insts, leaves);
  }

  // Whether somebody else may write arrays of the call before the region is over.
  bool waits_for_others(RegionId r) const {
    return std::ranges::any_of(g_[r].insts, [&](ValueId v) {
      const Inst& i = g_[v];
      return i.op == Op::GridDependencyWait || i.op == Op::SemaphoreWait ||
             std::ranges::any_of(i.regions, [&](RegionId in) { return waits_for_others(in); });
    });
  }

  bool runs_at_least_once(const Inst& loop) const {
    const graph::LoopView view = graph::LoopView::of(loop);
    const Inst& low = g_[view.low];
    const Inst& high = g_[view.high];
    return low.op == Op::Constant && high.op == Op::Constant &&
           graph::to_int(low.type.dtype, low.attr.bits) <
               graph::to_int(high.type.dtype, high.attr.bits);
  }

  // ---- sequential axes of the grid

  void leave_axes(RegionId r) {
    const std::vector<ValueId>& insts = g_[r].insts;
    const std::vector<int> depth = depths(r);
    for (const ValueId v : insts)
      if (const ValueId end = end_of(v); end != graph::no_value) ends_.insert(end);
    const std::vector<bool> moves =
        worth_moving(insts, [&](ValueId v) { return depth[index(v)] < all_; });
    for (const ValueId v : insts)
      if (moves[index(v)]) l_.around[v] = depth[index(v)];
  }

  // By how many sequential axes parameters and instructions change.
  std::vector<int> depths(RegionId r) {
    std::vector<int> depth(g_.insts.size(), 0);
    for (const ValueId p : g_[r].params)
      if (const WindowId w = l_.window_of[p]; w) depth[index(p)] = l_.windows[w].depth;
    for (const ValueId v : g_[r].insts) {
      int& d = depth[index(v)];
      d = may_move(v, true) ? own_axes(v) : all_;
      for (const ValueId a : g_[v].args) d = std::max(d, depth[index(a)]);
    }
    return depth;
  }

  // What stands under a condition that ends the innermost axis, as it were in the loop itself: what
  // is the same in all iterations stands in front of the condition.
  void leave_end(RegionId r) {
    const std::vector<int> depth = depths(r);
    std::vector<bool> changes;
    for (const int d : depth) changes.push_back(d == all_);
    std::vector<ValueId> insts;
    for (const ValueId v : g_[r].insts) {
      if (const ValueId end = end_of(v); end != graph::no_value && depth[index(end)] < all_)
        take_from(g_[v].regions[0], false, insts, changes);
      insts.push_back(v);
    }
    g_[r].insts = std::move(insts);
  }

  // Of a condition that ends the innermost axis the number where it does; no_value of others.
  ValueId end_of(ValueId v) const {
    return g_[v].op == Op::When ? end_asked(g_, g_[v].args[0], innermost_sequential_axis(g_))
                                : graph::no_value;
  }

  // How many sequential axes an instruction asks for by itself.
  int own_axes(ValueId v) const {
    if (g_[v].op != Op::ProgramId && g_[v].op != Op::AxisIndex) return 0;
    const graph::AxisView asked = graph::AxisView::of(g_[v]);
    if (asked.kind != graph::AxisKind::grid) return 0;
    const auto it = std::ranges::find(l_.sequential_axes, asked.axis);
    if (it == l_.sequential_axes.end()) return g_.persistent ? 1 : 0;
    return static_cast<int>(it - l_.sequential_axes.begin()) + 1;
  }

  // ---- what may move, and what is worth it

  // Whether v gives the same, and does no harm, where a loop around it begins; `runs`: the loop has
  // an iteration. Products stay beside what they are added to.
  bool may_move(ValueId v, bool runs) {
    const Inst& i = g_[v];
    const graph::OpClass kind = graph::info(i.op).op_class;
    if (i.op == Op::Load) return is_read_only(v);
    // A place that is known at run time, or a promise, may be wrong where it is not wanted.
    if (i.op == Op::At) return runs || is_static(i) || is_inside(v);
    if (graph::is_hint(i.op)) return runs;
    return kind == graph::OpClass::elementwise || kind == graph::OpClass::shape ||
           kind == graph::OpClass::fold || kind == graph::OpClass::view ||
           (kind == graph::OpClass::leaf && i.op != Op::Param);
  }

  bool is_read_only(ValueId load) const {
    const WindowId w = l_.window_of[g_.base(g_[load].args[0])];
    return w && l_.windows[w].read_only;
  }

  static bool is_static(const Inst& at) {
    return std::ranges::none_of(graph::Subscript::of(at).dims,
                                [](const graph::SubscriptDim& d) { return d.dynamic; });
  }

  // Whether the view shows a part of an array whatever its indices are: of one that is a block as a
  // whole, of a size that is known.
  bool is_inside(ValueId at) {
    const WindowId w = l_.window_of[g_.base(at)];
    if (!w || l_.windows[w].mapping < 0) return false;
    const BlockMapping& m = g_.mapping.block_mappings[l_.windows[w].mapping];
    const auto is_known = [](const Dim& d) { return d.is_static(); };
    if (!m.is_whole() || !std::ranges::all_of(m.array_aval.shape, is_known)) return false;
    const Inst& i = g_[at];
    const graph::Extents& of = g_[i.args[0]].type.shape;
    std::size_t operand = 1, dimension = 0;
    for (const graph::SubscriptDim& d : graph::Subscript::of(i).dims) {
      const std::int64_t extent = of[dimension++];
      if (!d.dynamic) continue;
      if (d.array) return false;
      const thread::Facts start = exprs_.facts(indices_.expr(i.args[operand++]));
      if (start.low < 0 || start.high >= extent - (d.size - 1) * d.stride) return false;
    }
    return true;
  }

  // Of the instructions that can move those that save work, with all that they need.
  template <class F>
  std::vector<bool> worth_moving(const std::vector<ValueId>& insts, F&& can) const {
    std::vector<bool> moves(g_.insts.size());
    for (const ValueId v : insts) moves[index(v)] = can(v) && (is_source(v) || continues(v, moves));
    for (auto v = insts.rbegin(); v != insts.rend(); ++v)
      if (moves[index(*v)])
        for (const ValueId a : g_[*v].args) moves[index(a)] = moves[index(a)] || can(a);
    return moves;
  }

  bool is_source(ValueId v) const {
    const Inst& i = g_[v];
    // A scan is as large as what it adds up.
    const bool reduces =
        graph::is_fold(i.op) && i.type.shape.size() < g_[i.args[0]].type.shape.size();
    return i.op == Op::Load || reduces || ends_.contains(v) ||
           (graph::is_elementwise(i.op) && graph::info(i.op).ulp > 0);
  }

  // What broadcasts a result is larger than it: kept, it would take more registers.
  bool continues(ValueId v, const std::vector<bool>& moves) const {
    return graph::is_elementwise(g_[v].op) &&
           std::ranges::any_of(g_[v].args, [&](ValueId a) { return moves[index(a)]; });
  }

  Program& l_;
  Graph& g_;
  const int all_;  // sequential axes
  thread::Exprs exprs_;
  Indices indices_{g_, exprs_};
  std::set<ValueId> ends_;  // of the innermost: its loop asks for them in front of it
};

}  // namespace

void hoist_invariants(Program& l) { Invariants(l).run(); }

}  // namespace palladium::passes
