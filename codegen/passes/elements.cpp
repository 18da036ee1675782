// Expressions of one element: inlined operations, reads of storages and of memory.
#include <bit>
#include <cmath>
#include <utility>

#include "codegen/base/reciprocal.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/rounding.hpp"
#include "codegen/passes/signs.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {

using device::Row;
using graph::Inst;
using graph::MemoryView;
using graph::Op;
using thread::Address;
using thread::Affine;
using thread::Bound;
using thread::Bounds;
using thread::ExprId;
using thread::no_expr;
using thread::Operator;

namespace {

// Keys of what is read from storages, apart from those of values.
constexpr std::uint32_t first_storage = 1u << 31;

}  // namespace

std::int64_t elements_in_text(const LoopNest& p) {
  std::int64_t elements = std::int64_t{1} << p.layout.reg.size();
  for (int d = 0; d < p.layout.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    const bool rolled = at < p.rolled.size() && p.rolled[at] > 0;
    elements *= rolled ? p.rolled[at] : p.layout.repetitions(d);
  }
  return elements;
}

Elements::Key Elements::key_of(std::uint32_t what, const Coordinates& c) {
  Key key{what};
  for (const Affine& a : c) key.push_back(thread::index(e_.sum(a)));
  return key;
}

ExprId Elements::named(ValueId v, ExprId value) {
  const bool reused = l_.uses[v] > 1;
  const thread::Node node = e_[value].node;
  const bool plain = node == thread::Node::variable || node == thread::Node::literal ||
                     node == thread::Node::element;
  if (plain || (!reused && e_.size(value) <= most_operations)) return value;
  return temporary("x", value);
}

// Expressions may be as deep as a kernel has operations: no recursion.
ExprId Elements::evaluate(ValueId v, const Coordinates& c, const DimMap& map, bool enter) {
  std::vector<Pending> stack{{v, c, map, enter}};
  for (;;) {
    Pending operand;
    ExprId value = no_expr;
    if (next_operand(stack.back(), operand, value)) {
      operand.partial |= stack.back().partial;
      stack.push_back(std::move(operand));
      continue;
    }
    stack.pop_back();
    if (stack.empty()) return value;
    stack.back().operands.push_back(value);
  }
}

// The operand that `p` needs next; false where it needs none and has a value.
bool Elements::next_operand(Pending& p, Pending& operand, ExprId& value) {
  const Inst& i = g_[p.v];
  const bool reused = l_.uses[p.v] > 1;
  if (p.operands.empty() && i.type.dtype.is_bool())
    if (const std::optional<bool> holds = known(p.v)) {
      value = e_.literal(bool_, *holds ? 1 : 0);
      return false;
    }
  if (p.operands.empty()) {
    if (!p.enter && l_.storage_of[p.v]) {
      value = read(l_.storage_of[p.v], p.c, p.map, p.partial);
      return false;
    }
    if (const auto it = quotients_.find(p.v); it != quotients_.end() && p.c == coordinates_) {
      value = it->second;
      return false;
    }
    if (reused) {
      const auto it = memo_.find(key_of(index(p.v), p.c));
      if (it != memo_.end()) {
        value = it->second;
        return false;
      }
    }
  }
  if (p.operands.empty() && holds_before_end(p.v, p.c)) {
    value = e_.literal(bool_, 1);
    return false;
  }
  if (p.operands.empty() && holds_if_whole(p.v, p.c)) {
    has_conditions_ |= !nest_->whole;
    if (conditions_hold_) {
      value = e_.literal(bool_, 1);
      return false;
    }
  }
  const auto want = [&](ValueId v, Coordinates c, DimMap map) {
    operand = {v, std::move(c), std::move(map)};
    return true;
  };
  switch (i.op) {
  case Op::Load:
  case Op::Swap: return next_of_load(p, operand, value);
  case Op::Broadcast:
  case Op::Transpose:
  case Op::Reshape:
    if (p.operands.empty() && i.op == Op::Reshape && !p.partial)
      if (value = halves_together(p.v, p.c, i.type.dtype); value != no_expr) return false;
    if (p.operands.empty())
      return want(i.args[0], operand_coordinates(p.v, 0, p.c), map_of_operand(g_, p.v, 0, p.map));
    value = p.operands[0];
    if (reused) memo_[key_of(index(p.v), p.c)] = value;
    return false;
  case Op::Slice:
  case Op::Concatenate:
  case Op::DynamicSlice:
  case Op::DynamicUpdateSlice:
  case Op::TakeAlong:
    if (next_of_move(p, operand, value)) return true;
    if (reused) memo_[key_of(index(p.v), p.c)] = value;
    return false;
  default: break;
  }
  if (!graph::is_elementwise(i.op)) {
    value = leaf(p.v, p.c);
    return false;
  }
  if (p.operands.empty() && i.op == Op::Cast && !l_.storage_of[i.args[0]] && !p.partial)
    if (value = halves_together(i.args[0], p.c, i.type.dtype); value != no_expr) return false;
  if (p.operands.empty()) p.addends = addends_of(p.v);
  const std::vector<ValueId>& wanted = p.addends.empty() ? i.args : p.addends;
  if (p.operands.size() < wanted.size()) return want(wanted[p.operands.size()], p.c, p.map);
  if (graph::is_hint(i.op))
    value = hinted(p);
  else if (!p.addends.empty())
    value = named(p.v, sum_of(p.v, std::move(p.operands)));
  else
    value = named(p.v, operation(i, p.c, hoisted(std::move(p.operands))));
  if (reused) memo_[key_of(index(p.v), p.c)] = value;
  return false;
}

