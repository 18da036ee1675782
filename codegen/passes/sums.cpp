#include "codegen/passes/sums.hpp"

#include <algorithm>
#include <utility>

#include "codegen/graph/extents.hpp"

namespace palladium::passes {

using graph::Inst;
using graph::Op;
using thread::Affine;

namespace {

constexpr int deepest_sum = 12;  // operations between a value and what it is a sum of
constexpr std::size_t most_conditions = 16;

Affine minus(const Affine& a, const Affine& b) { return a + b * -1; }

bool holds(DType t, const thread::Facts& f) {
  const int bits = t.bits() - (t.is_signed() ? 1 : 0);
  if (!t.is_integer()) return false;
  if (bits >= 62) return f.low > INT64_MIN / 4 && f.high < INT64_MAX / 4;
  const std::int64_t most = (std::int64_t{1} << bits) - 1;
  return f.high <= most && f.low >= (t.is_signed() ? -most - 1 : 0);
}

}  // namespace

std::optional<Affine> Sums::checked(DType t, Affine sum) const {
  if (!holds(t, e_.facts(sum))) return {};
  return sum;
}

std::optional<Affine> Sums::of(ValueId v, const Coordinates& c) { return of(v, c, 0); }

std::optional<Affine> Sums::of(ValueId v, const Coordinates& c, int depth) {
  const Inst& i = g_[v];
  const DType t = i.type.dtype;
  if (depth > deepest_sum || !t.is_integer()) return {};
  const auto arg = [&](std::size_t k) { return of(i.args[k], c, depth + 1); };
  switch (i.op) {
  case Op::Constant: return checked(t, Affine(graph::to_int(t, i.attr.bits)));
  case Op::Iota: return checked(t, c[static_cast<std::size_t>(graph::iota_dimension(i))]);
  case Op::ProgramId: return Affine::term(program_id_(graph::AxisView::of(i).axis));
  case Op::DimValue: return Affine::term(symbol_(graph::symbol_of(i)));
  case Op::Param: {
    const auto it = std::ranges::find(map_params_, v);
    if (it == map_params_.end()) return {};
    return Affine::term(program_id_(static_cast<int>(it - map_params_.begin())));
  }
  case Op::Broadcast:
  case Op::Transpose: {
    const auto inner = of_operand(v, c);
    return inner ? of(i.args[0], *inner, depth + 1) : std::nullopt;
  }
  case Op::MultipleOf:
  case Op::MaxContiguous: return arg(0);
  case Op::Cast: {
    const auto x = arg(0);
    return x ? checked(t, *x) : std::nullopt;
  }
  case Op::Add:
  case Op::Sub:
  case Op::Mul: {
    const auto x = arg(0), y = arg(1);
    if (!x || !y) return {};
    if (i.op == Op::Add) return checked(t, *x + *y);
    if (i.op == Op::Sub) return checked(t, minus(*x, *y));
    if (y->is_constant()) return checked(t, *x * y->constant());
    return x->is_constant() ? checked(t, *y * x->constant()) : std::nullopt;
  }
  default: return {};
  }
}

std::optional<Coordinates> Sums::of_operand(ValueId v, const Coordinates& c) const {
  const Inst& i = g_[v];
  const Extents& operand = g_[i.args[0]].type.shape;
  Coordinates out(operand.size());
  for (std::size_t d = 0; d < operand.size(); ++d) {
    const auto to = static_cast<std::size_t>(graph::dimensions(i)[d]);
    if (i.op == Op::Transpose)
      out[to] = c[d];
    else if (operand[d] != 1)
      out[d] = c[to];
  }
  return out;
}

std::optional<Affine> Sums::start(const BlockMapping& m, int d) {
  const BlockDim& b = m.block_shape[d];
  if (b.kind == BlockDim::Kind::bounded_slice) return {};  // it ends where an index says
  if (m.index_map == no_region) return Affine(-b.pad_lo);
  const graph::Region& map = g_[graph::RegionId{m.index_map}];
  map_params_ = map.params;
  const std::optional<Affine> at = of(map.yields[static_cast<std::size_t>(d)], {}, 0);
  map_params_ = {};
  if (!at) return {};
  return *at * b.step() + Affine(-b.pad_lo);
}

void Sums::add(Affine sum, Conditions& found) const {
  if (e_.facts(sum).low >= 0) return;
  const auto same = [&](const Affine& other) { return minus(sum, other).is_zero(); };
  if (std::ranges::none_of(found, same)) found.push_back(std::move(sum));
}

std::optional<Sums::Conditions> Sums::of_condition(ValueId v, const Coordinates& c) {
  Conditions found;
  std::vector<std::pair<ValueId, Coordinates>> stack{{v, c}};
  while (!stack.empty()) {
    const auto [next, at] = std::move(stack.back());
    stack.pop_back();
    const Inst& i = g_[next];
    if (i.op == Op::Broadcast || i.op == Op::Transpose) {
      const auto inner = of_operand(next, at);
      if (!inner) return {};
      stack.emplace_back(i.args[0], *inner);
      continue;
    }
    if (i.op == Op::And && i.type.dtype.is_bool()) {
      for (const ValueId a : i.args) stack.emplace_back(a, at);
      if (stack.size() > most_conditions) return {};
      continue;
    }
    if (i.op != Op::Ge && i.op != Op::Gt && i.op != Op::Le && i.op != Op::Lt) return {};
    const auto x = of(i.args[0], at), y = of(i.args[1], at);
    if (!x || !y) return {};
    const Affine over = i.op == Op::Ge || i.op == Op::Gt ? minus(*x, *y) : minus(*y, *x);
    add(i.op == Op::Ge || i.op == Op::Le ? over : over + Affine(-1), found);
  }
  return found;
}

std::optional<Coordinates> Sums::in_block(ValueId view, Coordinates c) {
  for (; !g_.is_base(view); view = g_[view].args[0]) {
    const Inst& i = g_[view];
    Coordinates inner;
    if (i.op == Op::RefTranspose) {
      inner.resize(c.size());
      for (std::size_t d = 0; d < c.size(); ++d)
        inner[static_cast<std::size_t>(graph::dimensions(i)[d])] = c[d];
    } else if (i.op == Op::At) {
      const graph::Subscript s = graph::Subscript::of(i);
      const graph::Subscript::Chosen chosen = s.chosen(c.size());
      std::size_t next = chosen.first_of_slices(), operand = 1;
      for (const graph::SubscriptDim& d : s.dims) {
        std::optional<Affine> x(d.start);
        if (d.dynamic) x = of(i.args[operand++], d.array ? chosen.of(c) : Coordinates());
        if (!x) return {};
        inner.push_back(d.is_slice ? c[next] * d.stride + *x : *x);
        if (d.is_slice) next = chosen.next(next);
      }
    } else {
      return {};
    }
    c = std::move(inner);
  }
  return c;
}

std::optional<Affine> Sums::of_extent(const Dim& d) const {
  if (d.is_static()) return Affine(d.value());
  const DimNode node = dim_node(d);
  if (node.op != palladium::detail::DimOp::symbol) return {};
  return Affine::term(symbol_(node.symbol));
}

// That from `first` to `last` of a block along d all lies in its array.
bool Sums::add_bounds(const BlockMapping& m, int d, const Affine& first, const Affine& last,
                      Conditions& found) {
  const std::optional<Affine> start = this->start(m, d);
  const std::optional<Affine> extent = of_extent(m.array_aval.shape[d]);
  if (!start || !extent) return false;
  add(*start + first, found);
  add(minus(*extent + Affine(-1), *start + last), found);
  return true;
}

std::optional<Sums::Conditions> Sums::of_bounds(const Window& w, ValueId view,
                                                const Coordinates& c) {
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const auto at = in_block(view, c);
  if (!at) return {};
  Conditions found;
  std::size_t next = 0;
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    const bool squeezed = m.block_shape[d].kind == BlockDim::Kind::squeezed;
    const Affine x = squeezed ? Affine() : (*at)[next++];
    if (!w.in_bounds[d] && !add_bounds(m, static_cast<int>(d), x, x, found)) return {};
  }
  return found;
}

std::optional<Sums::Conditions> Sums::of_whole_block(const Window& w) {
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  Conditions found;
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    const std::int64_t size =
        m.block_shape[d].kind == BlockDim::Kind::squeezed ? 1 : m.block_shape[d].size;
    if (!w.in_bounds[d] && !add_bounds(m, static_cast<int>(d), {}, Affine(size - 1), found))
      return {};
  }
  return found;
}

bool Sums::follows(const Affine& sum, const Conditions& from) const {
  return e_.facts(sum).low >= 0 || std::ranges::any_of(from, [&](const Affine& known) {
           return e_.facts(minus(sum, known)).low >= 0;
         });
}

}  // namespace palladium::passes
