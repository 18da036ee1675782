// Ends loops over repetitions of nests in front of elements that are nobody's: they are not stored,
// folds take their identity instead of them, and whoever else reads them ends there, too.
//
// What is beyond the end of an array, of which only a call knows how long it is, costs a thread
// then no more than the question; and where several loops end there, no more than one for all of
// them and one in each (LengthCases).
//
// Precondition: assign_layouts, and nests are where they stay.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "codegen/graph/extents.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/ends.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/sums.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::MemoryView;
using graph::Op;
using thread::Affine;
using thread::ExprId;
using thread::no_expr;

using Ends = std::vector<NestEnd>;

class Ending {
 public:
  explicit Ending(Program& l)
      : l_(l),
        g_(l.graph),
        sums_(
            l.graph, exprs_, [this](int axis) { return program_id(axis); },
            [this](std::uint32_t) { return variable(INT32_MAX); }),
        readers_(l.storages.size()),
        fixed_(l.storages.size(), false) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { visit(list); });
    for (bool changes = true; changes;) {
      changes = false;
      for (LoopNest* p : nests_) changes |= end_as_readers(*p);
    }
    for (LoopNest* p : nests_)
      std::erase_if(p->ends,
                    [&](const NestEnd& e) { return p->layout.repetitions(e.dimension) == 1; });
  }

 private:
  struct Reader {
    const LoopNest* nest = nullptr;
    DimMap map = {};
  };

  void visit(Statements& list) {
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { visit(body); });
      auto* const p = std::get_if<LoopNest>(&s.what);
      for (const Effect& e : effects(l_, s)) note(p, e);
      if (p == nullptr) continue;
      nests_.push_back(p);
      p->ends = own_ends(*p);
    }
  }

  // Who wants all that a storage holds, or what of it.
  void note(const LoopNest* p, const Effect& e) {
    if (!e.reads() || !e.storage) return;
    const bool plain = p != nullptr && e.is_element() && !e.replaces && !is_opaque(e.map);
    if (plain)
      readers_[e.storage].push_back({p, e.map});
    else
      fixed_[e.storage] = true;
    if (e.replaces) fixed_[e.replaces] = true;
  }

  // ---- what a nest says itself

  Ends own_ends(const LoopNest& p) {
    Coordinates c;
    for (std::size_t d = 0; d < p.domain.size(); ++d)
      c.push_back(Affine::term(coordinate(d, p.domain[d])));
    Ends found;
    if (const auto* store = std::get_if<Store>(&p.sink)) {
      add_of_store(*store, c, found);
    } else if (const auto* fold = std::get_if<Reduce>(&p.sink)) {
      add_of_fold(*fold, p.value, c, found);
      std::erase_if(found, [&](const NestEnd& e) {
        return std::ranges::find(fold->reduced, e.dimension) == fold->reduced.end();
      });
    }
    return found;
  }

  void add_of_store(const Store& s, const Coordinates& c, Ends& found) {
    const MemoryView m = MemoryView::of(g_[s.inst]);
    const Window& w = l_.windows[l_.window_of[g_.base(m.ref)]];
    if (!w.is_direct() || w.mapping < 0) return;
    if (m.mask != graph::no_value) add_of_condition(m.mask, c, found);
    const auto at = sums_.in_block(m.ref, c);
    const BlockMapping& block = g_.mapping.block_mappings[static_cast<std::size_t>(w.mapping)];
    std::size_t next = 0;
    for (std::size_t d = 0; at && d < block.block_shape.size(); ++d) {
      if (block.block_shape[d].kind == BlockDim::Kind::squeezed) continue;
      const Affine& x = (*at)[next++];
      const auto start = sums_.start(block, static_cast<int>(d));
      if (w.in_bounds[d] || !start || !start->is_zero()) continue;
      add(x, block.array_aval.shape[static_cast<int>(d)], c, found);
    }
  }

  void add_of_fold(const Reduce& s, ValueId value, const Coordinates& c, Ends& found) {
    found = identity_ends(s.inst, value, c, 0);
  }

  // Where a value that the fold takes is its identity.
  Ends identity_ends(ValueId fold, ValueId value, const Coordinates& c, int depth) {
    constexpr int deepest = 8;
    const Inst& i = g_[value];
    Ends found;
    if (depth > deepest) return found;
    if (i.op == Op::Select && is_identity(fold, i.args[2])) {
      found = identity_ends(fold, i.args[1], c, depth + 1);
      add_of_condition(i.args[0], c, found);
    } else if (keeps_zeros(i.op) && fold_of(g_[fold].op) == thread::Fold::sum) {
      found = identity_ends(fold, i.args[0], c, depth + 1);
      for (const ValueId a : std::span(i.args).subspan(1)) {
        const Ends other = identity_ends(fold, a, c, depth + 1);
        std::erase_if(found,
                      [&](const NestEnd& e) { return std::ranges::find(other, e) == other.end(); });
      }
    }
    return found;
  }

  // Of zeros they make one.
  static bool keeps_zeros(Op op) {
    return op == Op::Cast || op == Op::Neg || op == Op::Abs || op == Op::Add || op == Op::Sub ||
           op == Op::Mul;
  }

  bool is_identity(ValueId fold, ValueId v) const {
    while (g_[v].op == Op::Broadcast || g_[v].op == Op::Reshape) v = g_[v].args[0];
    if (g_[v].op != Op::Constant) return false;
    const DType t = g_[v].type.dtype;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    switch (fold_of(g_[fold].op)) {
    case thread::Fold::sum: return g_[v].attr.bits == 0;
    case thread::Fold::product: return g_[v].attr.bits == graph::to_bits(t, 1.0);
    case thread::Fold::max: return g_[v].attr.bits == graph::to_bits(t, -infinity);
    case thread::Fold::min: return g_[v].attr.bits == graph::to_bits(t, infinity);
    }
    return false;
  }

  // Where one of the comparisons that must all hold does not.
  void add_of_condition(ValueId condition, const Coordinates& c, Ends& found) {
    const Inst& i = g_[condition];
    if (i.op == Op::And && i.type.dtype.is_bool())
      for (const ValueId a : i.args) add_of_condition(a, c, found);
    if (const auto asked = before_end(g_, condition))
      if (const auto x = sums_.of(asked->number, c)) add(*x, asked->extent, c, found);
  }

  // A coordinate of the nest that is less than an extent of some array.
  void add(const Affine& x, const Dim& extent, const Coordinates& c, Ends& found) const {
    const auto d = std::ranges::find(c, x);
    if (d == c.end()) return;
    const auto end = end_at(g_, static_cast<int>(d - c.begin()), extent);
    if (end && std::ranges::find(found, *end) == found.end()) found.push_back(*end);
  }

  // ---- what its readers say

  bool end_as_readers(LoopNest& p) {
    const auto* assign = std::get_if<Assign>(&p.sink);
    if (assign == nullptr || !l_.storages[assign->storage].in_registers() ||
        fixed_[assign->storage])
      return false;
    const std::vector<Reader>& readers = readers_[assign->storage];
    if (readers.empty()) return false;
    bool changes = false;
    for (std::size_t d = 0; d < p.domain.size(); ++d)
      for (const NestEnd& wanted : ends_along(readers[0], d)) {
        const NestEnd end{static_cast<int>(d), wanted.mapping, wanted.along};
        const bool all = std::ranges::all_of(readers, [&](const Reader& r) {
          const Ends other = ends_along(r, d);
          return std::ranges::any_of(
              other, [&](const NestEnd& e) { return extent_of(g_, e).same(extent_of(g_, end)); });
        });
        if (!all || std::ranges::find(p.ends, end) != p.ends.end()) continue;
        p.ends.push_back(end);
        changes = true;
      }
    return changes;
  }

  // Of the reader's dimension that is this one of what it reads.
  static Ends ends_along(const Reader& r, std::size_t d) {
    Ends found;
    for (const NestEnd& e : r.nest->ends)
      if (r.map[d] == e.dimension && std::count(r.map.begin(), r.map.end(), e.dimension) == 1)
        found.push_back(e);
    return found;
  }

  // ---- numbers

  ExprId program_id(int axis) {
    const auto [it, is_new] = program_ids_.try_emplace(axis, no_expr);
    if (is_new) {
      const Dim& d = g_.mapping.grid[static_cast<std::size_t>(axis)];
      it->second = variable(d.is_static() ? d.value() : INT32_MAX);
    }
    return it->second;
  }
  ExprId coordinate(std::size_t d, std::int64_t extent) {
    const auto [it, is_new] = coordinates_.try_emplace({d, extent}, no_expr);
    if (is_new) it->second = variable(extent);
    return it->second;
  }
  ExprId variable(std::int64_t count) {
    const std::int64_t last = std::max<std::int64_t>(0, count - 1);
    return exprs_.variable(
        exprs_.declare({.name = "", .type = i32, .facts = {.low = 0, .high = last}}));
  }

  Program& l_;
  const graph::Graph& g_;
  thread::Exprs exprs_;
  Sums sums_;
  std::map<int, ExprId> program_ids_;
  std::map<std::pair<std::size_t, std::int64_t>, ExprId> coordinates_;
  std::vector<LoopNest*> nests_;
  Table<StorageId, std::vector<Reader>> readers_;
  Table<StorageId, bool> fixed_;  // all of it is read
};

}  // namespace

