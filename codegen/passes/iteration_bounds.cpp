#include "codegen/passes/iteration_bounds.hpp"

#include <algorithm>
#include <cstdlib>

namespace palladium::passes {

using graph::Inst;
using graph::Op;

namespace {

constexpr int deepest_bound = 16;     // operations that are looked at below each other
constexpr std::size_t most_sums = 8;  // sums of one side
constexpr std::size_t most_sums_known = 32;
constexpr std::int64_t largest_factor = 1 << 20, largest_constant = std::int64_t{1} << 40;

using List = std::vector<IterationSum>;

IterationSum scaled(IterationSum s, std::int64_t by) {
  s.constant *= by;
  s.per_iteration *= by;
  for (auto& [_, times] : s.addends) times *= by;
  return s;
}

IterationSum plus(IterationSum a, const IterationSum& b) {
  a.constant += b.constant;
  a.per_iteration += b.per_iteration;
  for (const auto& [v, times] : b.addends) {
    const auto same = std::ranges::find(a.addends, v, &std::pair<ValueId, std::int64_t>::first);
    if (same == a.addends.end())
      a.addends.emplace_back(v, times);
    else
      same->second += times;
  }
  std::erase_if(a.addends, [](const auto& addend) { return addend.second == 0; });
  return a;
}

// Far from where 64 bits end, however large what is added is.
bool is_small(const IterationSum& s) {
  return std::abs(s.constant) <= largest_constant && std::abs(s.per_iteration) <= largest_factor &&
         std::ranges::all_of(s.addends,
                             [](const auto& a) { return std::abs(a.second) <= largest_factor; });
}

// Of each of one side with each of the other.
List combined_sums(const List& a, const List& b, std::int64_t times) {
  List all;
  for (const IterationSum& x : a)
    for (const IterationSum& y : b) all.push_back(plus(x, scaled(y, times)));
  return all;
}

bool is_comparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Gt || op == Op::Ge; }

void append(List& to, const List& more) { to.insert(to.end(), more.begin(), more.end()); }

// A number that the program has from its begin, which is asked for anywhere: alone, as what holds
// it may be made in the loop.
bool is_of_program(Op op) {
  return op == Op::ProgramId || op == Op::NumPrograms || op == Op::AxisIndex || op == Op::AxisSize;
}

// Whether it can hold in any iteration; what always does is left out.
bool require(List& all, const IterationSum& s) {
  if (s.per_iteration != 0 || !s.addends.empty()) require_also(all, {s});
  return s.per_iteration != 0 || !s.addends.empty() || s.constant >= 0;
}

}  // namespace

void require_also(std::vector<IterationSum>& all, const std::vector<IterationSum>& more) {
  for (const IterationSum& s : more) {
    const auto same = std::ranges::find_if(all, [&](const IterationSum& other) {
      return other.per_iteration == s.per_iteration && other.addends == s.addends;
    });
    if (same == all.end())
      all.push_back(s);
    else
      same->constant = std::min(same->constant, s.constant);
  }
}

std::optional<Known> IterationBounds::of(ValueId condition, bool holds) {
  return of(condition, holds, 0);
}

std::optional<Known> IterationBounds::of(ValueId condition, bool holds, int depth) {
  const Inst& i = g_[condition];
  if (depth > deepest_bound) return {};
  // What is left for the next iteration may read there what this one keeps.
  if (const StorageId s = l_.storage_of[condition];
      s && !l_.storages[s].is_scalar() && number_.changing.contains(s))
    return {};
  switch (i.op) {
  case Op::Not: return of(i.args[0], !holds, depth + 1);
  case Op::Broadcast:
  case Op::Reshape:
  case Op::Transpose: return of(i.args[0], holds, depth + 1);
  case Op::And:
  case Op::Or: {
    auto a = of(i.args[0], holds, depth + 1), b = of(i.args[1], holds, depth + 1);
    // One is enough: that of which less is asked.
    if (holds == (i.op == Op::Or)) {
      if (!a || (b && b->sums.size() < a->sums.size())) std::swap(a, b);
      return a;
    }
    if (!a || !b) return {};
    a->conditions.insert(a->conditions.end(), b->conditions.begin(), b->conditions.end());
    require_also(a->sums, b->sums);
    return a;
  }
  default: return is_comparison(i.op) ? compared(condition, holds) : std::nullopt;
  }
}

// As the larger side minus the smaller one, which is not negative, or less by one.
std::optional<Known> IterationBounds::compared(ValueId comparison, bool holds) {
  const Inst& i = g_[comparison];
  const bool first_is_larger = (i.op == Op::Gt || i.op == Op::Ge) == holds;
  const bool may_be_equal = (i.op == Op::Le || i.op == Op::Ge) == holds;
  const auto larger = range(i.args[first_is_larger ? 0 : 1], 0);
  const auto smaller = range(i.args[first_is_larger ? 1 : 0], 0);
  if (!larger || !smaller) return {};
  Known known{.conditions = {{comparison, holds}}};
  require_also(known.sums, larger->sums);
  require_also(known.sums, smaller->sums);
  for (IterationSum s : combined_sums(larger->least, smaller->largest, -1)) {
    if (!may_be_equal) --s.constant;
    if (!is_small(s) || !require(known.sums, s)) return {};
  }
  if (known.sums.size() > most_sums_known) return {};
  return known;
}

