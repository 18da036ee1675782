// Passes over the unrolled loops of a program: what they are made of is the same, in an order that
// suits the machine and the reader better.
#include <algorithm>
#include <map>
#include <optional>

#include "codegen/thread/program.hpp"

namespace palladium::thread {
namespace {

// ---- expressions with other parts

ExprId sum_of(Exprs& e, const Expr& x, const std::vector<ExprId>& args) {
  Affine a(x.number);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Expr& arg = e[args[i]];
    const bool inner = arg.node == Node::number || (x.type == i32 && arg.type == i32);
    a = a + (inner ? e.affine(args[i]) : Affine::term(args[i])) * x.coefficients[i];
  }
  return e.sum(a, x.type);
}

ExprId remade(Exprs& e, ExprId old, std::vector<ExprId> args) {
  const Expr x = e[old];
  switch (x.node) {
  case Node::sum: return sum_of(e, x, args);
  case Node::bits: return e.bits(args[0], x.number, x.shift);
  case Node::plain: return e.plain(x.by, args[0], args[1], x.type);
  case Node::op: return e.op(x.op, x.type, std::move(args));
  case Node::element: return e.element(x.variable, args[0]);
  case Node::address: return e.address(x.variable, args.empty() ? no_expr : args[0]);
  case Node::cast: return e.cast(x.type, args[0]);
  case Node::reinterpret: return e.reinterpret(x.type, args[0]);
  case Node::bitcast: return e.bitcast(x.type, args[0]);
  case Node::call: return e.call(x.function, x.type, std::move(args), x.templated, e.facts(old));
  case Node::choose: return e.choose(args[0], args[1], args[2]);
  case Node::all: return e.all(std::move(args));
  case Node::literal:
  case Node::number:
  case Node::variable:
  case Node::fold: break;
  }
  return old;
}

bool mentions(const Exprs& e, ExprId x, VariableId v) {
  bool found = false;
  for_each_variable(e, x, [&](VariableId other) { found |= other == v; });
  return found;
}

// An expression in which `to` stands for some parts; of others (no_expr) the parts are asked for.
template <class F>
class Replaced {
 public:
  Replaced(Exprs& e, F to) : e_(e), to_(std::move(to)) {}

  ExprId operator()(ExprId root) {
    if (root == no_expr) return no_expr;
    if (const auto it = done_.find(root); it != done_.end()) return it->second;
    ExprId to = to_(root);
    if (to == no_expr) {
      std::vector<ExprId> args = e_[root].args;
      const std::vector<ExprId> before = args;
      for (ExprId& a : args) a = (*this)(a);
      to = args == before ? root : remade(e_, root, std::move(args));
    }
    return done_[root] = to;
  }

 private:
  Exprs& e_;
  F to_;
  std::map<ExprId, ExprId> done_;
};

template <class F>
void change_all(Statements& list, F&& f) {
  for (Statement& s : list) {
    change_exprs(s, f);
    if (Statements* body = body_of(s)) change_all(*body, f);
  }
}

// ---- loops that are unrolled wholly

std::optional<std::int64_t> number_in(const Exprs& e, ExprId x) {
  if (x == no_expr || e[x].node != Node::number) return {};
  return e[x].number;
}

/// The iterations of a loop that counts from 0 by 1 and is unrolled; nothing of another.
std::optional<std::int64_t> iterations(const Exprs& e, const For& f) {
  if (f.unroll != 0 || f.step != 1 || f.next != no_expr || number_in(e, f.low) != 0) return {};
  return number_in(e, f.high);
}

// ---- one loop instead of two

// Of a loop whose body is a loop, where both count the elements of arrays: one counter does.
class Joining {
 public:
  explicit Joining(Exprs& e) : e_(e) {}

  void visit(Statements& list) {
    for (Statement& s : list) {
      if (Statements* body = body_of(s)) visit(*body);
      if (For* f = std::get_if<For>(&s.what)) join(*f);
    }
  }

 private:
  void join(For& outer) {
    if (outer.body.size() != 1 || outer.short_form) return;
    For* const inner = std::get_if<For>(&outer.body[0].what);
    if (inner == nullptr || inner->short_form) return;
    const auto n = iterations(e_, outer), m = iterations(e_, *inner);
    const bool computes = std::ranges::all_of(inner->body, [](const Statement& s) {
      return std::holds_alternative<Assign>(s.what) || std::holds_alternative<Let>(s.what);
    });
    if (!n || !m || !computes) return;
    const VariableId counter = e_.declare(
        {.name = "r",
         .type = i32,
         .facts = {.low = 0,
                   .high = *n * *m - 1,
                   .depends = e_[outer.counter].facts.depends | e_[inner->counter].facts.depends}});
    Statements body = inner->body;
    if (!count(body, outer.counter, inner->counter, *m, counter)) return;
    outer.counter = counter;
    outer.high = e_.number(*n * *m);
    outer.body = std::move(body);
  }