Dim extent_of(const graph::Graph& g, const NestEnd& end) {
  return g.mapping.block_mappings[static_cast<std::size_t>(end.mapping)]
      .array_aval.shape[end.along];
}

std::optional<NestEnd> end_at(const graph::Graph& g, int dimension, const Dim& extent) {
  if (extent.is_static()) return {};
  const std::vector<BlockMapping>& mappings = g.mapping.block_mappings;
  for (std::size_t m = 0; m < mappings.size(); ++m)
    for (int d = 0; d < mappings[m].array_aval.shape.rank(); ++d)
      if (mappings[m].array_aval.shape[d].same(extent))
        return NestEnd{dimension, static_cast<int>(m), d};
  return {};
}

namespace {

// A scalar as an expression of extents.
std::optional<Dim> dim_of(const graph::Graph& g, ValueId v, int depth = 0) {
  constexpr int deepest = 8;
  const Inst& i = g[v];
  if (depth > deepest || i.type.dtype != i32) return {};
  if (i.op == Op::Broadcast || i.op == Op::Reshape) return dim_of(g, i.args[0], depth + 1);
  if (!i.type.is_scalar()) return {};
  if (i.op == Op::DimValue) return dim_symbol(graph::symbol_of(i));
  if (i.op == Op::Constant) return Dim(graph::to_int(i32, i.attr.bits));
  if (i.args.size() != 2) return {};
  const auto a = dim_of(g, i.args[0], depth + 1), b = dim_of(g, i.args[1], depth + 1);
  if (!a || !b || (a->is_static() && b->is_static())) return {};
  switch (i.op) {
  case Op::Add: return *a + *b;
  case Op::Sub: return *a - *b;
  case Op::Mul: return *a * *b;
  case Op::Div: return b->is_static() && b->value() > 0 ? std::optional(*a / *b) : std::nullopt;
  default: return {};
  }
}

}  // namespace

