// Finds, for each loop, iterations that follow each other and in which conditions on elements are
// known before it begins: masks of blocks that are wholly on one side of what they ask. Such
// iterations are a loop of their own (KnownIterations), in which nobody asks.
//
// A condition is known where comparisons of integers are that it is made of, which are sums of
// coordinates, of the number of the iteration and of scalars that the loop does not change: then
// the least and the largest of their differences in a block are sums of the latter two. 32 bits
// wrap: the iterations are those in which no part of these sums does.
//
// Precondition: assign_layouts; statements do not move any more. Of loops in each other the
// innermost alone is looked at, and one that goes over the slots of a ring is not.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/graph/cost.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/iteration_bounds.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::Op;

// Elements of a thread of which a condition is worth a loop, and those that the text of a loop may
// have which is written three times.
constexpr std::int64_t fewest_elements = 8, most_repeated = 768;
// Registers that values take, at most, beside operands of mma.sync and their addresses.
constexpr std::int64_t most_held_by_warps = 176;

struct Condition {
  ValueId of = graph::no_value;
  bool holds = true;
};

class IndexSets {
 public:
  explicit IndexSets(Program& l) : l_(l), g_(l.graph) {}

  /// Whether a loop stands in the list.
  bool visit(Statements& list) {
    bool any = false;
    for (Statement& s : list) {
      bool inside = false;
      for_each_body(s, [&](Statements& body) { inside |= visit(body); });
      any |= inside || repeats(s);
      if (inside) continue;
      if (Loop* const loop = std::get_if<Loop>(&s.what))
        split(*loop, {.index = g_[graph::LoopView::of(g_[loop->inst]).body].params[0]}, s.at);
      if (GridLoop* const loop = std::get_if<GridLoop>(&s.what))
        if (loop->axis != programs_axis) split(*loop, {.axis = loop->axis}, s.at);
    }
    return any;
  }

 private:
  template <class T>
  void split(T& loop, IterationNumber number, Location at) {
    if (loop.ring || is_short(loop)) return;
    std::vector<Condition> found;
    std::int64_t elements = 0;
    look(loop.body, found, elements);
    if (found.empty()) return;
    for (const StorageId s : filled_in(loop.body)) number.changing.insert(s);
    IterationBounds bounds(l_, number);
    KnownIterations known;
    for (const Condition& c : found)
      if (std::optional<Known> k = bounds.of(c.of, c.holds)) add(known, *k);
    if (known.empty()) return;
    if (elements > most_repeated)
      tell(at,
           "the loop is too long to be written again for those in which they are known before it "
           "begins");
    else if (multiplies_by_warps(loop.body) && l_.most_held > most_held_by_warps)
      tell(at,
           "values take the registers that addresses would need where it is written again for "
           "those in which they are known before it begins");
    else
      loop.known = std::move(known);
  }

  void tell(Location at, const char* why) {
    l_.remarks.push_back(
        {at, std::string("conditions on elements are asked in every iteration: ") + why});
  }

  // ---- loops

  // By mma.sync, whose operands are in registers, too.
  static bool multiplies_by_warps(const Statements& list) {
    return std::ranges::any_of(list, [](const Statement& s) {
      const Dot* const d = std::get_if<Dot>(&s.what);
      bool found = d != nullptr && !is_of_wgmma(d->unit);
      for_each_body(s, [&](const Statements& body) { found = found || multiplies_by_warps(body); });
      return found;
    });
  }

  bool is_short(const Loop& loop) const {
    return graph::trips(g_, loop.inst).value_or(INT64_MAX) < 3 ||
           graph::LoopView::of(g_[loop.inst]).unroll > 1;
  }
  bool is_short(const GridLoop& loop) const {
    const Dim& d = g_.mapping.grid[static_cast<std::size_t>(loop.axis)];
    return d.is_static() && d.value() < 3;
  }

  std::set<StorageId> filled_in(const Statements& list) const {
    std::set<StorageId> filled;
    for (const Statement& s : list) {
      for (const Effect& e : effects(l_, s))
        if (e.writes() && e.storage) filled.insert(e.storage);
      for_each_body(s, [&](const Statements& body) { filled.merge(filled_in(body)); });
    }
    return filled;
  }

  // ---- what is asked in them

  void look(const Statements& list, std::vector<Condition>& found, std::int64_t& elements) const {
    for (const Statement& s : list) {
      if (const LoopNest* const p = std::get_if<LoopNest>(&s.what)) {
        if (!std::holds_alternative<lowered::Clear>(p->sink)) elements += elements_in_text(*p);
        if (graph::element_count(p->domain) >= fewest_elements * l_.threads()) look(*p, found);
      }
      for_each_body(s, [&](const Statements& body) { look(body, found, elements); });
    }
  }

  void look(const LoopNest& p, std::vector<Condition>& found) const {
    std::set<ValueId> seen;
    std::vector<ValueId> stack;
    const auto push = [&](ValueId v) {
      if (v != graph::no_value && g_[v].type.is_value() && seen.insert(v).second)
        stack.push_back(v);
    };
    push(p.value);
    if (std::holds_alternative<lowered::Clear>(p.sink)) found.push_back({p.value, true});
    if (const ValueId access = accessed_by(p.sink); access != graph::no_value) {
      const ValueId mask = graph::MemoryView::of(g_[access]).mask;
      if (mask != graph::no_value) found.push_back({mask, true});
    }
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (l_.storage_of[v] && v != p.value) continue;
      const Inst& i = g_[v];
      const bool loads = i.op == Op::Load || i.op == Op::Swap;
      if (i.op == Op::Select && !i.type.shape.empty()) found.push_back({i.args[0], holds(i)});
      if (loads && graph::MemoryView::of(i).mask != graph::no_value)
        found.push_back({graph::MemoryView::of(i).mask, true});
      for (const ValueId a : i.args) push(a);
    }
  }

  // What is left of a block that a condition hides is a constant, which nobody computes for long.
  bool holds(const Inst& select) const {
    return !is_constant(select.args[1]) || is_constant(select.args[2]);
  }
  bool is_constant(ValueId v) const {
    while (g_[v].op == Op::Broadcast) v = g_[v].args[0];
    return g_[v].op == Op::Constant;
  }

  // In iterations in which all is known; what would be another than it is known to be, is not.
  static void add(KnownIterations& all, const Known& k) {
    const auto is_in = [](const auto& list, const auto& x) {
      return std::ranges::find(list, x) != list.end();
    };
    for (const auto& [v, holds] : k.conditions)
      if (is_in(holds ? all.failing : all.holding, v)) return;
    for (const auto& [v, holds] : k.conditions)
      if (auto& to = holds ? all.holding : all.failing; !is_in(to, v)) to.push_back(v);
    require_also(all.sums, k.sums);
  }

  Program& l_;
  const graph::Graph& g_;
};

}  // namespace

void split_index_sets(Program& l) {
  for_each_list(l, [&](Statements& list) { IndexSets(l).visit(list); });
}

}  // namespace palladium::passes
