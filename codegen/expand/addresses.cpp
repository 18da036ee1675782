// Where the elements of a view stand in memory.
#include <algorithm>
#include <numeric>
#include <utility>

#include "codegen/base/format.hpp"
#include "codegen/expand/nest.hpp"
#include "palladium/error.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::Op;
using passes::Residency;
using passes::Storage;
using passes::Window;

namespace {

bool is_apart(const Affine& from, const Affine& to, std::int64_t distance) {
  const Affine difference = to + from * -1;
  return difference.is_constant() && difference.constant() == distance;
}

}  // namespace

DType unsigned_of(int bytes) { return bytes == 1 ? u8 : bytes == 2 ? u16 : bytes == 4 ? u32 : u64; }

void Nest::see_as(Address& a, DType t) {
  if (!(a.dtype == t) && !a.shared) a.base = e_.reinterpret(t, a.base);
  a.dtype = t;
}

// The parts as one element, if they are neighbours that are aligned, and in or out of bounds,
// together.
bool Nest::join(const std::vector<Address>& parts, DType whole, Address& result) {
  const auto n = static_cast<std::int64_t>(parts.size());
  const Address& first = parts[0];
  if (first.alignment % n != 0 || !first.offset.divides(n)) return false;
  result = first;
  result.offset = first.offset.quotient(n);
  result.alignment = first.alignment / n;
  for (std::size_t b = 0; b < first.bounds.size(); ++b) {
    const Bound& bound = first.bounds[b];
    const bool along = !is_apart(bound.at, parts[1].bounds[b].at, 0);
    for (std::int64_t k = 1; k < n; ++k)
      if (!is_apart(bound.at, parts[static_cast<std::size_t>(k)].bounds[b].at, along ? k : 0))
        return false;
    if (!along) continue;
    if (bound.lower || multiple_of(bound.limit) % n != 0 || !bound.at.divides(n)) return false;
    result.bounds[b] = {bound.at.quotient(n), e_.plain(Operator::div, bound.limit, e_.number(n))};
  }
  for (std::int64_t k = 1; k < n; ++k)
    if (!is_apart(first.offset, parts[static_cast<std::size_t>(k)].offset, k)) return false;
  see_as(result, whole);
  return true;
}

Address Nest::address(ValueId ref, const Coordinates& c) {
  const DType whole = g_[ref].type.dtype;
  DType part = whole;  // the narrowest of the chain
  for (ValueId v = ref;; v = g_[v].args[0]) {
    const int bytes = g_[v].type.dtype.bytes();
    if (bytes < part.bytes()) part = unsigned_of(bytes);
    if (g_[v].op == Op::Param) break;
  }
  if (part == whole) return part_address(ref, c, 0, whole);
  std::vector<Address> parts;
  for (int k = 0; k < whole.bytes() / part.bytes(); ++k)
    parts.push_back(part_address(ref, c, k, part));
  Address a;
  if (join(parts, whole, a)) return a;
  a = parts[0];
  a.bounds.clear();
  a.dtype = whole;
  a.parts = std::move(parts);
  return a;
}

// Where the k-th part with the size of `t` stands in the element at `c`, seen as a `t`.
Address Nest::part_address(ValueId ref, Coordinates c, Affine k, DType t) {
  for (; g_[ref].op != Op::Param; ref = g_[ref].args[0]) step_into(ref, c, k, t);
  const int w = l_.window_of[index(ref)];
  const bool resident = l_.windows[w].residency != Residency::direct;
  Address a = resident ? storage_address(l_.windows[w].storage, c) : window_address(w, c);
  a.resident = resident && !storing_;
  // What is stored beyond the array does no harm: it is neither read nor flushed.
  if (a.resident) add_bounds_of_window(a.bounds, w, c);
  const int parts = a.dtype.bytes() / t.bytes();
  if (parts != 1) {
    a.offset = a.offset * parts + k;
    a.alignment *= parts;
    a.wide = a.wide || a.reach >= (std::int64_t{1} << 31) / parts;
  }
  see_as(a, t);
  return a;
}

