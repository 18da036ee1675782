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
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "codegen/base/format.hpp"
#include "codegen/base/overloaded.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/layout/assign.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/layout/transfer.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/access_model.hpp"
#include "codegen/passes/layouts.hpp"
#include "codegen/passes/nest_model.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/passes/register_slices.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;
using layout::Layout;

constexpr std::int64_t max_unrolled_registers = 64;  // longer nests become run-time loops
constexpr std::int64_t max_unrolled_operations = 1024;
constexpr std::int64_t most_together = 8;          // iterations of one, in its text
constexpr std::int64_t max_unrolled_reads = 4096;  // operations of nests that read registers
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
  explicit Assignment(Program& l)
      : l_(l), g_(l.graph), model_(l), nests_(l), halved_(graph::halved_bytes(l.graph)) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { collect(list, 0); });
    make_islands();
    make_candidates();
    choose();
    for (Use& u : uses_) decide_loops(*u.nest);
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
      note(model_.widest(ref) * t.bytes(), t);
    };
    const auto note_block = [&](WindowId window) {
      const DType t = g_[l_.windows[window].root].type.dtype;
      note(model_.widest_of_block(window) * t.bytes(), t);
    };
    for (const Effect& e : elements) {
      v.turned = v.turned || reads_columns(e);
      if (e.window) note_view(g_[e.leaf].args[0]);
      if (e.storage && reads_staged(l_, e.leaf)) note_share(p, g_[e.leaf].type.dtype, note);
    }
    if (const Stage* to = std::get_if<Stage>(&p.sink)) note(16, l_.storages[to->storage].dtype);
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
          unary[c] += weight(u.depth) * nest_cost(u, variables_[root].candidates[c]);
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
        problem.unary[number[a]][c] += w * move_cost(s, cb[c], ca[c], r, options);
      return;
    }
    layout::AssignmentProblem::Edge e{number[a], number[b], {}};
    for (const Layout& x : ca)
      for (const Layout& y : cb) e.cost.push_back(w * move_cost(s, y, x, r, options));
    problem.edges.push_back(std::move(e));
  }

  double move_cost(const Storage& s, const Layout& source, const Layout& nest, const Read& r,
                   const layout::PlanOptions& options) const {
    const double through_memory = 60 + 8.0 * issued(nest);
    if (is_padded(*r.nest, r.map)) return through_memory;
    const Layout have = s.dropped.empty() ? source : layout::drop(source, s.dropped);
    if (const auto part = layout_of_slice(have, r.map, nest.domain);
        part && *part == project(nest, lowered::without_slices(r.map)) &&
        takes_slices_of_registers(l_, *r.nest, nest))
      return 0;
    if (is_opaque(r.map)) return through_memory;
    const Layout need = project(nest, r.map);
    if (need == have) return 0;
    if (have.registers() > max_whole_registers || need.registers() > max_whole_registers)
      return through_memory;
    return 1 + layout::relayout_cost(have, need, s.dtype.bytes(), options);
  }

  double nest_cost(const Use& u, const Layout& l) const {
    const LoopNest& p = *u.nest;
    const double registers = issued(l);
    double cost = registers;
    const DimMap all = identity_map(l.rank());
    model_.enter(p, l);
    const auto memory = [&](ValueId ref, const DimMap& map, bool load) {
      const auto known = is_opaque(map) ? std::nullopt : model_.cost(ref, map, project(l, map));
      if (!known) return 32 * registers;
      return load ? known->load : known->store;
    };
    for (const ValueId v : evaluated(p)) cost += registers * operations(v, 32);
    const std::map<ValueId, int> mixed = widths_of_mixed(u, l);
    for (const Effect& e : u.elements) {
      if (e.window && halved_.contains(e.leaf) && is_opaque(e.map))
        cost += halves_cost(p, l, e.leaf).value_or(32 * registers);
      else if (e.window && mixed.contains(e.leaf))
        cost += 32 * registers / mixed.at(e.leaf);
      else if (e.window)
        cost += memory(g_[e.leaf].args[0], e.map, true);
      else if (reads_staged(l_, e.leaf))
        cost += 4 * registers * conflicts(e.leaf, e.map) / staged_width(e.leaf, e.map);
      else if (l_.storages[e.storage].in_shared())
        cost += 4 * registers * shared_reads(e, l);
    }
    return cost +
           std::visit(
               Overloaded{
                   [&](const Assign& to) { return assign_cost(to, l); },
                   [&](const Stage& to) { return stage_cost(to.storage, l) + copy_cost(p, l); },
                   [&](const Store& to) {
                     const ValueId ref = g_[to.inst].args[0];
                     const Window& w = l_.windows[l_.window_of[g_.base(ref)]];
                     return w.is_direct() ? memory(ref, all, false) : 4 * registers;
                   },
                   [&](const Update&) { return 16 * registers; },
                   [&](const Print&) { return 16 * registers; },
                   [&](const Fill& to) { return memory(l_.windows[to.window].root, all, true); },
                   [&](const Flush& to) { return memory(l_.windows[to.window].root, all, false); },
                   [&](const Spill& to) { return stage_cost(to.storage, l); },
                   [&](const Clear& to) { return stage_cost(to.storage, l); },
                   [&](const auto& fold) { return fold.cost(l_, l); }},
               p.sink);
  }

  // Of what is read in another order than it stands in, how many elements at a time, where that
  // does not depend on layouts of others.
  std::map<ValueId, int> widths_of_mixed(const Use& u, const Layout& l) const {
    std::map<ValueId, int> widths;
    const auto is_mixed = [&](const Effect& e) { return e.window && is_opaque(e.map); };
    if (!u.reads.empty() || !std::holds_alternative<Store>(u.nest->sink) ||
        std::ranges::none_of(u.elements, is_mixed))
      return widths;
    LoopNest nest = *u.nest;
    nest.layout = l;
    nest.rolled.assign(static_cast<std::size_t>(l.rank()), 0);
    const std::map<ValueId, int> all = nests_.look(nest).widths;
    for (const Effect& e : u.elements)
      if (const auto known = all.find(e.leaf); is_mixed(e) && known != all.end())
        widths.insert(*known);
    return widths;
  }

  // Of bytes, both halves of which the nest has: what reading them costs the threads that have
  // these; nothing where others have one of them.
  std::optional<double> halves_cost(const LoopNest& p, const Layout& l, ValueId bytes) const {
    const Extents& shape = g_[bytes].type.shape;
    const int last = l.rank() - 1;
    if (last < 0 || l.reg.empty() || l.reg[0] != 1 || l.domain[last] % 2 != 0) return {};
    const auto halves = layout::split_dim(l, last, 2);
    if (!halves || !layout::separable(*halves, last + 1)) return {};
    const Layout whole = layout::drop(*halves, last + 1);
    if (whole.domain != shape) return {};
    const LoopNest read{.value = bytes, .domain = shape, .valid = shape, .layout = whole};
    model_.enter(read, whole);
    const auto cost = model_.cost(g_[bytes].args[0], identity_map(l.rank()), whole);
    model_.enter(p, l);
    return cost ? std::optional(cost->load) : std::nullopt;
  }

  // What is evaluated for an element: beside the value a mask, what is compared, index arrays.
  std::vector<ValueId> evaluated(const LoopNest& p) const {
    if (p.value == graph::no_value) return {};
    std::vector<ValueId> all{p.value};
    if (const ValueId access = accessed_by(p.sink); access != graph::no_value) {
      const graph::MemoryView m = graph::MemoryView::of(g_[access]);
      for (const ValueId v : {m.mask, m.other})
        if (v != graph::no_value) all.push_back(v);
      if (g_.chooses(m.ref)) all.push_back(m.ref);
    }
    return all;
  }

  // Accesses of an element: of rows what a vector has of one, of columns what a bank waits for.
  double shared_reads(const Effect& e, const Layout& l) const {
    if (reads_columns(e)) return model_.wavefronts(e.storage, e.map);
    const bool in_rows = is_opaque(e.map) || (!e.map.empty() && e.map.back() == l.rank() - 1);
    return in_rows ? 1 / shared_vector(e.storage, l) : 1;
  }

  // Of what lies in rows in shared memory, and is no window.
  bool reads_columns(const Effect& e) const {
    return !e.window && !reads_staged(l_, e.leaf) && e.storage &&
           l_.storages[e.storage].in_shared() && e.map == DimMap{1, 0};
  }

  // Of a staged window, how often a bank gives a word for one access.
  double conflicts(ValueId load, const DimMap& map) const {
    return is_opaque(map) ? 1 : model_.wavefronts(g_[load].args[0], map);
  }

  int staged_width(ValueId load, const DimMap& map) const {
    return is_opaque(map) ? 1 : model_.staged_width(g_[load].args[0], map);
  }

  double assign_cost(const Assign& to, const Layout& l) const {
    return l.registers() * words(l_.storages[to.storage].dtype) > max_whole_registers ? 1e9 : 0;
  }

  // What is copied as it is threads ask for by pieces that they do not wait for, of 4 bytes or
  // more, few of them rather than many.
  double copy_cost(const LoopNest& p, const Layout& l) const {
    constexpr int least = 4, most = 16;
    constexpr double awaited = 400;
    if (!l_.machine.has_async_copies() || p.value == graph::no_value ||
        g_[p.value].op != Op::Load || !l_.window_loaded(p.value).is_direct())
      return 0;
    const ValueId ref = g_[p.value].args[0];
    const int size = g_[ref].type.dtype.bytes();
    const int bytes = size * model_.whole_width(ref, identity_map(l.rank()));
    if (bytes >= std::min(most, size * model_.widest(ref))) return 0;
    return most / bytes + (bytes < least ? awaited : 0);
  }

  double stage_cost(StorageId storage, const Layout& l) const {
    const double vector = shared_vector(storage, l);
    const double waits =
        model_.wavefronts(storage, identity_map(l.rank()), static_cast<std::int64_t>(vector));
    return 4 * static_cast<double>(l.registers()) / vector * waits;
  }

  double shared_vector(StorageId storage, const Layout& l) const {
    int v = 1;
    for (std::size_t b = 0; b < l.reg.size() && l.reg[b] == (1u << b) &&
                            (2 << b) * l_.storages[storage].dtype.bytes() <= 16;
         ++b)
      v = 2 << b;
    return v;
  }

  int operations(ValueId v, int limit) const {
    std::vector<ValueId> stack{v};
    int n = 0, seen = 0;
    // What costs nothing may be shared so often that it cannot all be looked at.
    for (; !stack.empty() && n < limit && seen < 64 * limit; ++seen) {
      const Inst& i = g_[stack.back()];
      stack.pop_back();
      n += graph::is_elementwise(i.op) ? 1 + 2 * graph::info(i.op).ulp : 0;
      for (ValueId a : i.args)
        if (g_[a].type.is_value() && !l_.storage_of[a]) stack.push_back(a);
    }
    return std::min(n, limit);
  }

  // ---- loops

  // Rolls the loops over repetitions, reduced dimensions first, until the nest is short enough.
  void decide_loops(LoopNest& p) {
    const Layout& l = p.layout;
    p.rolled.assign(static_cast<std::size_t>(l.rank()), 0);
    std::int64_t size = l.registers() * widest(p);
    const bool brief = size * operations(p) <= max_unrolled_operations;
    if (fills_registers(p.sink) || (size <= max_unrolled_registers && brief)) return;
    roll_dimensions(p, size);
    stand_together(p, size);
  }

  // Leaves `size` elements in the text.
  void roll_dimensions(LoopNest& p, std::int64_t& size) {
    const Layout& l = p.layout;
    const std::vector<bool> held = held_dimensions(p);
    const auto is_held = [&](int d) { return held[static_cast<std::size_t>(d)]; };
    const auto roll = [&](int d) {
      if (l.repetitions(d) == 1 || is_held(d)) return;
      p.rolled[d] = 1;
      size /= l.repetitions(d);
    };
    if (const Reduce* fold = std::get_if<Reduce>(&p.sink)) {
      for (const int d : fold->reduced) roll(d);
      const Layout result = layout::drop(l, fold->reduced);
      const bool few = result.registers() <= Reduce::most_registers;
      // Where registers are read along what is folded, no loop is shorter.
      const bool reads_registers = std::ranges::any_of(fold->reduced, is_held);
      if (few && size <= (reads_registers ? 8 : 2) * max_unrolled_registers) return;
      if (!few) share_result(*fold);
    }
    for (int d = 0; d < l.rank(); ++d)
      if (p.rolled[d] == 0) roll(d);
  }

  // Of the innermost run-time loop a few iterations stand in its text together, so that their loads
  // are under way together.
  void stand_together(LoopNest& p, std::int64_t size) const {
    if (std::holds_alternative<Scan>(p.sink)) return;
    int innermost = -1;
    for (int d = 0; d < p.layout.rank(); ++d)
      if (p.rolled[d] > 0 && (innermost < 0 || is_folded(p, d) || !is_folded(p, innermost)))
        innermost = d;
    if (innermost < 0) return;
    const std::int64_t repetitions = p.layout.repetitions(innermost);
    const std::int64_t most = std::max<std::int64_t>(
        1, std::min({most_together, repetitions, max_unrolled_registers / size,
                     max_unrolled_operations / (size * operations(p))}));
    std::int64_t together = most;
    while (repetitions % together != 0) --together;
    if (2 * together <= most) together = most;  // those left over stand alone
    p.rolled[innermost] = static_cast<int>(together);
  }

  static bool is_folded(const LoopNest& p, int d) {
    const Reduce* const fold = std::get_if<Reduce>(&p.sink);
    return fold != nullptr && std::ranges::find(fold->reduced, d) != fold->reduced.end();
  }

  // Dimensions along which the nest reads registers, which no run-time loop can index. None where
  // the text would be too long: then what is read goes through shared memory.
  std::vector<bool> held_dimensions(const LoopNest& p) const {
    std::vector<bool> held(p.domain.size());
    for (const Read& r : register_reads(l_, p))
      for (const int d : r.map)
        if (d >= 0) held[static_cast<std::size_t>(d)] = true;
    std::int64_t size = (std::int64_t{1} << p.layout.reg.size()) * widest(p) * operations(p);
    for (int d = 0; d < p.layout.rank(); ++d)
      if (held[static_cast<std::size_t>(d)]) size *= p.layout.repetitions(d);
    if (size > max_unrolled_reads) held.assign(held.size(), false);
    return held;
  }

  // Whether what the nest makes is a whole value in registers, which no run-time loop can index.
  bool fills_registers(const Sink& sink) const {
    const StorageId filled = storage_filled(sink);
    return filled && !std::holds_alternative<Reduce>(sink) && !l_.storages[filled].in_shared();
  }

  // Operations per element that the nest inlines.
  std::int64_t operations(const LoopNest& p) const {
    constexpr int limit = 1024;
    return p.value == graph::no_value ? 1 : std::max(1, operations(p.value, limit));
  }

  std::int64_t widest(const LoopNest& p) const {
    return p.value == graph::no_value ? 1 : words(g_[p.value].type.dtype);
  }

  // The result has too many registers for a run-time loop: each iteration leaves its part in
  // shared memory.
  void share_result(const Reduce& fold) {
    Storage& s = l_.storages[fold.storage];
    if (!s.in_registers()) return;
    s.in = Shared{.row_stride = s.shape.empty() ? 1 : s.shape.back()};
  }

  Program& l_;
  const Graph& g_;
  mutable AccessModel model_;       // remembers what it was asked
  mutable NestModel nests_;         // likewise
  const std::set<ValueId> halved_;  // bytes of which elements of 4 bits are made
  std::vector<Use> uses_;
  bool has_room_ = false;  // behind copies, for relayouts
  Table<LayoutVariableId, LayoutVariableId> island_;
  Table<LayoutVariableId, Variable> variables_;
};

}  // namespace

void assign_layouts(Program& l) { Assignment(l).run(); }

}  // namespace palladium::passes