  // Puts m * a + b into the statements as `counter`; false where a or b stands otherwise.
  bool count(Statements& body, VariableId a, VariableId b, std::int64_t m, VariableId counter) {
    const ExprId first = e_.variable(a), second = e_.variable(b), both = e_.variable(counter);
    bool possible = true;
    Replaced change(e_, [&](ExprId x) {
      if (x == first || x == second) possible = false;
      if (e_[x].node != Node::sum || e_[x].type != i32) return no_expr;
      const Affine sum = e_.affine(x);
      const std::int64_t scale = sum.coefficient(second);
      if (scale == 0 || sum.coefficient(first) != scale * m) return no_expr;
      const Affine rest = sum.without(first).without(second);
      for (const Affine::Term& t : rest.terms())
        if (mentions(e_, t.of, a) || mentions(e_, t.of, b)) possible = false;
      return e_.sum(rest + Affine::term(both, scale));
    });
    change_all(body, [&](ExprId& x) { x = change(x); });
    return possible;
  }

  Exprs& e_;
};

// A loop over one short assignment takes one line, wherever the user wrote it: lines are no part of
// a kernel's key, so that the text may not depend on them.
void shorten(const Exprs& e, Statements& list) {
  constexpr int most = 6;  // operations
  for (Statement& s : list) {
    if (Statements* body = body_of(s)) shorten(e, *body);
    For* const f = std::get_if<For>(&s.what);
    if (f == nullptr || f->body.size() != 1) continue;
    const Assign* const a = std::get_if<Assign>(&f->body[0].what);
    f->short_form |= a != nullptr && e.size(a->value) <= most;
  }
}

// ---- names of one use

class Uses {
 public:
  explicit Uses(const Exprs& e) : e_(e), of_(e.num_variables()) {}
  void visit(const Statements& list) {
    for (const Statement& s : list) {
      for_each_expr(
          s, [&](ExprId x) { for_each_variable(e_, x, [&](VariableId v) { ++of_[index(v)]; }); });
      if (const Statements* body = body_of(s)) visit(*body);
    }
  }
  int operator[](VariableId v) const { return of_[index(v)]; }

 private:
  const Exprs& e_;
  std::vector<int> of_;
};

// Operations that one expression of the text may hold.
constexpr int most_operations = 12;

// A value that the next assignment alone wants stands in it.
void inline_lets(Exprs& e, const Uses& uses, Statements& list) {
  Statements kept;
  kept.reserve(list.size());
  for (Statement& s : list) {
    if (Statements* body = body_of(s)) inline_lets(e, uses, *body);
    Let* const let = kept.empty() ? nullptr : std::get_if<Let>(&kept.back().what);
    Assign* const assign = std::get_if<Assign>(&s.what);
    if (let != nullptr && assign != nullptr && e[let->variable].temporary &&
        uses[let->variable] == 1 && e.size(let->value) + e.size(assign->value) <= most_operations) {
      const ExprId name = e.variable(let->variable);
      Replaced change(e, [&](ExprId x) { return x == name ? let->value : no_expr; });
      const ExprId value = change(assign->value);
      if (value != assign->value) {
        assign->value = value;
        kept.pop_back();
      }
    }
    kept.push_back(std::move(s));
  }
  list = std::move(kept);
}

// ---- folds

// 0 is not neutral in sums of floats: it makes a 0 of -0.
bool is_neutral(const Exprs& e, ExprId start) {
  const Expr& x = e[start];
  return !(x.node == Node::literal && x.type.is_float() && x.number == 0);
}

// What is folded into `to`, be it a product.
ExprId added_to(Exprs& e, ExprId value, ExprId to) {
  const Expr x = e[value];
  if (x.node == Node::call && x.function == device::Row::fold && x.args[1] == to) return x.args[2];
  if (x.node == Node::op && x.op == graph::Op::Fma && x.args[2] == to)
    return e.op(graph::Op::Mul, x.type, {x.args[0], x.args[1]});
  return no_expr;
}

// acc = identity; for (r from 0) acc = fold(acc, x(r)) begins with x(0).
void begin_fold(Exprs& e, Statement& declaration, For& loop) {
  Declare* const d = std::get_if<Declare>(&declaration.what);
  if (d == nullptr || d->start != Declare::Start::values || !iterations(e, loop) ||
      e[d->variable].form != Form::value || loop.body.size() != 1 || !is_neutral(e, d->values[0]))
    return;
  const Assign* const a = std::get_if<Assign>(&loop.body[0].what);
  if (a == nullptr || a->to != e.variable(d->variable)) return;
  const ExprId element = added_to(e, a->value, a->to);
  if (element == no_expr || mentions(e, element, d->variable)) return;
  const ExprId counter = e.variable(loop.counter);
  Replaced change(e, [&](ExprId x) { return x == counter ? e.number(0) : no_expr; });
  d->values = {change(element)};
  loop.low = e.number(1);
}

void begin_folds(Exprs& e, Statements& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (Statements* body = body_of(list[i])) begin_folds(e, *body);
    if (For* loop = std::get_if<For>(&list[i].what); loop != nullptr && i > 0)
      begin_fold(e, list[i - 1], *loop);
  }
  std::erase_if(list, [&](const Statement& s) {
    const For* f = std::get_if<For>(&s.what);
    return f != nullptr && f->low == e.number(1) && f->high == e.number(1);
  });
}

