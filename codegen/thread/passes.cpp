// Passes over a whole program.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/thread/program.hpp"
#include "palladium/error.hpp"

namespace palladium::thread {
namespace {

// ---- unused names

class Unused {
 public:
  explicit Unused(const Exprs& exprs) : exprs_(exprs), used_(exprs.num_variables()) {}

  // Backwards: all uses of a name stand behind its declaration.
  void visit(Statements& list) {
    Statements kept;
    kept.reserve(list.size());
    for (auto it = list.rbegin(); it != list.rend(); ++it) {
      if (const Let* let = std::get_if<Let>(&it->what); let && !used_[index(let->variable)])
        continue;
      for_each_expr(*it, [&](ExprId e) {
        for_each_variable(exprs_, e, [&](VariableId v) { used_[index(v)] = true; });
      });
      if (Statements* body = body_of(*it)) visit(*body);
      kept.push_back(std::move(*it));
    }
    std::ranges::reverse(kept);
    list = std::move(kept);
  }

 private:
  const Exprs& exprs_;
  std::vector<bool> used_;
};

// ---- numbers

class Numbers {
 public:
  explicit Numbers(Exprs& exprs) : exprs_(exprs) {}

  void visit(Statements& list, int& next) {
    for (Statement& s : list) {
      if (const Let* let = std::get_if<Let>(&s.what)) number(let->variable, next);
      if (const Declare* d = std::get_if<Declare>(&s.what)) number(d->variable, next);
      Statements* const body = body_of(s);
      if (body == nullptr) continue;
      int own = 0;
      const Block* block = std::get_if<Block>(&s.what);
      const For* loop = std::get_if<For>(&s.what);
      visit(*body, (block && block->nest) || (loop && loop->nest) ? own : next);
    }
  }

 private:
  void number(VariableId id, int& next) {
    Variable& v = exprs_[id];
    if (!v.temporary) return;
    v.name += std::to_string(next++);
    v.temporary = false;
  }

  Exprs& exprs_;
};

// ---- the last iterations

constexpr std::int64_t few_iterations = 4;  // there are seven predicates

void guard_last_of(Statements& list) {
  for (Statement& s : list) {
    if (Statements* const body = body_of(s)) guard_last_of(*body);
    For* const loop = std::get_if<For>(&s.what);
    if (loop == nullptr || loop->unroll != 0 || loop->body.empty()) continue;
    const auto* const leaves = std::get_if<BreakUnless>(&loop->body.front().what);
    if (leaves == nullptr || leaves->asked == 0 || leaves->asked > few_iterations) continue;
    If guard{.condition = leaves->condition, .body = {}, .share = leaves->share};
    const Origin at = loop->body.front().at;
    guard.body.assign(std::make_move_iterator(loop->body.begin() + 1),
                      std::make_move_iterator(loop->body.end()));
    loop->body.clear();
    loop->body.push_back({std::move(guard), at});
  }
}

// ---- verify

class Verify {
 public:
  explicit Verify(const Program& p)
      : p_(p), declared_(p.exprs.num_variables()), constant_(p.exprs.num_variables()) {}

  void run() {
    for (const VariableId v : p_.names) declare(v, {});
    visit(p_.body);
  }

 private:
  void visit(const Statements& list) {
    std::vector<VariableId> here;
    for (const Statement& s : list) {
      if (std::holds_alternative<Else>(s.what)) apart(list, s);
      for_each_expr(s, [&](ExprId e) {
        uses(e, s, std::get_if<For>(&s.what));
        pure(e, s.at);
      });
      if (const Let* let = std::get_if<Let>(&s.what)) {
        declare_beside(here, let->variable, s.at);
        constant_[index(let->variable)] = true;
      }
      if (const Declare* d = std::get_if<Declare>(&s.what)) declare_beside(here, d->variable, s.at);
      if (const Assign* a = std::get_if<Assign>(&s.what)) assign(*a, s.at);
      const For* loop = std::get_if<For>(&s.what);
      if (loop) declare(loop->counter, s.at);
      if (const Statements* body = body_of(s)) visit(*body);
      if (loop) forget(loop->counter);
    }
    for (const VariableId v : here) forget(v);
  }