const std::optional<IterationBounds::Range>& IterationBounds::range(ValueId v, int depth) {
  const auto it = ranges_.find(v);
  if (it != ranges_.end()) return it->second;
  std::optional<Range> found = computed(v, depth);
  return ranges_[v] = std::move(found);
}

std::optional<IterationBounds::Range> IterationBounds::computed(ValueId v, int depth) {
  const Inst& i = g_[v];
  if (depth > deepest_bound || i.type.dtype != i32) return {};
  const auto one = [](const IterationSum& s) { return Range{{s}, {s}, {}}; };
  if (i.op == Op::Constant) return one({.constant = graph::to_int(i32, i.attr.bits)});
  if (is_number(v)) return one({.per_iteration = 1});
  if (i.type.shape.empty() && (is_of_program(i.op) || is_fixed(v)))
    return one({.addends = {{v, 1}}});
  switch (i.op) {
  case Op::Iota: {
    const std::int64_t size = i.type.shape[static_cast<std::size_t>(graph::iota_dimension(i))];
    return Range{{{}}, {{.constant = size - 1}}, {}};
  }
  case Op::Broadcast:
  case Op::Reshape:
  case Op::Transpose:
  case Op::Slice:
  case Op::MultipleOf:
  case Op::MaxContiguous: return range(i.args[0], depth + 1);
  case Op::Add:
  case Op::Sub:
  case Op::Mul:
  case Op::Max:
  case Op::Min: return combined(i, depth);
  default: return {};
  }
}

std::optional<IterationBounds::Range> IterationBounds::combined(const Inst& i, int depth) {
  const auto a = range(i.args[0], depth + 1), b = range(i.args[1], depth + 1);
  if (!a || !b) return {};
  Range r{.least = {}, .largest = {}, .sums = a->sums};
  require_also(r.sums, b->sums);
  if (i.op == Op::Max || i.op == Op::Min) {
    // The one side is that of both, the other that of either.
    r.least = a->least;
    r.largest = a->largest;
    if (i.op == Op::Min) append(r.least, b->least);
    if (i.op == Op::Max) append(r.largest, b->largest);
  } else if (i.op == Op::Mul) {
    const auto constant = [&](std::size_t k) {
      ValueId v = i.args[k];
      while (g_[v].op == Op::Broadcast) v = g_[v].args[0];
      return g_[v].op == Op::Constant ? std::optional(graph::to_int(i32, g_[v].attr.bits))
                                      : std::nullopt;
    };
    const auto by = constant(1) ? constant(1) : constant(0);
    if (!by || std::abs(*by) > largest_factor) return {};
    const Range& of = constant(1) ? *a : *b;
    for (const IterationSum& s : of.least)
      (*by < 0 ? r.largest : r.least).push_back(scaled(s, *by));
    for (const IterationSum& s : of.largest)
      (*by < 0 ? r.least : r.largest).push_back(scaled(s, *by));
  } else {
    const bool subtracts = i.op == Op::Sub;
    r.least = combined_sums(a->least, subtracts ? b->largest : b->least, subtracts ? -1 : 1);
    r.largest = combined_sums(a->largest, subtracts ? b->least : b->largest, subtracts ? -1 : 1);
  }
  if (r.least.size() > most_sums || r.largest.size() > most_sums) return {};
  if (i.op == Op::Max || i.op == Op::Min) return r;
  for (const IterationSum& s : r.least)
    if (!is_small(s) || !require(r.sums, plus(s, {.constant = -std::int64_t{INT32_MIN}})))
      return {};
  for (const IterationSum& s : r.largest)
    if (!is_small(s) || !require(r.sums, plus({.constant = INT32_MAX}, scaled(s, -1)))) return {};
  return r;
}

bool IterationBounds::is_number(ValueId v) const {
  if (v == number_.index) return true;
  const Inst& i = g_[v];
  if (i.op != Op::ProgramId && i.op != Op::AxisIndex) return false;
  const graph::AxisView asked = graph::AxisView::of(i);
  return number_.axis >= 0 && asked.kind == graph::AxisKind::grid && asked.axis == number_.axis;
}

// Whether a scalar is known before the loop: it is kept there, or computed of what is.
bool IterationBounds::is_fixed(ValueId v, int depth) {
  if (const auto it = fixed_.find(v); it != fixed_.end()) return it->second;
  const Inst& i = g_[v];
  bool& fixed = fixed_[v] = false;
  if (depth > deepest_bound || is_number(v) || !i.type.is_scalar()) return false;
  if (number_.is_made_before && number_.is_made_before(v)) return fixed = true;
  if (const StorageId s = l_.storage_of[v]) return fixed = !number_.changing.contains(s);
  const graph::OpClass kind = graph::info(i.op).op_class;
  if (kind != graph::OpClass::leaf && kind != graph::OpClass::elementwise) return false;
  return fixed = std::ranges::all_of(i.args, [&](ValueId a) { return is_fixed(a, depth + 1); });
}

}  // namespace palladium::passes
