// Decides how the elements of loop nests are accessed: in one way or two, by rows that several
// reads share, beyond the ends of rows.
//
// Blocks that are wholly inside of their arrays, as most are, take a way without tests: one branch,
// the same for all threads of a program.
//
// Precondition: what is staged lies as it will (rows, rings), and rows are divided.
#include <algorithm>
#include <set>

#include "codegen/layout/constructors.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/nest_model.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::Op;

// What a nest may hold that is written twice: elements of a thread, reads of memory, conditions.
constexpr std::int64_t most_elements = 64;
constexpr std::size_t most_windows = 5, most_conditions = 4;

// Whether the nest moves elements from memory to memory: any thread may take any of them.
bool streams(const Program& l, const LoopNest& p) {
  const auto* store = std::get_if<Store>(&p.sink);
  if (store == nullptr || !p.redirects.empty()) return false;
  bool all = l.windows[l.window_of[l.graph.base(l.graph[store->inst].args[0])]].is_direct();
  for (const Effect& e : element_reads(l, p))
    all &= e.window || l.storages[e.storage].is_scalar() || reads_staged(l, e.leaf);
  return all;
}

// The nest in little text: element by element, neighbours in a warp being neighbours in memory.
LoopNest by_elements(LoopNest p) {
  p.layout = layout::strided(p.domain, 1, p.layout.threads(), p.layout.warps());
  p.rolled.assign(p.domain.size(), 1);
  p.divided.clear();  // no rows in a thread
  p.loops.clear();
  p.row_loops = 0;
  return p;
}

class Accesses {
 public:
  explicit Accesses(Program& l) : l_(l), g_(l.graph), model_(l), repeating_(l.storages.size()) {}

  void run() {
    find_changing();
    for_each_list(l_, [&](Statements& list) { visit(list); });
    for (std::size_t i = 0; i < g_.insts.size(); ++i)
      if (const auto v = ValueId{static_cast<std::uint32_t>(i)}; is_checked(v))
        l_.checked_hints.push_back(v);
  }

 private:
  void visit(Statements& list) {
    for (Statement& s : list) {
      for_each_body(s, [&](Statements& body) { visit(body); });
      LoopNest* const p = std::get_if<LoopNest>(&s.what);
      if (p == nullptr) continue;
      s = planned(std::move(*p), s.at);
      note_repeating(s);
    }
  }

  // ---- blocks that may be whole

  Statement planned(LoopNest p, Location at) {
    std::vector<WindowId> windows = asked(p);
    if (windows.empty()) return {finished(std::move(p)), at};
    const bool only_moves = streams(l_, p);
    const NestModel::Found ragged = model_.look(p);
    // The tests of whole vectors are few, but where nothing else is done for several of them.
    const bool tests_much = only_moves && model_.may_end(windows) &&
                            elements_in_text(p) > 1 << vector_bits(l_, p, p.layout);
    const bool in_parts = ragged.has_parts || ragged.has_conditions;
    if (!in_parts && !tests_much) return {with(std::move(p), ragged), at};
    if (ragged.has_conditions && !ragged.has_parts && ragged.stores_vectors &&
        std::holds_alternative<Store>(p.sink) && !model_.may_end(windows)) {
      p.forked = std::move(windows);
      return {with(std::move(p), ragged), at};
    }
    LoopNest whole = p;
    whole.whole = true;
    whole.ends.clear();
    const NestModel::Found inside = model_.look(whole);
    if (inside.has_parts) return {with(std::move(p), ragged), at};
    LoopNest other =
        only_moves && in_parts ? finished(by_elements(std::move(p))) : with(std::move(p), ragged);
    return {IfWhole{.windows = std::move(windows),
                    .bodies = {{{with(std::move(whole), inside), at}}, {{std::move(other), at}}}},
            at};
  }

  // Where the nest may ask whether blocks are whole: of these.
  std::vector<WindowId> asked(const LoopNest& p) {
    std::vector<WindowId> windows = accessed_windows(l_, p);
    if (windows.size() > most_windows || elements_in_text(p) > most_elements) return {};
    const std::size_t tests = model_.tests_of(windows);
    if (tests == 0 || tests > most_conditions) return {};
    return windows;
  }

  // ---- rows

  LoopNest finished(LoopNest p) {
    if (!reads_rows(p) && !model_.pads_rows(p)) return p;
    const NestModel::Found found = model_.look(p);
    return with(std::move(p), found);
  }

  // Of a staged window, be it for a value that the nest itself keeps.
  bool reads_rows(const LoopNest& p) const {
    return std::ranges::any_of(element_reads(l_, p), [&](const Effect& e) {
      return g_[e.leaf].op == Op::Load && l_.window_loaded(e.leaf).is_staged() &&
             e.own_storage() == l_.window_loaded(e.leaf).storage();
    });
  }

