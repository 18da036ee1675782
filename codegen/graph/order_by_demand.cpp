// Order by demand: see simplify.hpp, and transform.hpp for what commutes.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codegen/graph/simplify.hpp"
#include "codegen/graph/uses.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

using Values = std::vector<ValueId>;

// Alias classes that something reads and writes; each ascending, without repeats.
struct Touched {
  std::vector<int> reads = {}, writes = {};
  bool syncs = false;  // or tells: stays, even where there is no Ref to write
  bool stays() const { return syncs || !writes.empty(); }
};

void insert(std::vector<int>& set, int element) {
  const auto it = std::lower_bound(set.begin(), set.end(), element);
  if (it == set.end() || *it != element) set.insert(it, element);
}

class DemandOrder {
 public:
  DemandOrder(Graph& g, const Effects& (*effects_of)(Op)) : g_(g), effects_of_(effects_of) {
    number_classes();
  }

  void run() {
    region_.assign(g_.insts.size(), Uses::no_region_id);
    param_of_.assign(g_.insts.size(), Uses::no_region_id);
    free_.assign(g_.regions.size(), {});
    touched_.assign(g_.regions.size(), {});
    demand_.assign(g_.insts.size(), 0);
    placed_.assign(g_.insts.size(), false);
    stamp_.assign(g_.insts.size(), 0);
    for (const RegionId r : root_regions(g_)) order(r);
  }

 private:
  const Inst& inst(ValueId v) const { return g_[v]; }

  void number_classes() {
    for (const RegionId r : root_regions(g_)) {
      const Values& params = g_[r].params;
      for (std::size_t i = 0; i < params.size(); ++i)
        if (inst(params[i]).type.is_ref())
          classes_[params[i]] = is_body(g_, r) ? g_.alias_class(params[i]) : static_cast<int>(i);
    }
    for (const Inst& in : g_.insts)
      if (in.op == Op::Scoped)
        for (const ValueId p : g_[in.regions[0]].params) classes_[p] = g_.alias_class(p);
  }

  int alias_class(ValueId ref) const {
    const auto it = classes_.find(g_.root(ref));
    if (it == classes_.end()) throw InternalError("canonicalize: a Ref without a root parameter");
    return it->second;
  }

  // Operands in the order in which they are demanded: arguments, then what the bodies use.
  ValueId operand(ValueId v, std::size_t i) const {
    const Inst& in = inst(v);
    if (i < in.args.size()) return in.args[i];
    i -= in.args.size();
    for (const RegionId r : in.regions) {
      if (i < free_[index(r)].size()) return free_[index(r)][i];
      i -= free_[index(r)].size();
    }
    return no_value;
  }

  Touched touched(ValueId v) const {
    const Inst& in = inst(v);
    Effects effects = effects_of_(in.op);
    if (effects.as_said) effects = graph::effects(in);
    Touched result{.syncs = effects.syncs || effects.tells || effects.as_said};
    for (const Effect& e : effects.on_memory()) {
      const int c = alias_class(in.args[e.operand]);
      if (e.reads()) insert(result.reads, c);
      if (e.writes()) insert(result.writes, c);
    }
    if (effects.syncs)
      for (const auto& [root, c] : classes_) insert(result.writes, c);
    for (const RegionId r : in.regions) add(result, touched_[index(r)]);
    if (in.op == Op::Scoped) forget(result, g_[in.regions[0]].params);
    return result;
  }

  // Nobody else knows memory that a scope has to itself.
  void forget(Touched& e, const Values& refs) const {
    for (const ValueId ref : refs)
      for (std::vector<int>* classes : {&e.reads, &e.writes})
        std::erase(*classes, alias_class(ref));
  }

  static void add(Touched& all, const Touched& e) {
    for (const int c : e.reads) insert(all.reads, c);
    for (const int c : e.writes) insert(all.writes, c);
    all.syncs |= e.syncs;
  }

  // Depth-first over the operands of `v` that stand in region r; `leave` sees each once, operands
  // first, unless `skip` holds for it.
  template <class Skip, class Leave>
  void visit(ValueId v, RegionId r, const Skip& skip, const Leave& leave) {
    if (region_[index(v)] != r || skip(v)) return;
    std::vector<std::pair<ValueId, std::size_t>> stack{{v, 0}};
    while (!stack.empty()) {
      auto& [top, next] = stack.back();
      const ValueId below = operand(top, next++);
      if (below == no_value) {
        const ValueId done = top;
        stack.pop_back();
        if (!skip(done)) leave(done);
      } else if (region_[index(below)] == r && !skip(below)) {
        stack.push_back({below, 0});
      }
    }
  }

