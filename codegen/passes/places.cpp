// Decides which values are whole (get a Storage) and which are inlined into the nests of their
// users.
//
// Precondition: place_windows. Runs from the last instruction to the first, so that the sinks of
// every value are known: the positions at which its inlined users are evaluated.
#include <algorithm>
#include <map>
#include <set>

#include "codegen/graph/packed.hpp"
#include "codegen/passes/accumulators.hpp"
#include "codegen/passes/analysis.hpp"
#include "codegen/passes/inline.hpp"
#include "codegen/passes/iteration_bounds.hpp"
#include "codegen/passes/operands.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/reads_beside.hpp"
#include "codegen/passes/registers.hpp"
#include "codegen/passes/said_layouts.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;

// A value used by several nests is kept if it takes no more registers than this, else computed
// again by each of them (streamed).
constexpr std::int64_t max_kept_registers = 64, max_accumulators = 128;
// A value that takes elements from elsewhere is kept if it would be computed at more places than
// these for each element of its users: where such values stand on each other, each doubles them.
constexpr std::size_t most_places = 16;
// Recomputing this many operations, without a load, is cheaper than keeping their result.
constexpr int cheap_operations = 3;
// Registers of a thread that addresses and temporaries take.
constexpr std::int64_t beside_values = 26;

/// Where a value is evaluated, in the loops of so many sequential axes.
struct Evaluation {
  int position = 0;
  ValueId user = graph::no_value;     // none: the end of a region
  ValueId yielded = graph::no_value;  // there: one of its values
  int loop = -1;
  int around = 0;
  auto operator<=>(const Evaluation&) const = default;
};

class Placement {
 public:
  /// `inlined`: are not kept for what it costs to compute them again.
  Placement(Program& l, std::set<ValueId> inlined)
      : l_(l),
        g_(l.graph),
        inlined_(std::move(inlined)),
        a_(l.graph),
        beside_(l, a_),
        halved_(graph::halved_bytes(l.graph)),
        sinks_(l.graph.insts.size()),
        places_(l.graph.insts.size()) {
    find_moving();
    find_scaled();
    for (const ValueId w : a_.writes)
      for (const ValueId root : roots_written(g_, w))
        writes_[g_.alias_class(root)].push_back(a_.position[index(w)]);
  }

  void run() {
    l_.storage_of.assign(g_.insts.size(), {});
    for (auto it = a_.order.rbegin(); it != a_.order.rend(); ++it) place(*it);
    for (ValueId v : a_.order)
      if (graph::has_results(g_[v].op))
        join_results(v);
      else if (g_[v].op == Op::InlineCuda)
        place_results_of_text(l_, a_, v);
  }

  /// Where values leave a thread no registers: those that an operation makes of others which live
  /// as long.
  std::set<ValueId> made_of_others() const {
    std::int64_t registers = 0;
    for (const Storage& s : l_.storages)
      if (s.in_registers())
        registers += registers_estimate(graph::Type::value(s.dtype, s.shape), l_.threads());
    if (registers + beside_values <= registers_of_thread(l_)) return {};
    std::set<ValueId> found;
    for (const ValueId v : kept_)
      if (is_made_of_others(v)) found.insert(v);
    return found;
  }

 private:
  void place(ValueId v) {
    const Inst& inst = g_[v];
    if (g_.is_view(v)) find_sinks(v);
    if (!inst.type.is_value()) return;
    find_sinks(v);
    if (inst.op == Op::Atomic && a_.uses(v) == 0) return;
    if (inst.op == Op::Atomic && !is_scalar(inst)) return keep_in_shared(v);
    if (is_scalar(inst)) {
      if (inst.op != Op::Constant && inst.op != Op::Param) keep(v, OneElement{});
      if (inst.op == Op::Param && a_.loop[index(v)] >= 0) keep(v, OneElement{});
      return;
    }
    find_places(v);
    for (const auto& operand : {turned_operand(v), shared_operand(v)})
      if (operand) return keep(v, storage_for(g_, *operand).in, operand->shape);
    if (const auto room = beside_.fetched(v)) return keep(v, *room);
    if (!halved_.contains(v) && beside_.is_loaded_ahead(v)) return keep(v, Registers{});
    const bool in_place = scaled_.contains(v) || sums_.contains(v);
    if (inst.op == Op::LayoutCast) return keep_as_said(v);
    if (must_be_whole(v) || multiplies(v) || (!in_place && worth_spreading(v)))
      return keep(v, Registers{});
    if (is_taken_apart(v)) return keep(v, Registers{});
    if (in_place || inlined_.contains(v) || !worth_keeping(v)) return;
    keep(v, Registers{});
    if (graph::is_elementwise(g_[v].op)) kept_.push_back(v);
  }