std::optional<BeforeEnd> before_end(const graph::Graph& g, ValueId comparison) {
  const Inst& i = g[comparison];
  if (i.op == Op::Broadcast && g[i.args[0]].type.shape == i.type.shape)
    return before_end(g, i.args[0]);
  if (i.op != Op::Lt && i.op != Op::Gt) return {};
  const std::size_t number = i.op == Op::Lt ? 0 : 1;
  const auto extent = dim_of(g, i.args[1 - number]);
  if (!extent || extent->is_static()) return {};
  return BeforeEnd{i.args[number], *extent};
}

namespace {

// Texts of a kernel, and operations that stand in all of them when compilers have unrolled them.
constexpr std::int64_t most_cases = 8, most_in_text = 3584;

// As many as a quotient or an elementary function takes, about.
std::int64_t operations_of(const Inst& i) {
  if (!graph::is_elementwise(i.op)) return i.op == Op::Load ? 1 : 0;
  const bool is_long = i.type.dtype.is_float() && (graph::info(i.op).ulp > 0 || i.op == Op::Div);
  return is_long ? 8 : 1;
}

// Of each element of a nest, with what becomes of it.
std::int64_t operations_of(const Program& l, const LoopNest& p) {
  std::int64_t operations = 1;
  std::vector<ValueId> stack;
  if (p.value != graph::no_value) stack.push_back(p.value);
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    const Inst& i = l.graph[v];
    if ((v != p.value && l.storage_of[v]) || !seen.insert(v).second) continue;
    operations += operations_of(i);
    for (const ValueId a : i.args)
      if (l.graph[a].type.is_value()) stack.push_back(a);
  }
  return operations;
}

