// Assigns a register layout to every loop nest, by least modelled cost, and inserts the relayouts
// between those that differ.
//
// Precondition: build_statements. Variables that read each other element by element in one region
// form an island and share a layout (reference: exact elimination over islands finds the optimum
// of the whole graph). Then loops over repetitions are rolled where a nest would be too long, and
// values wanted at coordinates that no register number gives are copied to shared memory.
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "codegen/layout/assign.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/layout/transfer.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/layout_costs.hpp"
#include "codegen/passes/layouts.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/register_slices.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;
using layout::Layout;

constexpr std::int64_t most_folded = 64;  // elements, by a thread alone, of which its text has each
constexpr std::size_t max_candidates = 10, max_offered = 14;  // of a variable, of those around it
constexpr double loop_weight = 8;                             // assumed trips of a loop

// The layout of a nest over `domain` whose leaf at `map` has layout `leaf`; empty if the leaf does
// not have every dimension of the nest.
Layout lift(const Layout& leaf, const DimMap& map, const Extents& domain) {
  Layout out = leaf;
  std::vector<int> dims(map.begin(), map.end());
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    if (dims[d] >= 0) continue;
    if (out.domain[d] != 1 || out.tile_bits[d] != 0) return {};
    out = layout::remove_unit_dim(out, d);
    dims.erase(dims.begin() + d);
  }
  std::vector<int> permutation;
  std::vector<int> missing;
  for (int d = 0; d < static_cast<int>(domain.size()); ++d) {
    const auto it = std::find(dims.begin(), dims.end(), d);
    if (it != dims.end())
      permutation.push_back(static_cast<int>(it - dims.begin()));
    else if (domain[d] == 1)
      missing.push_back(d);
    else
      return {};
  }
  if (!std::is_sorted(permutation.begin(), permutation.end()))
    out = layout::transpose(out, permutation);
  for (int d : missing) out = layout::insert_unit_dim(out, d);
  return out.domain == domain ? out : Layout{};
}