// From a place in a view to that in what it is a view of.
void Nest::step_into(ValueId ref, Coordinates& c, Affine& k, DType t) {
  const Inst& view = g_[ref];
  const graph::Type& from = g_[view.args[0]].type;
  switch (view.op) {
  case Op::At: {
    Coordinates inner;
    std::size_t next = 0, operand = 1;
    for (const graph::SubscriptDim& d : graph::Subscript::of(view).dims) {
      Affine x = d.is_slice ? c[next++] * d.stride : Affine(0);
      if (d.dynamic) {
        x = x + e_.affine(evaluate(view.args[operand++], {}, {}, false));
        const int dimension = static_cast<int>(inner.size());
        if (found_indices_ != nullptr)
          found_indices_->push_back({ref, dimension, x, from.shape[inner.size()]});
      } else {
        x = x + Affine(d.start);
      }
      inner.push_back(x);
    }
    c = std::move(inner);
    return;
  }
  case Op::RefTranspose: {
    Coordinates inner(c.size());
    for (std::size_t d = 0; d < c.size(); ++d)
      inner[static_cast<std::size_t>(graph::dimensions(view)[d])] = c[d];
    c = std::move(inner);
    return;
  }
  case Op::RefReshape: c = reshape_coordinates(from.shape, view.type.shape, c); return;
  case Op::RefBitcast: {
    const int wide = from.dtype.bytes(), narrow = view.type.dtype.bytes();
    if (wide == narrow) return;
    const Affine part = c.back() * (narrow / t.bytes()) + k;
    c.back() = divided(part, wide / t.bytes());
    k = part + c.back() * -(wide / t.bytes());
    return;
  }
  default: break;
  }
  throw InternalError(fmt::format("expand: '{}' is not a view", graph::info(view.op).name));
}

// The quotient, rounded down, of what is not negative.
Affine Nest::divided(const Affine& a, std::int64_t by) {
  if (by == 1) return a;
  Affine whole(a.constant() / by), rest(a.constant() % by);
  for (const Affine::Term& t : a.terms()) {
    const bool exact = t.coefficient % by == 0;
    Affine& to = exact ? whole : rest;
    to = to + Affine::term(t.of, exact ? t.coefficient / by : t.coefficient);
  }
  if (rest.is_constant()) return whole;
  return whole + index_name(e_.plain(Operator::div, e_.sum(rest), e_.number(by)));
}

Address Nest::window_address(int window, const Coordinates& c) {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const Expander::WindowNames& names = x_.windows_[static_cast<std::size_t>(window)];
  const int rank = m.array_aval.shape.rank();
  Address a{.base = names.pointer,
            .alignment = std::max(1, m.alignment / m.array_aval.dtype.bytes()),
            .read_only = w.read_only,
            .writable = w.stored,
            .dtype = m.array_aval.dtype};
  Coordinates at(static_cast<std::size_t>(rank));
  std::size_t next = 0;
  for (int d = 0; d < rank; ++d)
    if (m.block_shape[d].kind != BlockDim::Kind::squeezed)
      at[static_cast<std::size_t>(d)] = c[next++];

  Dim stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const BlockDim& b = m.block_shape[d];
    const Affine& x = at[static_cast<std::size_t>(d)];
    const ExprId step = d + 1 == rank ? e_.number(1, i64)
                        : m.dense     ? x_.dim(stride)
                                      : e_.variable(x_.strides_.at({w.mapping, d}));
    const thread::Facts known = e_.facts(step);  // copied: expressions are made below
    if (known.low == known.high) {
      a.offset = a.offset + x * known.low;
      a.reach += b.size * known.low;
    } else if (!x.is_zero() && g_.short_offsets) {
      a.offset = a.offset + Affine::term(e_.plain(Operator::mul, e_.sum(x), e_.cast(i32, step)));
      a.reach = INT32_MAX;
    } else if (!x.is_zero()) {
      a.offset =
          a.offset + Affine::term(e_.plain(Operator::mul, e_.cast(i64, e_.sum(x)), step, i64));
      a.wide = true;
    }
    const std::int64_t start = b.kind == BlockDim::Kind::blocked ? b.size : 1;
    if (!names.at_zero[static_cast<std::size_t>(d)])
      a.alignment = std::gcd(a.alignment, start * known.multiple);
    stride = stride * m.array_aval.shape[d];
  }
  add_bounds_of_window(a.bounds, window, c);
  if (a.reach >= std::int64_t{1} << 31) a.wide = true;
  return a;
}