namespace {

// Of a power of two, which gives the same as a factor.
std::optional<float> exact_inverse(double x) {
  int exponent = 0;
  if (std::abs(std::frexp(x, &exponent)) != 0.5 || std::abs(exponent) > 120) return {};
  return static_cast<float>(1 / x);
}

}  // namespace

// Of the element at `c` of an operation's operands.
Holding Elements::holding(const Inst& i, const Coordinates& c) {
  return [this, &i, &c](ValueId condition) {
    return g_[condition].type.shape == i.type.shape && holds_before_end(condition, c);
  };
}

ExprId Elements::near_operation(const Inst& i, ExprId operand) {
  if ((i.op != Op::Logistic && i.op != Op::Exp) || i.type.dtype != f32 || g_.approx_math)
    return no_expr;
  if (rounded_.empty()) rounded_ = rounded_to_16_bits(l_);
  if (!rounded_[static_cast<std::size_t>(&i - g_.insts.data())]) return no_expr;
  if (i.op == Op::Logistic) return e_.call(Row::logistic_approx, f32, {operand});
  const ExprId log2e = e_.literal(f32, std::bit_cast<std::uint32_t>(0x1.715476p+0f));
  return e_.call(Row::exp2_approx, f32, {e_.op(Op::Mul, f32, {operand, log2e})});
}

// An elementwise operation, by the function that does no more than its operands ask.
ExprId Elements::operation(const Inst& i, const Coordinates& c, std::vector<ExprId> operands) {
  if (const ExprId known = folded(i, operands); known != no_expr) return known;
  if (i.op == Op::Cast)
    if (const ExprId all = cast_together(i.type.dtype, operands[0]); all != no_expr) return all;
  if (const ExprId near = near_operation(i, operands.empty() ? no_expr : operands[0]);
      near != no_expr)
    return near;
  if (i.op == Op::Exp && !g_.approx_math && passes::is_nonpositive(g_, i.args[0], holding(i, c)))
    return e_.call(Row::exp_nonpositive, i.type.dtype, std::move(operands));
  if (i.op == Op::Div && i.type.dtype == f32 && !g_.approx_math &&
      e_[operands[1]].node == thread::Node::literal) {
    const double by = graph::to_double(f32, static_cast<std::uint64_t>(e_[operands[1]].number));
    if (const auto inverse = exact_inverse(by)) {
      operands[1] = e_.literal(f32, std::bit_cast<std::uint32_t>(*inverse));
      return e_.op(Op::Mul, f32, std::move(operands));
    }
    if (by != 0 && std::isfinite(by)) {
      operands.push_back(e_.literal(f64, std::bit_cast<std::uint64_t>(above_reciprocal(by))));
      return e_.call(Row::div_by, f32, std::move(operands));
    }
  }
  if (divides_by_count(g_, i)) {
    const auto by = symbol_counted(g_, i.args[1]);
    const ExprId inverse = by ? reciprocal(*by) : thread::no_expr;
    if (inverse == thread::no_expr) return e_.call(Row::div_by_count, f32, std::move(operands));
    operands.push_back(inverse);
    return e_.call(Row::div_by, f32, std::move(operands));
  }
  return e_.op(i.op, i.type.dtype, std::move(operands));
}

ExprId Elements::leaf(ValueId v, const Coordinates& c) {
  const Inst& i = g_[v];
  if (i.op == Op::Constant) return e_.literal(i.type.dtype, i.attr.bits);
  if (i.op == Op::Iota)
    return coordinate_value(c[static_cast<std::size_t>(graph::iota_dimension(i))], i.type.dtype);
  return scalar_leaf(v);
}

ExprId Elements::coordinate_value(const Affine& c, DType t) {
  const ExprId sum = e_.sum(c);
  return t == i32 ? sum : e_.call(Row::to, t, {sum}, true);
}

// ---- coordinates

// What several accesses ask for is computed once.
Affine Elements::chosen_index(ValueId v, const Coordinates& c, const DimMap& map) {
  if (const auto sum = sums_.of(v, c)) return *sum;
  const Key key = key_of(index(v), c);
  const auto it = memo_.find(key);
  if (it != memo_.end()) return named_index(it->second);
  const bool outer = std::exchange(storing_, false);
  const ExprId value = evaluate(v, c, map, false);
  storing_ = outer;
  memo_[key] = value;
  return named_index(value);
}

