// What only the first iteration of a sequential axis does before all else, where that fills
// registers with constants, stands before the loop: in it each register would be chosen in every
// iteration. What only the last one does behind all else stands behind the loop, which is then
// nothing but what all iterations do.
//
// Precondition: build_statements. A program runs only where its sequential axes have iterations.
#include <algorithm>
#include <set>

#include "codegen/lowered/effects.hpp"
#include "codegen/passes/iterations.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Op;

// What a statement touches, with all that stands inside of it.
template <class F>
void for_each_effect(const Program& l, const Statement& s, const F& f) {
  for (const Effect& e : effects(l, s)) f(e);
  for_each_body(s, [&](const Statements& body) {
    for (const Statement& inner : body) for_each_effect(l, inner, f);
  });
}

class Peeling {
 public:
  explicit Peeling(Program& l) : l_(l), g_(l.graph) {}

  void run() {
    for (const Window& w : l_.windows)
      if (w.storage()) outlive_.insert(w.storage());
    for_each_list(l_, [&](Statements& list) { visit(list); });
  }

 private:
  void visit(Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](Statements& body) { visit(body); });
      if (!std::holds_alternative<GridLoop>(list[i].what)) continue;
      i += insert(list, i, take_first(std::get<GridLoop>(list[i].what)));
      Statements last = take_last(std::get<GridLoop>(list[i].what));
      end_where_nothing_is_left(std::get<GridLoop>(list[i].what));
      i += insert(list, i + 1, std::move(last));
    }
  }

  static std::size_t insert(Statements& list, std::size_t at, Statements moved) {
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at),
                std::make_move_iterator(moved.begin()), std::make_move_iterator(moved.end()));
    return moved.size();
  }

  // The statements of a condition on the first iteration that nothing but names stands before.
  Statements take_first(GridLoop& loop) {
    for (std::size_t i = 0; i < loop.body.size(); ++i) {
      const auto& what = loop.body[i].what;
      if (std::holds_alternative<EnterWindow>(what) || std::holds_alternative<Scalar>(what))
        continue;
      When* const when = std::get_if<When>(&loop.body[i].what);
      if (when == nullptr || !asks_first(g_, when->condition, loop.axis) ||
          !is_constant(*when, loop))
        return {};
      Statements taken = std::move(when->body);
      loop.body.erase(loop.body.begin() + static_cast<std::ptrdiff_t>(i));
      return taken;
    }
    return {};
  }

  bool is_constant(const When& when, const GridLoop& loop) const {
    return std::ranges::all_of(when.body, [&](const Statement& s) {
      const LoopNest* const p = std::get_if<LoopNest>(&s.what);
      const Assign* const to = p == nullptr ? nullptr : std::get_if<Assign>(&p->sink);
      return to != nullptr && !is_entered(to->storage, loop) && has_no_leaves(p->value);
    });
  }

  // Whether the loop brings the window another block.
  bool is_entered(StorageId storage, const GridLoop& loop) const {
    return std::ranges::any_of(loop.body, [&](const Statement& s) {
      const EnterWindow* const enter = std::get_if<EnterWindow>(&s.what);
      return enter != nullptr && l_.windows[enter->window].storage() == storage;
    });
  }

  bool has_no_leaves(ValueId v) const {
    bool none = !l_.storage_of[v];
    for_each_leaf(l_, v, identity_map(static_cast<int>(g_[v].type.shape.size())), false,
                  [&](ValueId, const DimMap&, StorageId) { none = false; });
    return none;
  }

  // The statements of conditions on the last iteration that nothing stands behind, the axis whose
  // number is not asked for in them.
  Statements take_last(GridLoop& loop) const {
    Statements taken;
    while (!loop.body.empty()) {
      When* const when = std::get_if<When>(&loop.body.back().what);
      if (when == nullptr || !asks_last(g_, when->condition, loop.axis) || !can_leave(*when, loop))
        return taken;
      Statements body = std::move(when->body);
      loop.body.pop_back();
      insert(taken, 0, std::move(body));
    }
    return taken;
  }

  // A condition beside which nothing stands, and that holds up to a number of the iteration alone:
  // the loop ends there.
  void end_where_nothing_is_left(GridLoop& loop) {
    if (loop.axis != innermost_sequential_axis(g_) || l_.bodies.size() > 1) return;
    const auto is_name = [](const Statement& s) {
      return std::holds_alternative<EnterWindow>(s.what) || std::holds_alternative<Scalar>(s.what);
    };
    const auto found = std::ranges::find_if_not(loop.body, is_name);
    if (found == loop.body.end() || !std::all_of(found + 1, loop.body.end(), is_name)) return;
    When* const when = std::get_if<When>(&found->what);
    const ValueId end =
        when == nullptr ? graph::no_value : end_asked(g_, when->condition, loop.axis);
    if (end == graph::no_value || !is_known_outside(end)) return;
    l_.end_of_axis = end;
    Statements body = std::move(when->body);
    insert(loop.body, static_cast<std::size_t>(loop.body.erase(found) - loop.body.begin()),
           std::move(body));
  }

  bool is_known_outside(ValueId v) const { return l_.around[v] < std::ssize(l_.sequential_axes); }

  // Whether all that it touches is there behind the loop, as the last iteration leaves it.
  bool can_leave(const When& when, const GridLoop& loop) const {
    std::set<StorageId> made;
    std::set<WindowId> entered;
    for (const Statement& s : loop.body) {
      if (const EnterWindow* const enter = std::get_if<EnterWindow>(&s.what))
        entered.insert(enter->window);
      if (std::get_if<When>(&s.what) == &when) continue;
      for_each_effect(l_, s, [&](const Effect& e) {
        if (e.writes() && e.storage && !outlive_.contains(e.storage)) made.insert(e.storage);
      });
    }
    for (const WindowId w : entered)
      if (l_.windows[w].storage()) made.insert(l_.windows[w].storage());
    bool can = true;
    for (const Statement& s : when.body)
      for_each_effect(l_, s, [&](const Effect& e) {
        can = can && !made.contains(e.storage) && !entered.contains(e.window);
        can = can && (e.leaf == graph::no_value || !asks_for_axis(l_, e.leaf, loop.axis));
      });
    return can && std::ranges::none_of(
                      when.body, [&](const Statement& s) { return computes_with(s, loop.axis); });
  }

  // Whether a statement, or one inside of it, is made of the number of the iteration.
  bool computes_with(const Statement& s, int axis) const {
    bool found = false;
    for (const ValueId v : values_of(s)) found = found || asks_for_axis(l_, v, axis);
    for_each_body(s, [&](const Statements& body) {
      for (const Statement& inner : body) found = found || computes_with(inner, axis);
    });
    return found;
  }

  // What is evaluated for a statement by itself; all kinds that stand in a body as it was written.
  static std::vector<ValueId> values_of(const Statement& s) {
    std::vector<ValueId> all;
    const auto add = [&](ValueId v) {
      if (v != graph::no_value) all.push_back(v);
    };
    if (const LoopNest* const p = std::get_if<LoopNest>(&s.what)) {
      add(p->value);
      add(accessed_by(p->sink));
    }
    if (const Copy* const c = std::get_if<Copy>(&s.what)) add(c->of);
    if (const Scalar* const x = std::get_if<Scalar>(&s.what)) add(x->value);
    if (const When* const w = std::get_if<When>(&s.what)) add(w->condition);
    if (const Loop* const x = std::get_if<Loop>(&s.what)) add(x->inst);
    if (const While* const x = std::get_if<While>(&s.what)) add(x->inst);
    if (const Switch* const x = std::get_if<Switch>(&s.what)) add(x->inst);
    if (const Dot* const d = std::get_if<Dot>(&s.what)) add(d->inst);
    if (const Semaphore* const x = std::get_if<Semaphore>(&s.what)) add(x->inst);
    if (const HostCall* const x = std::get_if<HostCall>(&s.what)) add(x->inst);
    return all;
  }

  Program& l_;
  const Graph& g_;
  std::set<StorageId> outlive_;  // of windows: they are there from the begin of the program
};

}  // namespace

void peel_iterations(Program& l) { Peeling(l).run(); }

}  // namespace palladium::passes