// ---- loads first

// Registers that the loads of one loop may fill before the first of them is used.
constexpr std::int64_t most_words = 32;

class Loads {
 public:
  explicit Loads(Exprs& e) : e_(e) {}

  void visit(Statements& list) {
    Statements kept;
    kept.reserve(list.size());
    for (Statement& s : list) {
      if (Statements* body = body_of(s)) {
        visit(*body);
        // Braces within braces.
        const bool braces =
            std::holds_alternative<If>(s.what) || std::holds_alternative<Else>(s.what);
        Block* const only = body->size() == 1 ? std::get_if<Block>(&body->front().what) : nullptr;
        if (braces && only != nullptr) *body = Statements(std::move(only->body));
      }
      For* const loop = std::get_if<For>(&s.what);
      Statements parts;
      if (loop == nullptr || !split(*loop, s.at, parts)) {
        kept.push_back(std::move(s));
      } else if (loop->nest) {
        kept.push_back({Block{.body = std::move(parts), .nest = true}, s.at});
      } else {
        for (Statement& part : parts) kept.push_back(std::move(part));
      }
    }
    list = std::move(kept);
  }

 private:
  static bool loads(const Statement& s) {
    if (const For* f = std::get_if<For>(&s.what))
      return f->unroll == 0 && std::ranges::all_of(f->body, loads);
    const Load* load = std::get_if<Load>(&s.what);
    return load != nullptr && load->access.place.unwritten;
  }

  static bool stores(const Statements& list) {
    return std::ranges::any_of(list, [](const Statement& s) {
      const Statements* body = body_of(s);
      return std::holds_alternative<Store>(s.what) || std::holds_alternative<Update>(s.what) ||
             (body != nullptr && stores(*body));
    });
  }

  std::int64_t size(VariableId v) const { return std::max<std::int64_t>(1, e_[v].count); }

  // Into declarations, a loop of loads and one of the rest.
  bool split(For& loop, Origin at, Statements& out) {
    const auto n = iterations(e_, loop);
    if (!n || *n < 2 || loop.short_form) return false;
    std::size_t first = 0;  // statement behind the loads
    std::int64_t words = 0;
    std::map<VariableId, VariableId> arrays;
    for (; first < loop.body.size(); ++first) {
      const Statement& s = loop.body[first];
      if (const Declare* d = std::get_if<Declare>(&s.what);
          d != nullptr && first + 1 < loop.body.size() && loads(loop.body[first + 1])) {
        words += *n * size(d->variable) * std::max(4, e_[d->variable].type.bytes()) / 4;
        arrays[d->variable] = thread::no_variable;
      } else if (!loads(s)) {
        break;
      }
    }
    const Statements rest(loop.body.begin() + static_cast<std::ptrdiff_t>(first), loop.body.end());
    if (arrays.empty() || words > most_words || !stores(rest)) return false;
    for (auto& [one, all] : arrays) {
      Variable v = e_[one];
      v.form = Form::array;
      v.count = *n * size(one);
      all = e_.declare(std::move(v));
    }
    fill(loop, arrays, at, first, rest, out);
    return true;
  }

  void fill(For& loop, const std::map<VariableId, VariableId>& arrays, Origin at, std::size_t first,
            Statements rest, Statements& out) {
    const ExprId counter = e_.variable(loop.counter);
    const auto moved = [&](VariableId one, ExprId to) {
      const Affine begin = Affine::term(counter, size(one));
      return e_.sum(to == no_expr ? begin : begin + e_.affine(to));
    };
    Replaced change(e_, [&](ExprId x) {
      const Expr e = e_[x];
      const auto it = arrays.find(e.variable);
      if (e.variable == no_variable || it == arrays.end()) return no_expr;
      const ExprId at = moved(it->first, e.args.empty() ? no_expr : e.args[0]);
      return e.node == Node::address ? e_.address(it->second, at) : e_.element(it->second, at);
    });
    For filling = loop;
    filling.body.clear();
    filling.nest = false;
    for (std::size_t i = 0; i < first; ++i) {
      Statement& s = loop.body[i];
      if (Declare* d = std::get_if<Declare>(&s.what)) {
        d->variable = arrays.at(d->variable);
        out.push_back(std::move(s));
      } else {
        filling.body.push_back(std::move(s));
      }
    }
    loop.body = std::move(rest);
    for (Statements* list : {&filling.body, &loop.body})
      change_all(*list, [&](ExprId& x) { x = change(x); });
    For using_them = loop;
    using_them.nest = false;
    out.push_back({std::move(filling), at});
    out.push_back({std::move(using_them), at});
  }

  Exprs& e_;
};

}  // namespace

void load_first(Program& p) { Loads(p.exprs).visit(p.body); }

void join_loops(Program& p) {
  Uses uses(p.exprs);
  uses.visit(p.body);
  inline_lets(p.exprs, uses, p.body);
  Joining(p.exprs).visit(p.body);
}

void begin_folds(Program& p) {
  begin_folds(p.exprs, p.body);
  shorten(p.exprs, p.body);
}

}  // namespace palladium::thread