class Assignment {
 public:
  explicit Assignment(Program& l) : l_(l), g_(l.graph), costs_(l) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { collect(list, 0); });
    make_islands();
    make_candidates();
    choose();
    for (Use& u : uses_) roll_loops(l_, *u.nest);
    insert_relayouts(l_);
    spread_loads(l_);  // of nests whose other operands are as they want them
    insert_relayouts(l_);
    hoist_relayouts(l_);
  }

 private:
  struct Use {
    LoopNest* nest;
    int depth;                     // loops around it
    bool behind_copies;            // in none, that leave relayouts room
    std::vector<Read> reads;       // of registers
    std::vector<Effect> elements;  // all that it reads of them
  };
  struct Variable {
    Extents domain = {};
    Layout pin = {};
    std::vector<int> vectors = {};  // elements per 16 bytes of the memory it meets
    bool turned = false;            // columns of shared memory are read along its rows
    std::vector<Layout> candidates = {};
    int depth = 0;
    int chosen = 0;
  };

  void collect(Statements& list, int depth) {
    for (Statement& s : list) {
      if (LoopNest* nest = std::get_if<LoopNest>(&s.what))
        uses_.push_back({nest, depth, depth == 0 && has_room_, register_reads(l_, *nest),
                         element_reads(l_, *nest)});
      for_each_body(s, [&](Statements& body) { collect(body, depth + (repeats(s) ? 1 : 0)); });
      has_room_ = has_room_ || leaves_room(l_, s);
    }
  }

  // ---- islands

  LayoutVariableId find(LayoutVariableId v) const {
    while (island_[v] != v) v = island_[v];
    return v;
  }

  void make_islands() {
    const std::vector<LayoutVariableId> all = l_.pinned.ids();
    for (const LayoutVariableId v : all) {
      island_.push_back(v);
      variables_.push_back({.pin = l_.pinned[v]});
    }
    for (const Use& u : uses_) {
      Variable& v = variables_[u.nest->variable];
      v.domain = u.nest->domain;
      v.depth = u.depth;
    }
    for (const Storage& s : l_.storages)
      if (s.variable && s.dropped.empty()) variables_[s.variable].domain = s.shape;
    for (const Use& u : uses_)
      for (const Read& r : u.reads) {
        const Storage& s = l_.storages[r.storage];
        const LayoutVariableId a = find(r.nest->variable), b = find(s.variable);
        const bool same =
            s.dropped.empty() && r.map == identity_map(static_cast<int>(r.map.size()));
        const bool free = variables_[a].pin.domain.empty() && variables_[b].pin.domain.empty();
        if (a != b && same && free && variables_[a].domain == variables_[b].domain &&
            variables_[a].depth == variables_[b].depth)
          island_[std::max(a, b)] = std::min(a, b);
      }
  }

  // ---- candidates

  void add_candidate(Variable& v, Layout l, std::size_t most = max_candidates) {
    if (l.domain != v.domain || v.candidates.size() >= most) return;
    if (std::find(v.candidates.begin(), v.candidates.end(), l) == v.candidates.end())
      v.candidates.push_back(std::move(l));
  }

  void make_candidates() {
    for (const Use& u : uses_) note_vectors(*u.nest, u.elements);
    for (const LayoutVariableId i : l_.pinned.ids())
      if (!variables_[i].pin.domain.empty()) variables_[i].candidates = {variables_[i].pin};
    for (int round = 0; round < 3; ++round)
      for (const Use& u : uses_)
        for (const Read& r : u.reads) exchange(r, max_candidates);
    for (const LayoutVariableId i : l_.pinned.ids())
      if (find(i) == i && variables_[i].pin.domain.empty()) add_strided(variables_[i]);
    for (const Use& u : uses_) add_beside(u);
    for (const Use& u : uses_)
      for (const Read& r : u.reads) exchange(r, max_offered);
    for (const Use& u : uses_) add_consecutive(*u.nest);
    bool added = false;
    for (const Use& u : uses_) added |= add_folded_alone(u);
    if (!added) return;
    for (const Use& u : uses_)
      for (const Read& r : u.reads) exchange(r, max_offered);
  }

  void note_vectors(const LoopNest& p, const std::vector<Effect>& elements) {
    Variable& v = variables_[find(p.variable)];
    const auto note = [&](int bytes, DType t) {
      const int n = std::max(1, bytes / t.bytes());
      if (std::find(v.vectors.begin(), v.vectors.end(), n) == v.vectors.end())
        v.vectors.push_back(n);
    };
    const auto note_view = [&](ValueId ref) {
      const DType t = g_[ref].type.dtype;
      note(costs_.accesses().widest(ref) * t.bytes(), t);
    };
    const auto note_block = [&](WindowId window) {
      const DType t = g_[l_.windows[window].root].type.dtype;
      note(costs_.accesses().widest_of_block(window) * t.bytes(), t);
    };
    for (const Effect& e : elements) {
      v.turned = v.turned || costs_.reads_columns(e);
      if (e.window) note_view(g_[e.leaf].args[0]);
      if (e.storage && reads_staged(l_, e.leaf)) note_share(p, g_[e.leaf].type.dtype, note);
    }
    if (const Stage* to = std::get_if<Stage>(&p.sink)) {
      note(16, l_.storages[to->storage].dtype);
      for (const Effect& e : elements)  // of what is narrowed on its way
        if (e.storage && l_.storages[e.storage].in_shared() && !reads_staged(l_, e.leaf) &&
            l_.storages[e.storage].dtype.bytes() > l_.storages[to->storage].dtype.bytes())
          note(16, l_.storages[e.storage].dtype);
    }
    if (const Clear* to = std::get_if<Clear>(&p.sink)) note(16, l_.storages[to->storage].dtype);
    if (const Store* to = std::get_if<Store>(&p.sink)) note_view(g_[to->inst].args[0]);
    if (const Update* to = std::get_if<Update>(&p.sink)) note_view(g_[to->inst].args[0]);
    const WindowId moved = window_moved(p.sink);
    if (moved && l_.windows[moved].is_staged())
      note(static_cast<int>(l_.windows[moved].staged().vector) *
               l_.storages[l_.windows[moved].storage()].dtype.bytes(),
           l_.storages[l_.windows[moved].storage()].dtype);
    else if (moved && l_.windows[moved].residency() == Residency::registers)
      note_block(moved);
    else if (moved)
      note_view(l_.windows[moved].root);
  }

  // What a thread has of the elements, if they are shared evenly: of neighbours, what is read of
  // staged memory overlaps most.
  template <class Note>
  void note_share(const LoopNest& p, DType t, const Note& note) const {
    const auto share = static_cast<std::uint64_t>(graph::element_count(p.domain) / l_.threads());
    const std::uint64_t most = std::uint64_t{16} / static_cast<std::uint64_t>(t.bytes());
    if (share > 1) note(static_cast<int>(std::min(most, std::bit_floor(share))) * t.bytes(), t);
  }

  // Offers either side of a read the layouts of the other.
  void exchange(const Read& r, std::size_t most) {
    const Storage& s = l_.storages[r.storage];
    Variable& nest = variables_[find(r.nest->variable)];
    Variable& source = variables_[find(s.variable)];
    if (nest.pin.domain.empty() && lowered::is_of_slices(r.map))
      for (const Layout& c : std::vector<Layout>(source.candidates)) {
        const Layout have = s.dropped.empty() ? c : layout::drop(c, s.dropped);
        if (const auto part = layout_of_slice(have, r.map, nest.domain))
          add_candidate(nest, lift(*part, lowered::without_slices(r.map), nest.domain), most);
      }
    if (is_opaque(r.map)) return;
    if (nest.pin.domain.empty())
      for (const Layout& c : std::vector<Layout>(source.candidates)) {
        const Layout have = s.dropped.empty() ? c : layout::drop(c, s.dropped);
        add_candidate(nest, lift(have, r.map, nest.domain), most);
      }
    if (source.pin.domain.empty() && s.dropped.empty())
      for (const Layout& c : std::vector<Layout>(nest.candidates))
        add_candidate(source, project(c, r.map), most);
  }

  void add_strided(Variable& v) {
    if (v.vectors.empty()) v.vectors = {4};
    std::sort(v.vectors.rbegin(), v.vectors.rend());
    v.vectors.push_back(1);
    for (int vec : v.vectors) {
      for (const std::int64_t width :
           {layout::full_width, std::int64_t{32} * vec, std::int64_t{8} * vec})
        add_candidate(v, layout::strided(v.domain, vec, width, l_.num_warps));
      add_whole_vectors(v, vec);
      if (!v.turned) continue;
      const auto side_by_side = static_cast<std::uint64_t>(cdiv(l_.threads(), v.domain[0]));
      const auto width = static_cast<std::int64_t>(std::bit_ceil(side_by_side)) * vec;
      add_candidate(v, layout::strided(v.domain, vec, width, l_.num_warps));
    }
  }

  // Rows that are a few vectors, no power of two of them, by as many threads as leave none of them
  // idle.
  void add_whole_vectors(Variable& v, int vec) {
    constexpr std::int64_t enough = 8;  // that others are offered
    const std::int64_t row = v.domain.empty() ? 0 : v.domain.back(), vectors = row / vec;
    const std::int64_t threads = vectors & -vectors;
    if (vec > 1 && row % vec == 0 && threads < std::min(enough, vectors))
      add_candidate(v, layout::strided(v.domain, vec, threads * vec, l_.num_warps));
  }

  // What is alike along a dimension a thread has for several elements, if these follow one another
  // along that, and its warp for others.
  void add_beside(const Use& u) {
    Variable& v = variables_[find(u.nest->variable)];
    if (!v.pin.domain.empty() || v.vectors.empty() || v.domain.size() < 3) return;
    for (const Effect& e : u.elements) {
      if (is_opaque(e.map)) continue;
      std::vector<bool> alike(v.domain.size());
      for (std::size_t d = 0; d < alike.size(); ++d)
        alike[d] =
            v.domain[d] > 1 && std::count(e.map.begin(), e.map.end(), static_cast<int>(d)) == 0;
      if (std::ranges::count(alike, true) > 0 && !alike.back())
        add_candidate(v, layout::strided_beside(v.domain, v.vectors[0], alike, l_.num_warps),
                      max_offered);
    }
  }

  // A thread that scans elements which follow one another asks the others once.
  void add_consecutive(const LoopNest& p) {
    const Scan* scan = std::get_if<Scan>(&p.sink);
    Variable& v = variables_[find(p.variable)];
    if (scan == nullptr || !v.pin.domain.empty()) return;
    for (const Layout& c : std::vector<Layout>(v.candidates))
      if (Layout l = layout::consecutive(c, scan->dimension); l.registers() <= max_whole_registers)
        add_candidate(v, std::move(l), 2 * max_candidates);
  }

  // A thread may fold alone what gives an element, if there are enough of these: of shared memory,
  // or of neighbours in rows, which it has as vectors. Whether such layouts are new.
  bool add_folded_alone(const Use& u) {
    const Reduce* const fold = std::get_if<Reduce>(&u.nest->sink);
    Variable& v = variables_[find(u.nest->variable)];
    if (fold == nullptr || fold->reduced.size() != 1 || !v.pin.domain.empty()) return false;
    const bool in_shared = std::ranges::all_of(u.elements, [&](const Effect& e) {
      return !e.window && e.storage && l_.storages[e.storage].in_shared();
    });
    const auto d = static_cast<std::size_t>(fold->reduced[0]);
    Extents kept = v.domain;
    const std::int64_t folded = std::exchange(kept[d], 1);
    const bool is_last = d + 1 == kept.size();
    const std::int64_t results = graph::element_count(kept);
    if ((!in_shared && is_last) || folded > most_folded || results < l_.threads()) return false;
    const std::size_t before = v.candidates.size();
    for (const int vec : is_last ? std::vector{1} : v.vectors) {
      if (!in_shared && results < l_.threads() * vec) continue;
      Layout alone = layout::strided(kept, vec, layout::full_width, l_.num_warps);
      alone.domain[d] = folded;
      if (is_last) alone = layout::consecutive(std::move(alone), fold->reduced[0]);
      add_candidate(v, std::move(alone), 2 * max_candidates);
    }
    return v.candidates.size() > before;
  }

  // ---- costs

  void choose() {
    layout::AssignmentProblem problem;
    Table<LayoutVariableId, int> number(l_.pinned.size(), -1);
    std::vector<LayoutVariableId> roots;
    for (const LayoutVariableId i : l_.pinned.ids()) {
      if (find(i) != i || variables_[i].candidates.empty()) continue;
      number[i] = static_cast<int>(roots.size());
      roots.push_back(i);
      problem.unary.emplace_back(variables_[i].candidates.size(), 0.0);
    }
    for (const Use& u : uses_) {
      const LayoutVariableId root = find(u.nest->variable);
      auto& unary = problem.unary[number[root]];
      if (unary.size() > 1)
        for (std::size_t c = 0; c < unary.size(); ++c)
          unary[c] +=
              weight(u.depth) * costs_.of_nest(*u.nest, u.elements, variables_[root].candidates[c]);
      for (const Read& r : u.reads) add_edge(problem, number, r, u);
    }
    const std::vector<int> chosen = layout::solve(problem);
    for (std::size_t i = 0; i < roots.size(); ++i) variables_[roots[i]].chosen = chosen[i];
    for (Use& u : uses_) u.nest->layout = layout_of(u.nest->variable);
    for (Storage& s : l_.storages)
      if (s.in_registers())
        s.registers().layout = s.dropped.empty() ? layout_of(s.variable)
                                                 : layout::drop(layout_of(s.variable), s.dropped);
  }

  const Layout& layout_of(LayoutVariableId variable) const {
    const Variable& v = variables_[find(variable)];
    return v.candidates[v.chosen];
  }

  static double weight(int depth) { return std::pow(loop_weight, depth); }

  void add_edge(layout::AssignmentProblem& problem, const Table<LayoutVariableId, int>& number,
                const Read& r, const Use& u) const {
    const double w = weight(u.depth);
    const layout::PlanOptions options = plan_options(l_, u.behind_copies);
    const Storage& s = l_.storages[r.storage];
    const LayoutVariableId a = find(r.nest->variable), b = find(s.variable);
    const auto& ca = variables_[a].candidates;
    const auto& cb = variables_[b].candidates;
    if (ca.size() * cb.size() <= 1) return;
    if (a == b) {
      for (std::size_t c = 0; c < ca.size(); ++c)
        problem.unary[number[a]][c] += w * costs_.of_move(s, cb[c], ca[c], r, options);
      return;
    }
    layout::AssignmentProblem::Edge e{number[a], number[b], {}};
    for (const Layout& x : ca)
      for (const Layout& y : cb) e.cost.push_back(w * costs_.of_move(s, y, x, r, options));
    problem.edges.push_back(std::move(e));
  }

  Program& l_;
  const Graph& g_;
  const LayoutCosts costs_;
  std::vector<Use> uses_;
  bool has_room_ = false;  // behind copies, for relayouts
  Table<LayoutVariableId, LayoutVariableId> island_;
  Table<LayoutVariableId, Variable> variables_;
};

}  // namespace

void assign_layouts(Program& l) { Assignment(l).run(); }

}  // namespace palladium::passes
