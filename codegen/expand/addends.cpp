// Sums of integers, whose addends may be regrouped: what neighbouring elements of a vector add
// alike is added once, and a count over two directions is a product.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "codegen/expand/nest.hpp"
#include "palladium/error.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::Op;
using thread::Expr;
using thread::Node;

namespace {

// Removes the addends at these places.
void remove(std::vector<ExprId>& addends, const std::set<std::size_t>& places) {
  std::size_t at = 0;
  std::erase_if(addends, [&](ExprId) { return places.contains(at++); });
}

}  // namespace

ExprId Nest::sum_of(ValueId v, std::vector<ExprId> addends) {
  const Inst& sum = g_[v];
  if (nest_ != nullptr) share_columns(v, addends);
  multiply_counts(sum.type.dtype, addends);
  const auto computed = [&](ExprId a) { return e_[a].node != Node::literal; };
  std::ranges::stable_partition(addends, computed);
  while (addends.size() > 1 && !computed(addends[addends.size() - 2])) {
    const ExprId last = addends.back();
    addends.pop_back();
    addends.back() = operation(sum, coordinates_, {addends.back(), last});
  }
  ExprId total = addends[0];
  for (std::size_t k = 1; k < addends.size(); ++k) {
    if (e_.size(total) > passes::most_operations) total = temporary("x", total);
    total = operation(sum, coordinates_, hoisted({total, addends[k]}));
  }
  return total;
}

// ---- columns

// Addends array[e + first + column] of a sum.
struct Nest::Taps {
  VariableId array = thread::no_variable;
  std::int64_t first = 0;
  std::vector<std::int64_t> columns = {};
};

Nest::Taps Nest::taps(const std::vector<ExprId>& addends, const std::vector<int>& places) const {
  Taps row;
  for (const int k : places) {
    const Expr* x = &e_[addends[static_cast<std::size_t>(k)]];
    if (x->node == Node::op && x->op == Op::Cast) x = &e_[x->args[0]];
    if (x->node != Node::element)
      throw InternalError("expand: an addend of shared columns is no element of a row");
    const std::int64_t at = e_.affine(x->args[0]).without(element_).constant();
    if (row.columns.empty()) row = {.array = x->variable, .first = at};
    row.columns.push_back(at - row.first);
  }
  return row;
}

// Rows of which the same columns are added are added to one, which is longer than the vector; its
// elements stand for them then.
void Nest::share_columns(ValueId sum, std::vector<ExprId>& addends) {
  const DType t = g_[sum].type.dtype;
  std::set<std::size_t> replaced;
  std::vector<ExprId> columns;
  for (const lowered::SharedColumns& shared : nest_->columns) {
    if (shared.sum != sum) continue;
    std::vector<Taps> rows;
    for (const std::vector<int>& places : shared.rows) {
      rows.push_back(taps(addends, places));
      replaced.insert(places.begin(), places.end());
    }
    std::vector<std::int64_t> offsets = rows[0].columns;
    VariableId sums = add_rows(t, rows, offsets.back() + vector_);
    if (fork_ != no_expr) {  // in front of both ways
      std::vector<Taps> shifted;
      for (const std::int64_t c : offsets) shifted.push_back({.array = sums, .first = c});
      sums = add_rows(t, shifted, vector_);
      offsets = {0};
    }
    for (const std::int64_t c : offsets)
      columns.push_back(e_.element(sums, e_.sum(Affine::term(element_) + Affine(c))));
  }
  remove(addends, replaced);
  addends.insert(addends.begin(), columns.begin(), columns.end());
}

VariableId Nest::add_rows(DType t, const std::vector<Taps>& rows, std::int64_t count) {
  ColumnSum key{.type = t.kind(), .count = count, .rows = {}};
  for (const Taps& r : rows) key.rows.emplace_back(r.array, r.first);
  const auto [known_sum, is_new] = column_sums_.try_emplace(std::move(key), thread::no_variable);
  if (is_new) known_sum->second = declare_rows(t, rows, count);
  return known_sum->second;
}