  // A read that must stand before some write.
  struct Pending {
    ValueId read;
    std::uint32_t demand;
  };

  void order(RegionId r) {
    for (const ValueId v : g_[r].params) param_of_[index(v)] = r;
    const Values recorded = std::move(g_[r].insts);
    const Values yields = g_[r].yields;
    Values writes;
    std::vector<Touched> touched_by_writes;
    struct Read {
      ValueId value;
      std::vector<std::pair<int, int>> epochs;  // (class, writes of it so far)
    };
    std::vector<Read> reads;
    std::unordered_map<int, int> epoch;
    for (const ValueId v : recorded) {
      for (const RegionId inner : inst(v).regions) order(inner);
      region_[index(v)] = r;
      if (effects_of_(inst(v).op).none()) continue;
      Touched e = touched(v);
      if (e.stays()) {
        for (const int c : e.writes) ++epoch[c];
        writes.push_back(v);
        touched_by_writes.push_back(std::move(e));
      } else if (!e.reads.empty()) {
        Read read{v, {}};
        for (const int c : e.reads) read.epochs.push_back({c, epoch[c]});
        reads.push_back(std::move(read));
      }
    }

    std::uint32_t position = 0;
    const auto demanded = [&](ValueId v) { return demand_[index(v)] != 0; };
    const auto number = [&](ValueId v) { demand_[index(v)] = ++position; };
    for (const ValueId w : writes) visit(w, r, demanded, number);
    for (const ValueId y : yields) visit(y, r, demanded, number);

    // Reads that must stand before the n-th write of a class, for each (class, n).
    std::unordered_map<std::uint64_t, std::vector<Pending>> pending;
    const auto key = [](int c, int n) {
      return static_cast<std::uint64_t>(c) << 32 | static_cast<std::uint32_t>(n);
    };
    for (const Read& read : reads)
      if (demanded(read.value))
        for (const auto& [c, n] : read.epochs)
          pending[key(c, n)].push_back({read.value, demand_[index(read.value)]});

    Values ordered;
    ordered.reserve(position);
    const auto is_placed = [&](ValueId v) { return static_cast<bool>(placed_[index(v)]); };
    const auto place = [&](ValueId v) {
      placed_[index(v)] = true;
      ordered.push_back(v);
    };
    epoch.clear();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      for (std::size_t n = 0; operand(writes[i], n) != no_value; ++n)
        visit(operand(writes[i], n), r, is_placed, place);
      std::vector<Pending> before;
      for (const int c : touched_by_writes[i].writes) {
        const auto it = pending.find(key(c, epoch[c]++));
        if (it != pending.end()) before.insert(before.end(), it->second.begin(), it->second.end());
      }
      std::sort(before.begin(), before.end(),
                [](const Pending& a, const Pending& b) { return a.demand < b.demand; });
      for (const Pending& p : before) visit(p.read, r, is_placed, place);
      visit(writes[i], r, is_placed, place);
    }
    for (const ValueId y : yields) visit(y, r, is_placed, place);

    Touched& all = touched_[index(r)];
    Values& free = free_[index(r)];
    ++stamps_;
    const auto use = [&](ValueId v) {
      const bool inside = region_[index(v)] == r || param_of_[index(v)] == r;
      if (inside || std::exchange(stamp_[index(v)], stamps_) == stamps_) return;
      free.push_back(v);
    };
    for (const ValueId v : ordered) {
      for (std::size_t n = 0; operand(v, n) != no_value; ++n) use(operand(v, n));
      if (!effects_of_(inst(v).op).none()) add(all, touched(v));
    }
    for (const ValueId y : yields) use(y);
    g_[r].insts = std::move(ordered);
  }

  Graph& g_;
  const Effects& (*effects_of_)(Op);
  std::unordered_map<ValueId, int> classes_;  // of root Refs
  std::vector<RegionId> region_;              // per instruction: where it is listed
  std::vector<RegionId> param_of_;            // per parameter: of which region
  std::vector<Values> free_;           // per region: what it uses of enclosing ones, in order
  std::vector<Touched> touched_;       // per region
  std::vector<std::uint32_t> demand_;  // per value: its place in the demand order, from 1; 0: dead
  std::vector<bool> placed_;
  std::vector<std::uint32_t> stamp_;
  std::uint32_t stamps_ = 0;
};

}  // namespace

void order_by_demand(Graph& g, const Effects& (*effects_of)(Op)) {
  DemandOrder(g, effects_of).run();
}

}  // namespace palladium::graph