// Tests, dimension by dimension, whether the element at `c` of a block lies in its array.
void Nest::add_bounds_of_window(Bounds& bounds, int window, const Coordinates& c) const {
  const Window& w = l_.windows[window];
  if (w.mapping < 0) return;
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const Expander::WindowNames& names = x_.windows_[static_cast<std::size_t>(window)];
  std::size_t next = c.size();
  for (std::size_t d = m.block_shape.size(); d-- > 0;) {
    const bool squeezed = m.block_shape[d].kind == BlockDim::Kind::squeezed;
    const Affine at = squeezed ? Affine() : c[--next];
    if (names.size[d] != no_expr) bounds.push_back({at, names.size[d]});
    if (names.from[d] != no_expr) bounds.push_back({at, names.from[d], true});
  }
}

Address Nest::storage_address(int storage, const Coordinates& c) {
  const Storage& s = l_.storages[storage];
  Address a{.base = x_.shared_address(storage),
            .alignment = 16 / s.dtype.bytes(),
            .shared = true,
            .writable = true,
            .dtype = s.dtype};
  std::int64_t stride = 1;
  for (std::size_t d = s.shape.size(); d-- > 0;) {
    a.offset = a.offset + c[d] * stride;
    stride = d + 1 == s.shape.size() ? s.row_stride : stride * s.shape[d];
  }
  return a;
}

// ---- dynamic indices

// Whether the views between `ref` and its root keep what is next to each other along a dimension.
bool Nest::is_plain(ValueId ref) const {
  for (ValueId v = ref; g_[v].op != Op::Param; v = g_[v].args[0]) {
    const graph::Type &to = g_[v].type, &from = g_[g_[v].args[0]].type;
    if (g_[v].op == Op::RefReshape || to.dtype.bytes() != from.dtype.bytes()) return false;
  }
  return true;
}

bool Nest::has_dynamic_index(ValueId ref) const {
  for (ValueId v = ref; g_[v].op != Op::Param; v = g_[v].args[0])
    if (g_[v].op == Op::At && g_[v].args.size() > 1) return true;
  return false;
}

// The dynamic indices that lead from the element at `c` of a view to its root.
std::vector<Nest::Index> Nest::find_indices(ValueId ref, const Coordinates& c) {
  std::vector<Index> found;
  std::vector<Index>* const outer = std::exchange(found_indices_, &found);
  address(ref, c);
  found_indices_ = outer;
  return found;
}

// A slice may leave its block and stay inside the array: a GPU then takes what it finds there.
void Nest::check_indices(ValueId access, const Coordinates& c, const DimMap& map, ExprId mask) {
  const ValueId ref = g_[access].args[0];
  if (!has_dynamic_index(ref)) return;
  const bool whole = mask == no_expr && is_plain(ref);
  Coordinates end;
  for (const std::int64_t extent : g_[ref].type.shape) end.emplace_back(extent - 1);
  const std::vector<Index> first = find_indices(ref, whole ? Coordinates(end.size()) : c);
  const std::vector<Index> last = whole ? find_indices(ref, end) : first;
  const ExprId test = whole ? no_expr : e_.all({mask, predicate(padding(map))});
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Index& x = first[i];
    const ExprId low = e_.sum(x.coordinate, i64), high = e_.sum(last[i].coordinate, i64);
    if (e_.facts(low).low >= 0 && e_.facts(high).high < x.extent) continue;
    if (!checked_.insert({low, high, x.extent, test}).second) continue;
    const Location at = g_.location(x.at);
    const Location outer = b_.at(at == Location{} ? b_.at() : at);
    b_.place(
        e_.depends(low) | e_.depends(high) | e_.depends(test),
        thread::CheckRange{low, high, x.extent,
                           fmt::format("{}: dimension {} of {}", graph::info(g_[access].op).name,
                                       x.dimension, graph::to_string(g_[g_[x.at].args[0]].type)),
                           test});
    b_.at(outer);
  }
}

}  // namespace palladium::expand