Coordinates Elements::operand_coordinates(ValueId v, std::size_t arg, const Coordinates& c) {
  const Inst& i = g_[v];
  const Extents& operand = g_[i.args[arg]].type.shape;
  Coordinates out(operand.size());
  if (i.op == Op::Broadcast) {
    for (std::size_t d = 0; d < operand.size(); ++d)
      if (operand[d] != 1) out[d] = c[static_cast<std::size_t>(graph::dimensions(i)[d])];
  } else if (i.op == Op::Transpose) {
    for (std::size_t d = 0; d < operand.size(); ++d)
      out[static_cast<std::size_t>(graph::dimensions(i)[d])] = c[d];
  } else {
    return reshape_coordinates(operand, i.type.shape, c);
  }
  return out;
}

// ---- reads

StorageId Elements::copy_of(StorageId storage, const DimMap& map) const {
  for (const auto& [from, copy] : *redirects_)
    if (from == storage && copy.map == map) return copy.storage;
  return storage;
}

ExprId Elements::read(StorageId storage, const Coordinates& c, const DimMap& map, bool partial) {
  storage = copy_of(storage, map);
  const Storage& s = l_.storages[storage];
  if (!s.in_shared()) return held_value(storage, lowered::without_slices(map));
  const Key key = key_of(first_storage + static_cast<std::uint32_t>(storage.number()), c);
  if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
  if (!partial)
    if (const ExprId element = in_matrices(storage, map); element != no_expr)
      return memo_[key] = element;
  Address a = storage_address(storage, c);
  if (s.shared().skewed) {
    Coordinates row = c;
    row.back() = Affine();
    a.skew = skew_of(address(g_[s.of].args[0], row, map));
  }
  if (partial) add_range(a.bounds, c, s.shape);
  return memo_[key] = access(a, map, no_expr);
}

ExprId Elements::in_registers(ValueId v) {
  if (const auto it = quotients_.find(v); it != quotients_.end()) return it->second;
  const StorageId storage = l_.storage_of[v];
  if (!storage || !l_.storages[copy_of(storage, all_dimensions())].in_registers()) return no_expr;
  return held_value(copy_of(storage, all_dimensions()), all_dimensions());
}

Address Elements::store_address(ValueId ref) {
  storing_ = true;
  Address a = address(ref, coordinates_, all_dimensions());
  storing_ = false;
  return a;
}

// The mask comes first, then the access, then what stands in where the mask does not hold.
bool Elements::next_of_load(Pending& p, Pending& operand, ExprId& value) {
  const Inst& i = g_[p.v];
  const MemoryView m = MemoryView::of(i);
  const bool masked = m.mask != graph::no_value;
  if (masked && p.operands.empty()) {
    operand = {m.mask, p.c, p.map};
    return true;
  }
  const ExprId mask = masked ? p.operands[0] : no_expr;
  if (p.operands.size() <= 1) {
    value = load(p, mask);
    const ValueId other = i.op == Op::Swap ? m.value : m.other;
    if (masked && other != graph::no_value) {
      p.got = value;
      operand = {other, p.c, p.map};
      return true;
    }
  } else {
    value = temporary("x", e_.choose(mask, p.got, p.operands[1]));
  }
  memo_[key_of(index(p.v), p.c)] = value;
  return false;
}

ExprId Elements::load(const Pending& p, ExprId mask) {
  const ValueId ref = g_[p.v].args[0];
  if (l_.windows[l_.window_of[g_.base(ref)]].residency() == Residency::registers)
    return load_registers(p);
  Address a = address(ref, p.c, p.map);
  if (p.partial) {
    Bounds range;
    add_range(range, p.c, g_[p.v].type.shape);
    a.bounds.insert(a.bounds.end(), range.begin(), range.end());
    for (Address& part : a.parts) part.bounds.insert(part.bounds.end(), range.begin(), range.end());
  }
  return access(a, p.map, mask);
}

// A block in registers: what the user stored there as far as the array reaches.
ExprId Elements::load_registers(const Pending& p) {
  const WindowId window = l_.window_of[g_.base(g_[p.v].args[0])];
  const Window& w = l_.windows[window];
  const ExprId got = read(w.storage(), p.c, p.map, p.partial);
  if (w.mapping < 0 || l_.storages[w.storage()].is_scalar()) return got;
  Bounds bounds;
  add_bounds_of_block(bounds, window, p.c);
  const ExprId exists = predicate(bounds);
  if (exists == no_expr) return got;
  const DType t = g_[p.v].type.dtype;
  const auto fill = graph::fill_as(g_.mapping.block_mappings[w.mapping], t);
  const ExprId outside = fill ? e_.literal(t, *fill) : e_.call(Row::out_of_bounds, t, {}, true);
  return temporary("x", e_.choose(exists, got, outside));
}

}  // namespace palladium::passes