  LoopNest with(LoopNest p, const NestModel::Found& found) {
    p.rows = found.rows;
    p.columns = found.columns;
    p.repeats_first = p.ends.empty() && (found.may_repeat || folds_again(p));
    return p;
  }

  // ---- vectors beyond the end of a row

  // The greatest and the least do not mind what has been.
  bool folds_again(const LoopNest& p) {
    const auto* r = std::get_if<Reduce>(&p.sink);
    return r != nullptr && is_idempotent(fold_of(g_[r->inst].op)) &&
           std::ranges::count(r->reduced, p.layout.rank() - 1) > 0 && model_.pads_rows(p) &&
           !asks_coordinates(p.value) && is_repeated(p);
  }

  // Whether the value, where it is beyond the end, is that of the thread's first vector.
  bool is_repeated(const LoopNest& p) const {
    const int d = p.layout.rank() - 1;
    bool all = true;
    for_each_leaf(l_, p.value, identity_map(p.layout.rank()), false,
                  [&](ValueId, const DimMap& map, StorageId storage) {
                    const auto along = std::count(map.begin(), map.end(), d);
                    if (is_opaque(map)) all = false;
                    if (along == 0) return;
                    for (const auto& [from, copy] : p.redirects)
                      if (from == storage && copy.map == map) all = false;
                    all = all && along == 1 && map.back() == d && storage && repeating_[storage];
                  });
    return all;
  }

  // Whether where an element stands is in the value.
  bool asks_coordinates(ValueId value) const {
    std::vector<ValueId> stack{value};
    std::set<ValueId> seen;
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second || l_.storage_of[v]) continue;
      const Op op = g_[v].op;
      if (op == Op::Iota || op == Op::Concatenate || op == Op::DynamicUpdateSlice) return true;
      for (const ValueId a : g_[v].args)
        if (g_[a].type.is_value()) stack.push_back(a);
    }
    return false;
  }

  // A storage that is filled once, and whichever way blocks take by a nest that repeats.
  void note_repeating(const Statement& s) {
    const auto note = [&](const Statement& nest) {
      const auto* p = std::get_if<LoopNest>(&nest.what);
      const StorageId storage = p == nullptr ? StorageId() : storage_filled(p->sink);
      if (storage && !is_fold(p->sink))
        repeating_[storage] = p->repeats_first && !changes_[storage];
      return !storage || repeating_[storage];
    };
    const auto* forked = std::get_if<IfWhole>(&s.what);
    if (forked == nullptr) return void(note(s));
    if (note(forked->bodies[0][0])) note(forked->bodies[1][0]);
  }

  // Storages that are filled several times: of windows, of what regions hand on.
  void find_changing() {
    changes_.assign(l_.storages.size(), false);
    const auto note = [&](StorageId s) {
      if (s) changes_[s] = true;
    };
    for (const Window& w : l_.windows) note(w.storage());
    for (std::size_t i = 0; i < g_.insts.size(); ++i) {
      const Inst& inst = g_.insts[i];
      if (graph::repeats(inst.op))
        for (const ValueId p : g_[graph::Repeated::of(inst).region].params) note(l_.storage_of[p]);
      if (inst.op == Op::Get) note(l_.storage_of[ValueId{static_cast<std::uint32_t>(i)}]);
    }
  }

  // ---- what the user says of arrays

  bool is_checked(ValueId v) const {
    const Inst& i = g_[v];
    return graph::is_hint(i.op) && !i.type.shape.empty() && is_computed(i.args[0]);
  }

  // Whether every element of the value follows from its coordinates and from scalars.
  bool is_computed(ValueId v) const {
    constexpr std::size_t most = 256;  // parts that are shared are met each time
    std::vector<ValueId> stack{v};
    for (std::size_t met = 0; !stack.empty(); ++met) {
      const ValueId x = stack.back();
      stack.pop_back();
      const Inst& i = g_[x];
      if (i.type.shape.empty()) continue;
      const bool moves = i.op == Op::Broadcast || i.op == Op::Transpose || i.op == Op::Reshape;
      if (met == most || l_.storage_of[x]) return false;
      if (!moves && !graph::is_elementwise(i.op) && i.op != Op::Iota && i.op != Op::Constant)
        return false;
      stack.insert(stack.end(), i.args.begin(), i.args.end());
    }
    return true;
  }

  Program& l_;
  const graph::Graph& g_;
  NestModel model_;
  Table<StorageId, bool> repeating_;  // beyond the end of their rows they hold the first vectors
  Table<StorageId, bool> changes_;
};

}  // namespace

void plan_accesses(Program& l) { Accesses(l).run(); }

}  // namespace palladium::passes