  bool is_made_of_others(ValueId v) const {
    if (g_[v].op == Op::Cast || graph::info(g_[v].op).ulp > 0) return false;
    for (ValueId a : g_[v].args) {
      while (g_[a].op == Op::Broadcast && !l_.storage_of[a]) a = g_[a].args[0];
      const StorageId s = l_.storage_of[a];
      if (g_[a].op == Op::Constant || (s && l_.storages[s].is_scalar())) continue;
      if (!s || !l_.storages[s].in_registers() || inlined_.contains(a)) return false;
      const bool is_small =
          4 * graph::element_count(g_[a].type.shape) <= graph::element_count(g_[v].type.shape);
      if (!is_small && (a_.region[index(a)] != a_.region[index(v)] || last_sink(a) < last_sink(v)))
        return false;
    }
    return true;
  }
  int last_sink(ValueId v) const {
    int last = -1;
    for (const Evaluation& sink : sinks_[index(v)]) last = std::max(last, sink.position);
    return last;
  }

  // Whether it is loaded, and every so manyth element of what is computed of it is wanted: of
  // neighbours that a thread has.
  bool is_taken_apart(ValueId v) const {
    constexpr std::size_t most_looked_at = 32;
    if (g_[v].op != Op::Load || !l_.window_loaded(v).is_direct() ||
        registers_estimate(g_[v].type, l_.threads()) > max_kept_registers)
      return false;
    std::vector<ValueId> stack{v};
    std::set<ValueId> seen;
    while (!stack.empty() && seen.size() < most_looked_at) {
      const ValueId next = stack.back();
      stack.pop_back();
      if (!seen.insert(next).second) continue;
      for (const ValueId u : a_.users[index(next)]) {
        if (g_[u].op == Op::Slice && is_apart(graph::SliceView::of(g_[u]))) return true;
        if (graph::is_elementwise(g_[u].op) && !l_.storage_of[u]) stack.push_back(u);
      }
    }
    return false;
  }
  static bool is_apart(const graph::SliceView& slice) {
    return std::ranges::any_of(slice.strides, [](std::int64_t s) { return s > 1; });
  }

  // A product's accumulators are distributed even if there is only one.
  static bool is_scalar(const Inst& i) {
    return graph::element_count(i.type.shape) == 1 && i.op != Op::Dot;
  }

  // Of the threads that share an element one has what it was.
  void keep_in_shared(ValueId v) { keep(v, Shared{.row_stride = g_[v].type.shape.back()}); }

  // Where v is evaluated if it is inlined: at its whole users, and where its inlined users are.
  // Index arrays are evaluated where their views are accessed.
  void find_sinks(ValueId v) {
    std::set<Evaluation>& s = sinks_[index(v)];
    for (ValueId u : a_.users[index(v)]) {
      const bool inlined =
          g_.is_view(u) || (!l_.storage_of[u] && g_[u].type.is_value() && g_[u].op != Op::Atomic);
      if (inlined)
        s.insert(sinks_[index(u)].begin(), sinks_[index(u)].end());
      else if (g_[u].op == Op::Dot)
        add_staged(v, u);
      else
        s.insert({a_.position[index(u)], u, graph::no_value, a_.loop[index(u)], l_.around[u]});
    }
    // A yielded value is evaluated at the end of its region.
    for (const End& e : a_.yielded[index(v)])
      s.insert({e.position, graph::no_value, v, e.loop, l_.around[e.owner]});
    // Where the product is, if it is added in place.
    if (const auto scaled = scaled_.find(v); scaled != scaled_.end()) {
      const ValueId dot = scaled->second;
      s.insert(
          {a_.position[index(dot)], dot, graph::no_value, a_.loop[index(dot)], l_.around[dot]});
    }
  }

