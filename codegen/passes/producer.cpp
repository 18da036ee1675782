#include "codegen/passes/producer.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "codegen/base/overloaded.hpp"

namespace palladium::passes {

using graph::Op;

namespace {

// Storages of scalars that the producer knows.
using Scalars = std::set<StorageId>;

// Whether nothing but known scalars, and memory that nobody writes, makes the value.
bool is_known(const Program& l, ValueId root, bool enter, const Scalars& known) {
  std::vector<ValueId> stack{root};
  std::set<ValueId> seen;
  for (bool first = enter; !stack.empty(); first = false) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second) continue;
    const graph::Inst& i = l.graph[v];
    if (const StorageId s = l.storage_of[v]; s && !first) {
      if (!known.contains(s)) return false;
      continue;
    }
    if (i.op == Op::Load) {
      const Window& w = l.window_loaded(v);
      if (!w.is_direct() || !w.read_only) return false;
    } else if (!graph::is_pure(i.op)) {
      return false;
    }
    if (i.op != Op::Param) stack.insert(stack.end(), i.args.begin(), i.args.end());
  }
  return true;
}

// What stands in front of the loop and the producer needs, too.
Statements before(const Program& l, const Statements& list, std::size_t at, Scalars& known) {
  Statements made;
  for (std::size_t i = 0; i < at; ++i) {
    const auto* const window = std::get_if<EnterWindow>(&list[i].what);
    const auto* const scalar = std::get_if<Scalar>(&list[i].what);
    if (window != nullptr && !l.windows[window->window].storage()) made.push_back(list[i]);
    if (scalar == nullptr || !scalar->redirects.empty() || !is_known(l, scalar->value, true, known))
      continue;
    known.insert(scalar->storage);
    made.push_back(list[i]);
  }
  return made;
}

bool is_fetched(const Program& l, const Statements& body, const Scalars& known) {
  return std::ranges::all_of(body, [&](const Statement& s) {
    if (const auto* const scalar = std::get_if<Scalar>(&s.what))
      return is_known(l, scalar->value, true, known);
    const Copy* const c = std::get_if<Copy>(&s.what);
    return c == nullptr || (c->of != graph::no_value && is_known(l, c->of, true, known));
  });
}

// Of several loops each begins with what it needs.
void add(Statements& producer, Statements made) {
  for (Statement& s : made) {
    const bool is_there = std::ranges::any_of(producer, [&](const Statement& other) {
      return std::visit(
          Overloaded{
              [](const EnterWindow& a, const EnterWindow& b) { return a.window == b.window; },
              [](const Scalar& a, const Scalar& b) { return a.storage == b.storage; },
              [](const auto&, const auto&) { return false; }},
          s.what, other.what);
    });
    if (!is_there) producer.push_back(std::move(s));
  }
}

// Of one iteration each copy makes what the ones before it have not made.
Statements producing(const std::vector<Ahead>& ahead, Location at) {
  Statements all;
  Scalars made;
  for (const Ahead& a : ahead) {
    for (const Statement& needed : a.body) {
      const auto* const scalar = std::get_if<Scalar>(&needed.what);
      if (scalar == nullptr || made.insert(scalar->storage).second) all.push_back(needed);
    }
    all.push_back({Advance{a.ring}, at});
  }
  return all;
}

/// What stands in front of a loop that is produced, by conditions around it.
std::optional<std::vector<Statements>> in_front(const Program& l,
                                                const std::vector<Standing>& whens, Standing of,
                                                const std::vector<Ahead>& ahead) {
  Scalars known;
  std::vector<Statements> made;  // in front of each condition, and of the loop
  for (const Standing& w : whens) {
    made.push_back(before(l, *w.list, w.at, known));
    if (!is_known(l, std::get<When>((*w.list)[w.at].what).condition, false, known)) return {};
  }
  made.push_back(before(l, *of.list, of.at, known));
  const Statement& loop = (*of.list)[of.at];
  if (const Loop* const repeated = std::get_if<Loop>(&loop.what)) {
    const graph::LoopView view = graph::LoopView::of(l.graph[repeated->inst]);
    if (!is_known(l, view.low, false, known) || !is_known(l, view.high, false, known)) return {};
    known.insert(l.storage_of[l.graph[view.body].params[0]]);
  }
  if (const GridLoop* const over = std::get_if<GridLoop>(&loop.what))
    if (const ValueId end = l.end_of(over->axis);
        end != graph::no_value && !is_known(l, end, false, known))
      return {};
  for (const Ahead& a : ahead)
    for (const Statement& s : a.body)
      if (const auto* const scalar = std::get_if<Scalar>(&s.what)) known.insert(scalar->storage);
  for (const Ahead& a : ahead)
    if (!is_fetched(l, a.body, known)) return {};
  return made;
}

}  // namespace

bool can_produce(const Program& l, const std::vector<Standing>& whens, Standing of,
                 const std::vector<Ahead>& ahead) {
  return in_front(l, whens, of, ahead).has_value();
}

bool produce(Program& l, const std::vector<Standing>& whens, Standing of,
             const std::vector<Ahead>& ahead, Statements& produced) {
  std::optional<std::vector<Statements>> made = in_front(l, whens, of, ahead);
  if (!made) return false;
  Statement loop = (*of.list)[of.at];
  for (const Ahead& a : ahead)
    if (lowered::Ring& ring = l.rings[a.ring]; !ring.empty_barriers)
      ring.empty_barriers = l.add_barriers(a.ring, ring.slots);

  const auto fetch = [&](auto& x) {
    x.body = producing(ahead, loop.at);
    x.shared.clear();
  };
  std::visit(Overloaded{[&](Loop& x) { fetch(x); }, [&](GridLoop& x) { fetch(x); }, [](auto&) {}},
             loop.what);
  for (std::size_t n = whens.size(); n > 0; --n) {
    const Statement& around = (*whens[n - 1].list)[whens[n - 1].at];
    (*made)[n].push_back(std::move(loop));
    loop = {When{std::get<When>(around.what).condition, std::move((*made)[n])}, around.at};
  }
  add(produced, std::move((*made)[0]));
  produced.push_back(std::move(loop));
  return true;
}

void add_producer(const Program& l, Body& body, Statements produced) {
  const RegisterShares registers = registers_beside_producer(l.num_warps / 4);
  Statements& others = body.agents[0].statements;
  Agent producer{.name = "producer"};
  if (registers.all > 0) {
    others.insert(others.begin(), {SetRegisters{registers.consumer, true}, l.graph.at});
    producer.statements.push_back({SetRegisters{registers.producer}, l.graph.at});
  }
  producer.statements.push_back({Elected{std::move(produced)}, l.graph.at});
  body.agents.push_back(std::move(producer));
}

}  // namespace palladium::passes