VariableId Nest::declare_rows(DType t, const std::vector<Taps>& rows, std::int64_t count) {
  const VariableId q =
      e_.declare({.name = "q", .type = i32, .facts = {.low = 0, .high = count - 1}});
  ExprId sum = no_expr;
  thread::Depends known = 0;
  for (const Taps& r : rows) {
    known |= e_.depends(e_.element(r.array, e_.number(0)));
    const ExprId at = e_.sum(Affine::term(e_.variable(q)) + Affine(r.first));
    ExprId x = e_.element(r.array, at);
    if (e_[x].type != t) x = e_.op(Op::Cast, t, {x});
    sum = sum == no_expr ? x : e_.op(Op::Add, t, {sum, x});
  }
  const VariableId sums = unfilled("x", t, count);
  thread::For loop{
      .counter = q, .low = e_.number(0), .high = e_.number(count), .body = {}, .short_form = true};
  loop.body.push_back({thread::Assign{e_.element(sums, e_.variable(q)), sum}, b_.at()});
  b_.place(known, sums, {std::move(loop), b_.at()});
  return sums;
}

// ---- counts

// The conditions under which an addend is 1 where it else is 0: at most two, none for 1.
std::optional<std::vector<ExprId>> Nest::counted(ExprId addend) const {
  const auto is = [&](ExprId x, std::int64_t n) {
    return e_[x].node == Node::literal && e_[x].number == n;
  };
  if (is(addend, 1)) return std::vector<ExprId>{};
  const Expr& x = e_[addend];
  if (x.node != Node::op || x.op != Op::Select || !is(x.args[1], 1) || !is(x.args[2], 0)) return {};
  const Expr& condition = e_[x.args[0]];
  if (condition.node == Node::op && condition.op == Op::And) return condition.args;
  return std::vector{x.args[0]};
}

// The conditions of pairs in two lists, so that each pair is of one of each; false where they are
// not all the pairs of two lists.
bool Nest::Counts::split() {
  const auto pair = std::ranges::find_if(all, [](const auto& c) { return c.size() == 2; });
  if (pair == all.end()) return false;
  sides[0] = {(*pair)[0]};
  for (int from : {0, 1, 0}) {  // of all pairs these meet those of one list, those the other's
    std::set<ExprId>& to = sides[1 - from];
    for (const auto& c : all)
      if (c.size() == 2)
        for (const int k : {0, 1})
          if (sides[from].contains(c[k])) to.insert(c[1 - k]);
  }
  const auto is_of = [&](ExprId x, int side) { return sides[side].contains(x); };
  std::size_t pairs = 0, singles[2] = {};
  for (const auto& c : all) {
    if (c.size() == 2 && ((is_of(c[0], 0) && is_of(c[1], 1)) || (is_of(c[0], 1) && is_of(c[1], 0))))
      ++pairs;
    if (c.size() == 1 && is_of(c[0], 0)) ++singles[0];
    if (c.size() == 1 && is_of(c[0], 1)) ++singles[1];
  }
  for (const int k : {0, 1}) {
    if (singles[k] != 0 && singles[k] != sides[k].size()) return false;
    alone[k] = singles[1 - k] != 0;
  }
  const bool always = all.contains({});
  return pairs == sides[0].size() * sides[1].size() && always == (alone[0] && alone[1]) &&
         all.size() == pairs + singles[0] + singles[1] + (always ? 1 : 0);
}

// (how many hold of one list) * (how many of the other) stands for addends that count the pairs of
// which both hold.
void Nest::multiply_counts(DType t, std::vector<ExprId>& addends) {
  Counts counts;
  std::set<std::size_t> places;
  for (std::size_t k = 0; k < addends.size(); ++k)
    if (auto conditions = counted(addends[k])) {
      std::ranges::sort(*conditions);
      if (!counts.all.insert(*std::move(conditions)).second) return;
      places.insert(k);
    }
  if (!counts.split()) return;
  const auto number_of = [&](int side) {
    ExprId sum = counts.alone[side] ? e_.literal(t, 1) : no_expr;
    for (const ExprId condition : counts.sides[side]) {
      const ExprId one = e_.op(Op::Select, t, {condition, e_.literal(t, 1), e_.literal(t, 0)});
      sum = sum == no_expr ? one : e_.op(Op::Add, t, hoisted({sum, one}));
    }
    return sum;
  };
  remove(addends, places);
  addends.push_back(e_.op(Op::Mul, t, hoisted({number_of(0), number_of(1)})));
}

}  // namespace palladium::expand