  void find_scaled() {
    for (const auto& [product, added] : accumulations(g_, a_)) {
      for (ValueId v = product; v != added.added_by;) {
        v = a_.users[index(v)][0];
        sums_.insert(v);
      }
      for (const ValueId scaled : added.scaled) scaled_[scaled] = product;
      if (!added.scaled.empty() && added.first) scaled_[added.old] = product;
    }
  }

  // An operand of a product is staged before the loops in which it is not made; of several products
  // of a region that read it in one place, where the first one is.
  void add_staged(ValueId operand, ValueId product) {
    ValueId at = a_.loop_between(operand, product);
    const auto add = [&] {
      sinks_[index(operand)].insert(
          {a_.position[index(at)], at, graph::no_value, a_.loop[index(at)], l_.around[operand]});
    };
    if (at != graph::no_value) return add();
    for (const Operand& staged : operands(product)) {
      if (staged.value != operand) continue;
      at = first_of(staged, product);
      add();
    }
  }

  // The first product of the same region that has such an operand.
  ValueId first_of(const Operand& staged, ValueId product) {
    for (const ValueId u : a_.users[index(staged.value)])
      if (g_[u].op == Op::Dot && a_.position[index(u)] < a_.position[index(product)] &&
          a_.region[index(u)] == a_.region[index(product)] &&
          std::ranges::count(operands(u), staged) > 0)
        return u;
    return product;
  }

  const std::vector<Operand>& operands(ValueId product) {
    std::vector<Operand>& known = operands_[product];
    if (known.empty()) {
      const auto [d, layout] = passes::product(l_, product);
      const auto [a, b] = operands_of(l_, d, layout);
      known = {a, b};
    }
    return known;
  }

  static bool must_always_be_whole(const Inst& i) {
    return i.op == Op::Param || i.op == Op::Get || i.op == Op::Dot || i.op == Op::Swap ||
           i.op == Op::LayoutCast || graph::is_fold(i.op);
  }

  bool must_be_whole(ValueId v) const {
    const Inst& i = g_[v];
    if (must_always_be_whole(i)) return true;
    return i.op == Op::Load && (overwritten_before_use(v) || others_go_on_before_use(v));
  }

  // Whether others may write, between the load and one of the places where it would be evaluated,
  // what it reads: behind an operation that lets them.
  bool others_go_on_before_use(ValueId load) const {
    if (a_.syncs.empty()) return false;
    const Window& w = l_.window_loaded(load);
    if (w.read_only || w.residency() == Residency::registers) return false;
    for (const Evaluation& sink : sinks_[index(load)]) {
      if (any_between(a_.syncs, a_.position[index(load)], sink.position)) return true;
      for (int loop = sink.loop; loop >= 0; loop = a_.loop[loop])
        if (!a_.inside(load, ValueId(loop)) &&
            any_between(a_.syncs, a_.position[loop], a_.last[loop]))
          return true;
    }
    return false;
  }

  // Whether a write may come between the load and one of the places where it would be evaluated.
  bool overwritten_before_use(ValueId load) const {
    const auto found = writes_.find(g_.alias_class(root_of(g_, load)));
    if (found == writes_.end()) return false;
    const std::vector<int>& writes = found->second;
    for (const Evaluation& sink : sinks_[index(load)]) {
      const bool writes_here = std::binary_search(writes.begin(), writes.end(), sink.position);
      if (writes_here && !writes_what_it_reads(load, sink.user)) return true;
      if (any_between(writes, a_.position[index(load)], sink.position - 1)) return true;
      for (int loop = sink.loop; loop >= 0; loop = a_.loop[loop])
        if (!a_.inside(load, ValueId(loop)) &&
            any_between(writes, a_.position[loop], a_.last[loop]))
          return true;
    }
    return false;
  }

