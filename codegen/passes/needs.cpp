#include "codegen/passes/needs.hpp"

#include "codegen/lowered/effects.hpp"

namespace palladium::passes {

using graph::Op;

Needs::Needs(const Program& l, const Over& over) : l_(l), g_(l.graph), over_(over) {
  for (std::size_t i = 0; i < over.body->size(); ++i) {
    note((*over.body)[i], false);
    if (const auto* s = std::get_if<Scalar>(&(*over.body)[i].what)) scalars_[s->storage] = i;
    if (const auto* w = std::get_if<EnterWindow>(&(*over.body)[i].what)) windows_[w->window] = i;
  }
  if (over.loop != graph::no_value) {
    const graph::LoopView view = graph::LoopView::of(g_[over.loop]);
    index_ = l.storage_of[g_[view.body].params[0]];
  }
}

std::string Needs::add(std::span<const Statement> copies, std::set<std::size_t>& statements) {
  std::set<std::size_t> found;
  std::string why;
  for (const Statement& s : copies)
    if (why.empty()) why = add_copy(s, found);
  if (why.empty()) statements.merge(found);
  return why;
}

std::string Needs::add_copy(const Statement& copy, std::set<std::size_t>& found) {
  if (const Copy* const c = std::get_if<Copy>(&copy.what))
    return c->from.window ? add_window(c->from.window, found) : add_value(c->of, found);
  if (const Scalar* const s = std::get_if<Scalar>(&copy.what)) return add_value(s->value, found);
  const LoopNest* const p = std::get_if<LoopNest>(&copy.what);
  if (p == nullptr) return "";
  for (const auto& [_, copy] : p->redirects)
    if (filled_.contains(copy.storage)) return "the address depends on computed data";
  std::string why;
  if (const WindowId w = window_moved(p->sink)) why = add_window(w, found);
  if (p->value != graph::no_value && why.empty()) why = add_value(p->value, found);
  return why;
}

// What stands ahead has scalars of its own.
void Needs::note(const Statement& s, bool ahead) {
  for (const Effect& e : effects(l_, s))
    if (e.writes() && e.storage && !(ahead && l_.storages[e.storage].is_scalar()))
      ++filled_[e.storage];
  const bool inside = ahead || std::holds_alternative<Ahead>(s.what);
  for_each_body(s, [&](const Statements& body) {
    for (const Statement& inner : body) note(inner, inside);
  });
}

// The block of a window that is entered in the loop: what its index map reads nobody writes.
std::string Needs::add_window(WindowId window, std::set<std::size_t>& found) {
  const auto entered = windows_.find(window);
  if (entered == windows_.end()) return "";
  found.insert(entered->second);
  return "";
}

std::string Needs::add_value(ValueId root, std::set<std::size_t>& found) {
  std::vector<std::pair<ValueId, bool>> stack{{root, false}};  // and whether it makes an address
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const auto [v, address] = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second) continue;
    // The value itself may live where it is copied to.
    if (const StorageId s = l_.storage_of[v]; s && v != root) {
      if (s == index_ || !filled_.contains(s)) continue;
      const auto made = scalars_.find(s);
      const bool again = g_[v].op == Op::Param || g_[v].op == Op::Get || filled_[s] > 1;
      if (again || made == scalars_.end())
        return "the address depends on what the iteration before it computes";
      const Scalar& scalar = std::get<Scalar>((*over_.body)[made->second].what);
      if (!scalar.redirects.empty()) return "the address depends on computed data";
      found.insert(made->second);
    }
    if (g_[v].op == Op::Load || g_[v].op == Op::Swap) {
      const Window& w = l_.window_loaded(v);
      if (address && !(w.is_direct() && w.read_only)) return "the address depends on loaded data";
      if (std::string why = add_view(g_[v].args[0], stack, found); !why.empty()) return why;
      const graph::MemoryView m = graph::MemoryView::of(g_[v]);
      for (const ValueId asked : {m.mask, m.other})
        if (asked != graph::no_value) stack.emplace_back(asked, true);
      continue;
    }
    for (const ValueId a : g_[v].args)
      if (g_[a].type.is_value()) stack.emplace_back(a, address || (v != root && l_.storage_of[v]));
  }
  return "";
}

std::string Needs::add_view(ValueId ref, std::vector<std::pair<ValueId, bool>>& stack,
                            std::set<std::size_t>& found) {
  for (; !g_.is_base(ref); ref = g_[ref].args[0])
    for (std::size_t a = 1; a < g_[ref].args.size(); ++a) stack.emplace_back(g_[ref].args[a], true);
  return add_window(l_.window_of[ref], found);
}

}  // namespace palladium::passes
