// Sums that follow a maximum, as of a softmax that goes on from block to block, are multiplied by
// exp(old - new) when it grows. Once it has stopped growing that is exactly one, and multiplying by
// one changes nothing: a warp whose threads have nothing but ones of the factor leaves the sum as
// it is.
//
// So it is for products of wgmma, which begin when all is multiplied. Those of mma.sync take one
// register after the other, while the rest is being multiplied: a branch would part them, and ptxas
// spilled behind it.
//
// Whether it is one is asked of the numbers. The text decides only where asking pays: of a factor
// that may well be one, of which a thread has few elements beside those of the sum.
//
// Precondition: assign_layouts.
#include <algorithm>
#include <set>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Graph;
using graph::Inst;
using graph::Op;

// Of a sum at least, and for each element of the factor: a vote and a branch stand for these.
constexpr std::int64_t least_registers = 32, least_for_each = 8;

// Chains of operations that are followed.
constexpr int longest_chain = 4;

bool is_move(const Inst& i) {
  return i.op == Op::Broadcast || i.op == Op::Reshape || i.op == Op::Transpose;
}

ValueId unmoved(const Graph& g, ValueId v) {
  while (is_move(g[v])) v = g[v].args[0];
  return v;
}

bool chooses(Op op) { return op == Op::Max || op == Op::Min || op == Op::Select; }

// Whether one of the values is the other one where that is not replaced by a larger, a smaller or
// another one.
bool may_equal(const Graph& g, ValueId x, ValueId y, int depth = longest_chain) {
  x = unmoved(g, x), y = unmoved(g, y);
  if (x == y) return true;
  if (depth == 0) return false;
  const auto is_chosen_of = [&](ValueId chosen, ValueId other) {
    const Inst& i = g[chosen];
    return chooses(i.op) && std::ranges::any_of(i.args, [&](ValueId a) {
             return g[unmoved(g, a)].op != Op::Constant && may_equal(g, a, other, depth - 1);
           });
  };
  if (is_chosen_of(x, y) || is_chosen_of(y, x)) return true;
  const Inst &a = g[x], &b = g[y];
  if (a.op == Op::Constant && b.op == Op::Constant) return a.attr.bits == b.attr.bits;
  return a.op == b.op && graph::is_elementwise(a.op) && a.args.size() == b.args.size() &&
         std::ranges::equal(a.args, b.args,
                            [&](ValueId s, ValueId t) { return may_equal(g, s, t, depth - 1); });
}

// Whether a value may be a difference of equals, or a multiple of one.
bool may_vanish(const Graph& g, ValueId v, int depth = longest_chain) {
  v = unmoved(g, v);
  const Inst& i = g[v];
  if (depth == 0) return false;
  switch (i.op) {
  case Op::Sub: return may_equal(g, i.args[0], i.args[1]);
  case Op::Neg: return may_vanish(g, i.args[0], depth - 1);
  case Op::Mul: return may_vanish(g, i.args[0], depth - 1) || may_vanish(g, i.args[1], depth - 1);
  default: return false;
  }
}

bool may_be_one(const Graph& g, ValueId factor) {
  const Inst& i = g[unmoved(g, factor)];
  return (i.op == Op::Exp || i.op == Op::Exp2) && may_vanish(g, i.args[0]);
}

// Where the nest reads registers of an operand of its value, which may be a move of what they hold.
StorageId registers_read(const Program& l, const LoopNest& p, std::size_t operand) {
  DimMap map = map_of_operand(l.graph, p.value, operand, identity_map(p.layout.rank()));
  ValueId v = l.graph[p.value].args[operand];
  for (; !l.storage_of[v] && is_move(l.graph[v]); v = l.graph[v].args[0])
    map = map_of_operand(l.graph, v, 0, map);
  StorageId read = l.storage_of[v];
  for (const auto& [from, to] : p.redirects)
    if (from == l.storage_of[v] && to.map == map) read = to.storage;
  const bool is_plain = read && l.storages[read].in_registers() && !l.storages[read].is_packed();
  return is_plain ? read : StorageId();
}

// The factor of a nest that multiplies what a storage holds in place.
StorageId factor_of(const Program& l, const LoopNest& p) {
  const Assign* const to = std::get_if<Assign>(&p.sink);
  if (to == nullptr || p.value == graph::no_value || !l.storages[to->storage].in_registers() ||
      p.layout != l.storages[to->storage].registers().layout)
    return {};
  const Inst& product = l.graph[p.value];
  if (product.op != Op::Mul || !product.type.dtype.is_float()) return {};
  for (const std::size_t n : {0u, 1u})
    if (l.storage_of[product.args[n]] == to->storage && registers_read(l, p, n) == to->storage &&
        may_be_one(l.graph, product.args[1 - n]))
      return registers_read(l, p, 1 - n);
  return {};
}

void add_sums(const Statements& list, std::set<StorageId>& sums) {
  for (const Statement& s : list) {
    for_each_body(s, [&](const Statements& body) { add_sums(body, sums); });
    const Dot* const d = std::get_if<Dot>(&s.what);
    if (d != nullptr && is_of_wgmma(d->unit) && d->accumulates) sums.insert(d->result);
  }
}

void skip_in(Program& l, Statements& list, const std::set<StorageId>& sums) {
  for (Statement& s : list) {
    for_each_body(s, [&](Statements& body) { skip_in(l, body, sums); });
    LoopNest* const p = std::get_if<LoopNest>(&s.what);
    if (p == nullptr || !sums.contains(storage_filled(p->sink))) continue;
    const StorageId factor = factor_of(l, *p);
    if (!factor) continue;
    const std::int64_t asked = l.storages[factor].registers().layout.registers();
    if (p->layout.registers() >= std::max(least_registers, least_for_each * asked))
      p->unless_one = factor;
  }
}

}  // namespace

void skip_rescaling(Program& l) {
  std::set<StorageId> sums;
  for_each_list(l, [&](const Statements& list) { add_sums(list, sums); });
  if (sums.empty()) return;
  for_each_list(l, [&](Statements& list) { skip_in(l, list, sums); });
}

}  // namespace palladium::passes