  // One of the ascending numbers above `low` that is not above `high`.
  static bool any_between(const std::vector<int>& numbers, int low, int high) {
    const auto next = std::upper_bound(numbers.begin(), numbers.end(), low);
    return next != numbers.end() && *next <= high;
  }

  // o[_] = f(o[_]): each thread reads an element, then writes it. Both must take the whole window
  // of one mapping, and the load reach the store unpermuted.
  bool writes_what_it_reads(ValueId load, ValueId store) const {
    if (!is_whole_access(g_, load) || g_[g_[store].args[0]].op != Op::Param) return false;
    if (root_of(g_, load) != root_of(g_, store)) return false;
    bool same = true;
    const ValueId value = graph::MemoryView::of(g_[store]).value;
    const DimMap all = identity_map(static_cast<int>(g_[value].type.shape.size()));
    for_each_leaf(l_, value, all, false, [&](ValueId leaf, const DimMap& map, StorageId) {
      if (leaf == load && map != all) same = false;
    });
    return same;
  }

  // Whether the value, if nothing of it is kept, is computed of elements at other coordinates.
  void find_moving() {
    moving_.resize(g_.insts.size());
    for (const ValueId v : a_.order) {
      const Inst& i = g_[v];
      if (!i.type.is_value() || must_always_be_whole(i) || i.op == Op::Load) continue;
      bool moves = !graph::is_elementwise(i.op) && !i.args.empty();
      for (const ValueId a : i.args) moves = moves || moving_[index(a)];
      moving_[index(v)] = moves;
    }
  }

  // The ways on which users come to elements of v: they share what they compute only on the same.
  void find_places(ValueId v) {
    std::set<std::uint64_t>& places = places_[index(v)];
    for (const ValueId u : a_.users[index(v)]) {
      const bool inlined = g_[u].type.is_value() && !l_.storage_of[u];
      if (!inlined) {
        places.insert(0);
      } else if (graph::is_elementwise(g_[u].op)) {
        places.insert(places_[index(u)].begin(), places_[index(u)].end());
      } else {
        for (std::size_t a = 0; a < g_[u].args.size(); ++a)
          if (g_[u].args[a] == v)
            for (const std::uint64_t p : places_[index(u)])
              places.insert((p * 0x9e3779b97f4a7c15u) ^ ((std::uint64_t{index(u)} << 8) + a + 1));
      }
      if (places.size() > most_places) return;
    }
  }

  bool multiplies(ValueId v) const {
    return moving_[index(v)] && places_[index(v)].size() > most_places &&
           fits_registers(l_, g_[v].type, max_whole_registers);
  }

  // Of what is broadcast the operand is kept, which is less. What is computed of elements of
  // products can take their place.
  bool worth_keeping(ValueId v) {
    if (g_[v].op == Op::Broadcast || is_known_at_times(v)) return false;
    const auto& s = sinks_[index(v)];
    bool repeated = s.size() > 1;
    for (const Evaluation& sink : s)
      repeated |= sink.loop != a_.loop[index(v)] || sink.around != l_.around[v];
    return repeated && cost(v, cheap_operations + 1) > cheap_operations &&
           fits_registers(l_, g_[v].type,
                          is_of_products(g_, v) ? max_accumulators : max_kept_registers);
  }

  // Whether v is a condition on elements that the number of an iteration decides for whole blocks:
  // those iterations compute nothing of it.
  bool is_known_at_times(ValueId v) const {
    if (!g_[v].type.dtype.is_bool()) return false;
    const std::optional<IterationNumber> number = iteration_around(v);
    if (!number) return false;
    IterationBounds bounds(l_, *number);
    const auto is_decided = [&](bool holds) {
      const std::optional<Known> known = bounds.of(v, holds);
      return known && std::ranges::any_of(known->sums, [](const lowered::IterationSum& s) {
               return s.per_iteration != 0;
             });
    };
    return is_decided(true) || is_decided(false);
  }