bool is_simple(const Statement& s) {
  return std::holds_alternative<LoopNest>(s.what) || std::holds_alternative<Scalar>(s.what) ||
         std::holds_alternative<EnterWindow>(s.what) || std::holds_alternative<Sync>(s.what) ||
         std::holds_alternative<CopyStorage>(s.what);
}

// That ends once, and along the longest of dimensions.
LengthCases cases_of(const LoopNest& p) {
  if (p.ends.size() != 1) return {};
  const NestEnd& end = p.ends[0];
  return {end.mapping, end.along, p.layout.tile(end.dimension),
          p.layout.repetitions(end.dimension)};
}

LengthCases find_cases(const Program& l) {
  if (l.bodies.size() != 1 || l.bodies[0].agents.size() != 1) return {};
  const Statements& all = l.bodies[0].agents[0].statements;
  const auto nest = [](const Statement& s) { return std::get_if<LoopNest>(&s.what); };
  const auto first = std::ranges::find_if(
      all, [&](const Statement& s) { return nest(s) != nullptr && !nest(s)->ends.empty(); });
  if (first == all.end() || !std::all_of(first, all.end(), is_simple)) return {};
  LengthCases cases = cases_of(*nest(*first));
  if (cases.tiles < 2) return {};
  std::int64_t operations = 0;
  int nests = 0;
  for (auto s = first; s != all.end(); ++s)
    if (const LoopNest* const p = nest(*s)) {
      if (std::ranges::any_of(p->rolled, [](int n) { return n > 0; })) return {};
      operations += elements_in_text(*p) * operations_of(l, *p);
      const LengthCases own = cases_of(*p);
      nests += own.tile == cases.tile && own.tiles == cases.tiles &&
               extent_of(l.graph, p->ends[0]).same(extent_of(l.graph, nest(*first)->ends[0]));
    }
  // A nest alone asks as often as it would be chosen from.
  if (nests < 2) return {};
  // Of several tiles together the last few steps ask.
  const auto in_text = [&] { return operations * (cases.tiles + 1) / 2; };
  for (; cases.tiles > most_cases || (cases.tiles > 1 && in_text() > most_in_text);
       cases.tiles = cdiv(cases.tiles, 2))
    cases.tile *= 2;
  return cases.tiles > 1 ? cases : LengthCases{};
}

}  // namespace

void end_nests(Program& l) {
  if (l.graph.num_symbols == 0) return;
  Ending(l).run();
  l.length_cases = find_cases(l);
}

}  // namespace palladium::passes