  // In a scope of which those are.
  void declare_beside(std::vector<VariableId>& here, VariableId v, Location at) {
    for (const VariableId other : here)
      if (other != v && p_.exprs[other].name == p_.exprs[v].name)
        fail(at, "two variables of one scope are called '{}'", p_.exprs[v].name);
    declare(v, at);
    here.push_back(v);
  }

  void declare(VariableId v, Location at) {
    if (declared_[index(v)]) fail(at, "'{}' is declared twice", p_.exprs[v].name);
    declared_[index(v)] = true;
    seen_[p_.exprs[v].name].push_back(v);
  }

  void forget(VariableId v) {
    declared_[index(v)] = false;
    std::erase(seen_[p_.exprs[v].name], v);
  }

  void uses(ExprId e, const Statement& s, const For* loop) {
    for_each_variable(p_.exprs, e, [&](VariableId v) {
      if (!declared_[index(v)] && !(loop && loop->counter == v))
        fail(s.at, "'{}' is used out of its scope", p_.exprs[v].name);
      if (declared_[index(v)] && seen_.at(p_.exprs[v].name).back() != v)
        fail(s.at, "'{}' is hidden by another of its name", p_.exprs[v].name);
    });
  }

  // Threads of a group that wait for each other may have gone different ways.
  void apart(const Statements& list, const Statement& otherwise) {
    const Statement* s = &otherwise;
    while (s != &list.front() && std::holds_alternative<Else>(s->what)) --s;
    const If* const first = std::get_if<If>(&s->what);
    if (first == nullptr) fail(otherwise.at, "an else without an if{}", "");
    if (first->uniform) return;
    if (waits(first->body) || waits(*body_of(otherwise)))
      fail(otherwise.at, "threads wait for those that went another way{}", "");
  }

  static bool waits(const Statements& list) {
    return std::ranges::any_of(list, [](const Statement& s) {
      const Call* const call = std::get_if<Call>(&s.what);
      const Statements* const body = body_of(s);
      return std::holds_alternative<Sync>(s.what) || std::holds_alternative<Wgmma>(s.what) ||
             std::holds_alternative<Inline>(s.what) || (body != nullptr && waits(*body)) ||
             (call != nullptr && device::info(call->function).effects.by != device::Group::thread);
    });
  }

  // What acts is a statement.
  void pure(ExprId root, Location at) {
    const Expr& e = p_.exprs[root];
    if (e.node == Node::call && !device::info(e.function).effects.pure)
      fail(at, "'{}' acts, and stands in an expression", device::info(e.function).name);
    for (const ExprId a : e.args) pure(a, at);
  }

  void assign(const Assign& a, Location at) {
    const Expr &to = p_.exprs[a.to], &value = p_.exprs[a.value];
    if (to.node != Node::variable && to.node != Node::element)
      fail(at, "an assignment to what is no variable{}", "");
    if (constant_[index(to.variable)])
      fail(at, "'{}' is a constant, and assigned to", p_.exprs[to.variable].name);
    if (!(to.type == value.type) && value.node != Node::number)
      fail(at, "'{}' and what is assigned to it differ in type", p_.exprs[to.variable].name);
  }

  template <class... A>
  [[noreturn]] void fail(Location at, const char* what, const A&... args) const {
    throw InternalError(fmt::format("thread program of {}, line {}: {}", p_.entry, at.line,
                                    fmt::format(fmt::runtime(what), args...)));
  }

  const Program& p_;
  std::vector<bool> declared_, constant_;
  std::unordered_map<std::string_view, std::vector<VariableId>> seen_;  // by name, inner ones last
};

}  // namespace

void drop_unused(Program& p) { Unused(p.exprs).visit(p.body); }

void number_temporaries(Program& p) {
  int next = 0;
  Numbers(p.exprs).visit(p.body, next);
}

void guard_last(Program& p) { guard_last_of(p.body); }

void verify(const Program& p) { Verify(p).run(); }

}  // namespace palladium::thread