  // Of the innermost loop, or else of the innermost axis that a program goes through.
  std::optional<IterationNumber> iteration_around(ValueId v) const {
    if (const int loop = a_.loop[index(v)]; loop >= 0) {
      const Inst& around = g_[ValueId(loop)];
      if (around.op != Op::Loop) return {};
      return IterationNumber{
          .index = g_[graph::LoopView::of(around).body].params[0],
          .is_made_before = [=, this](ValueId x) { return !a_.inside(x, ValueId(loop)); }};
    }
    const auto axes = static_cast<std::size_t>(l_.around[v]);
    if (axes == 0 || l_.sequential_axes[axes - 1] == programs_axis) return {};
    return IterationNumber{.axis = l_.sequential_axes[axes - 1]};
  }

  // An elementary function takes longer than to move its result. Where a user repeats v along a
  // dimension outside of one along which v changes, the loops over the user's elements would
  // compute it anew in each iteration.
  bool worth_spreading(ValueId v) const {
    const auto repeats = [&](ValueId u) {
      return g_[u].op == Op::Broadcast && !l_.storage_of[u] && repeats_outside(u);
    };
    return std::ranges::any_of(a_.users[index(v)], repeats) && computes_function(v) &&
           registers_estimate(g_[v].type, l_.threads()) <= max_kept_registers;
  }

  bool repeats_outside(ValueId broadcast) const {
    const Extents& to = g_[broadcast].type.shape;
    const Extents& from = g_[g_[broadcast].args[0]].type.shape;
    std::vector<bool> changes(to.size());
    for (std::size_t d = 0; d < from.size(); ++d)
      changes[static_cast<std::size_t>(graph::dimensions(g_[broadcast])[d])] = from[d] > 1;
    const auto repeated = [&](std::size_t d) { return !changes[d] && to[d] > 1; };
    std::size_t first = 0;
    while (first < to.size() && !repeated(first)) ++first;
    return std::find(changes.begin() + static_cast<std::ptrdiff_t>(std::min(first, to.size())),
                     changes.end(), true) != changes.end();
  }

  // Whether v, inlined, is computed by an elementary function.
  bool computes_function(ValueId v) const {
    constexpr int most_looked_at = 64;
    std::vector<ValueId> stack{v};
    for (int seen = 0; !stack.empty() && seen < most_looked_at; ++seen) {
      const ValueId next = stack.back();
      const Inst& i = g_[next];
      stack.pop_back();
      if (l_.storage_of[next] || !i.type.is_value() || is_scalar(i)) continue;
      if (graph::is_elementwise(i.op) && graph::info(i.op).ulp > 0) return true;
      if (i.op != Op::Load && !must_be_whole(next))
        stack.insert(stack.end(), i.args.begin(), i.args.end());
    }
    return false;
  }

  // Operations to compute v anew, up to `limit`; a load costs the limit.
  int cost(ValueId v, int limit) const {
    std::vector<ValueId> stack{v};
    int n = 0;
    while (!stack.empty() && n < limit) {
      const ValueId next = stack.back();
      const Inst& i = g_[next];
      stack.pop_back();
      if (l_.storage_of[next] || is_scalar(i)) continue;
      if (i.op == Op::Load || (graph::is_elementwise(i.op) && graph::info(i.op).ulp > 0))
        return limit;
      n += graph::is_elementwise(i.op) ? 1 : 0;
      for (ValueId a : i.args)
        if (!is_kept_later(a)) stack.push_back(a);
    }
    return std::min(n, limit);
  }

  // Operands are placed after their users: assume that what has to be whole will be.
  bool is_kept_later(ValueId v) const { return g_[v].op != Op::Load && must_be_whole(v); }

  std::optional<Operand> turned_operand(ValueId v) const {
    return must_be_whole(v) ? std::nullopt : passes::turned_operand(l_, a_, v);
  }

