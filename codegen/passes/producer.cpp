#include "codegen/passes/producer.hpp"

#include <algorithm>
#include <set>

#include "codegen/base/overloaded.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::passes {

using graph::Op;

namespace {

// Storages of scalars that the producer knows.
using Scalars = std::set<StorageId>;

// Whether nothing but known scalars, and memory that nobody writes, makes the value that fills the
// storage; none: that is asked for.
bool is_known(const Program& l, ValueId root, StorageId filled, const Scalars& known) {
  std::vector<ValueId> stack{root};
  std::set<ValueId> seen;
  for (bool first = true; !stack.empty(); first = false) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (!seen.insert(v).second) continue;
    const graph::Inst& i = l.graph[v];
    if (const StorageId s = l.storage_of[v]; s && !(first && s == filled)) {
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

// Scalars that are known from a statement on, statement by statement.
class Knowledge {
 public:
  explicit Knowledge(const Program& l) : l_(&l) {}

  const Scalars& known() const { return known_; }
  bool knows(ValueId v) const { return is_known(*l_, v, {}, known_); }

  /// Whether the statement makes a scalar that is known behind it.
  bool pass(const Statement& s) {
    const auto* const scalar = std::get_if<Scalar>(&s.what);
    const bool makes = scalar != nullptr && scalar->redirects.empty() &&
                       is_known(*l_, scalar->value, scalar->storage, known_);
    forget_filled(s);
    if (makes) known_.insert(scalar->storage);
    return makes;
  }

  /// Goes into the statement, of a loop into any of its iterations; whether it is known which of
  /// its bodies run, and how often.
  bool enter(const Statement& s) {
    if (const When* const when = std::get_if<When>(&s.what)) return knows(when->condition);
    forget_filled(s);
    if (const Loop* const loop = std::get_if<Loop>(&s.what)) {
      const graph::LoopView view = graph::LoopView::of(l_->graph[loop->inst]);
      known_.insert(l_->storage_of[l_->graph[view.body].params[0]]);
      return knows(view.low) && knows(view.high);
    }
    const GridLoop* const over = std::get_if<GridLoop>(&s.what);
    if (over == nullptr || over->axis == programs_axis) return over != nullptr;
    const ValueId end = l_->end_of(over->axis);
    return end == graph::no_value || knows(end);
  }

  void learn(const std::vector<Ahead>& ahead) {
    for (const Ahead& a : ahead)
      for (const Statement& s : a.body)
        if (const auto* const scalar = std::get_if<Scalar>(&s.what)) known_.insert(scalar->storage);
  }

 private:
  void forget_filled(const Statement& s) {
    for (const Effect& e : effects(*l_, s))
      if (e.writes()) known_.erase(e.storage);
    for_each_body(s, [&](const Statements& body) {
      for (const Statement& inner : body) forget_filled(inner);
    });
  }

  const Program* l_;
  Scalars known_;
};

bool is_fetched(const Program& l, const Statements& body, const Scalars& known) {
  return std::ranges::all_of(body, [&](const Statement& s) {
    if (const auto* const scalar = std::get_if<Scalar>(&s.what))
      return is_known(l, scalar->value, scalar->storage, known);
    const Copy* const c = std::get_if<Copy>(&s.what);
    return c == nullptr ||
           (c->of != graph::no_value && is_known(l, c->of, l.storage_of[c->of], known));
  });
}

// Scalars and windows have one name in an iteration, however many ask for them.
bool makes_the_same(const Statement& a, const Statement& b) {
  return std::visit(
      Overloaded{[](const EnterWindow& x, const EnterWindow& y) { return x.window == y.window; },
                 [](const Scalar& x, const Scalar& y) { return x.storage == y.storage; },
                 [](const auto&, const auto&) { return false; }},
      a.what, b.what);
}

void add_once(Statements& all, const Statement& s) {
  if (std::ranges::none_of(all, [&](const Statement& x) { return makes_the_same(x, s); }))
    all.push_back(s);
}

// Of one iteration each copy makes what the ones before it have not made.
Statements producing(const std::vector<Ahead>& ahead, Location at) {
  Statements all;
  for (const Ahead& a : ahead) {
    for (const Statement& needed : a.body) add_once(all, needed);
    all.push_back({Advance{a.ring}, at});
  }
  return all;
}

// For each iteration of a loop of this body; null: nothing.
const std::vector<Ahead>* fetched_for(const Produced& produced, const Statements& body) {
  for (const Statement& s : body)
    if (const Advance* const step = std::get_if<Advance>(&s.what))
      if (const auto found = produced.find(step->ring); found != produced.end())
        return &found->second;
  return nullptr;
}

// What the producer does of a body.
class Slice {
 public:
  Slice(const Program& l, const Produced& produced) : l_(l), produced_(produced), knowledge_(l) {}

  /// Of loops, and conditions, in which it fetches, and of what stands in front of them.
  Statements of(const Statements& list) {
    Statements made;
    std::size_t needed = 0;
    for (const Statement& s : list) {
      if (fetches_in(s)) {
        const Knowledge before = knowledge_;
        (void)knowledge_.enter(s);
        made.push_back(sliced(s));
        needed = made.size();
        knowledge_ = before;
      }
      const auto* const window = std::get_if<EnterWindow>(&s.what);
      const bool enters = window != nullptr && !l_.windows[window->window].storage();
      if (knowledge_.pass(s) || enters) made.push_back(s);
    }
    made.resize(needed);
    return made;
  }

 private:
  Statement sliced(const Statement& s) {
    Statement made{.what = s.what, .at = s.at};
    std::visit(
        Overloaded{[&](When& x) { x.body = of(x.body); }, [&](Loop& x) { fetch_in(x, s.at); },
                   [&](GridLoop& x) { fetch_in(x, s.at); }, [](auto&) {}},
        made.what);
    return made;
  }

  template <class T>
  void fetch_in(T& loop, Location at) {
    Statements all;
    if (const std::vector<Ahead>* const ahead = fetched_for(produced_, loop.body))
      all = producing(*ahead, at);
    for (const Statement& inside : of(loop.body)) add_once(all, inside);
    loop.body = std::move(all);
    loop.ring = {};
    loop.shared.clear();
  }

  bool fetches_in(const Statement& s) const {
    bool found = false;
    for_each_body(
        s, [&](const Statements& body) { found = found || passes::fetches_in(produced_, body); });
    return found;
  }

  const Program& l_;
  const Produced& produced_;
  Knowledge knowledge_;
};

}  // namespace

bool fetches_in(const Produced& produced, const Statements& list) {
  return fetched_for(produced, list) != nullptr ||
         std::ranges::any_of(list, [&](const Statement& s) {
           bool found = false;
           for_each_body(
               s, [&](const Statements& body) { found = found || fetches_in(produced, body); });
           return found;
         });
}

bool can_produce(const Program& l, const std::vector<Standing>& around, Standing of,
                 const std::vector<Ahead>& ahead) {
  Knowledge knowledge(l);
  const auto pass_before = [&](Standing s) {
    for (std::size_t i = 0; i < s.at; ++i) (void)knowledge.pass((*s.list)[i]);
    return knowledge.enter((*s.list)[s.at]);
  };
  for (const Standing& s : around)
    if (!pass_before(s)) return false;
  if (!pass_before(of)) return false;
  knowledge.learn(ahead);
  return std::ranges::all_of(
      ahead, [&](const Ahead& a) { return is_fetched(l, a.body, knowledge.known()); });
}

void add_producer(const Program& l, Body& body, const Produced& produced) {
  const RegisterShares registers = registers_beside_producer(l.num_warps / 4);
  Statements& others = body.agents[0].statements;
  Statements slice = Slice(l, produced).of(others);
  Agent producer{.name = "producer"};
  if (registers.all > 0) {
    others.insert(others.begin(), {SetRegisters{registers.consumer, true}, l.graph.at});
    producer.statements.push_back({SetRegisters{registers.producer}, l.graph.at});
  }
  producer.statements.push_back({Elected{std::move(slice)}, l.graph.at});
  body.agents.push_back(std::move(producer));
}

}  // namespace palladium::passes