  // What is read where nobody writes, by a product and by others: it lives where the product reads
  // it.
  std::optional<Operand> shared_operand(ValueId v) {
    const Inst& i = g_[v];
    const bool others = std::ranges::any_of(a_.users[index(v)], [&](ValueId u) {
      const bool left_over = g_[u].type.is_value() && l_.uses[u] == 0;
      return g_[u].op != Op::Dot && !left_over;
    });
    if (i.op != Op::Load || !others || must_be_whole(v)) return {};
    const Window& w = l_.window_loaded(v);
    if (!w.is_direct() || !w.read_only || w.mapping < 0) return {};
    std::optional<Operand> read = first_read(l_, a_, v);
    // What is padded, or rounded, is not what others read.
    if (!read || read->shape != i.type.shape || read->tf32) return {};
    return read;
  }

  void keep(ValueId v, const Storage::In& in) { keep(v, in, g_[v].type.shape); }
  void keep(ValueId v, const Storage::In& in, const Extents& shape) {
    const Inst& i = g_[v];
    Storage s{.in = in, .dtype = i.type.dtype, .shape = shape, .of = v};
    if (s.in_registers() && !graph::is_fold(i.op)) s.variable = l_.add_variable();
    l_.storage_of[v] = l_.add_storage(std::move(s));
  }

  // In the layout that a user names.
  void keep_as_said(ValueId v) {
    keep(v, Registers{});
    l_.pinned[l_.storages[l_.storage_of[v]].variable] = said_layout(l_, v);
  }

  // A carry and what is read of it after the last iteration are one storage; so is a result,
  // whoever reads it.
  void join_results(ValueId v) {
    const Inst& inst = g_[v];
    std::vector<StorageId> storages;
    if (graph::repeats(inst.op)) {
      const graph::Repeated repeated = graph::Repeated::of(inst);
      const std::vector<ValueId>& params = g_[repeated.region].params;
      for (std::size_t p = repeated.first; p < params.size(); ++p)
        storages.push_back(l_.storage_of[params[p]]);
    } else {
      storages.assign(g_[inst.regions[0]].yields.size(), StorageId());
    }
    const auto join = [&](ValueId user, std::size_t result) {
      StorageId& own = l_.storage_of[user];
      StorageId& common = storages[result];
      if (!common) common = own;
      own = common;
    };
    for (ValueId u : a_.users[index(v)])
      if (g_[u].op == Op::Get) join(u, graph::result_of(g_[u]));
    if (inst.op != Op::While) return;
    const std::vector<ValueId>& asked = g_[graph::WhileView::of(inst).condition].params;
    for (std::size_t p = 0; p < asked.size(); ++p) join(asked[p], p);
  }

  Program& l_;
  const Graph& g_;
  std::set<ValueId> inlined_;
  Analysis a_;
  ReadsBeside beside_;
  const std::set<ValueId> halved_;  // bytes of which elements of 4 bits are made
  std::vector<ValueId> kept_;       // for what it costs to compute them again, computed one by one
  std::vector<std::set<Evaluation>> sinks_;
  std::vector<std::set<std::uint64_t>> places_;  // where each is computed for an element of a user
  std::vector<bool> moving_;
  std::map<ValueId, ValueId> scaled_;  // what is scaled before a product is added to it: that one
  std::set<ValueId> sums_;             // with products that are added to them
  std::map<ValueId, std::vector<Operand>> operands_;  // of products
  std::map<int, std::vector<int>> writes_;  // their positions, by alias class, in program order
};

}  // namespace

void place_values(Program& l) {
  const auto storages = l.storages;
  const auto pinned = l.pinned;
  Placement first(l, std::set<ValueId>());
  first.run();
  const std::set<ValueId> inlined = first.made_of_others();
  if (inlined.empty()) return;
  l.storages = storages;
  l.pinned = pinned;
  Placement(l, inlined).run();
}

}  // namespace palladium::passes
