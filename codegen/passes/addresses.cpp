#include "codegen/passes/addresses.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {

using device::Row;
using graph::Inst;
using graph::Op;
using thread::Address;
using thread::Affine;
using thread::Bound;
using thread::Bounds;
using thread::ExprId;
using thread::Exprs;
using thread::no_expr;
using thread::Operator;

namespace {

// Elements of which one access may have some that nobody asked for.
constexpr std::int64_t most_together = 16;

bool is_apart(const Affine& from, const Affine& to, std::int64_t distance) {
  const Affine difference = to + from * -1;
  return difference.is_constant() && difference.constant() == distance;
}

// Of a coordinate the terms that change what it is modulo `by`, and the others.
std::pair<Affine, Affine> parted(const Exprs& e, const Affine& x, std::int64_t by) {
  Affine rest(x.constant() % by), whole(x.constant() - x.constant() % by);
  for (const Affine::Term& t : x.terms()) {
    Affine& to = t.coefficient * e.facts(t.of).multiple % by == 0 ? whole : rest;
    to = to + Affine::term(t.of, t.coefficient);
  }
  return {rest, whole};
}

// The terms that threads change, and what loops count.
std::pair<Affine, Affine> of_threads_and_loops(const Exprs& e, const Affine& x) {
  Affine threads, loops(x.constant());
  for (const Affine::Term& t : x.terms()) {
    Affine& to = (e.depends(t.of) & thread::on_thread) != 0 ? threads : loops;
    to = to + Affine::term(t.of, t.coefficient);
  }
  return {threads, loops};
}

// Whether the sum of the two is their exclusive or: no bit is in both.
bool is_apart_in_bits(const Exprs& e, const Affine& a, const Affine& b) {
  const thread::Facts x = e.facts(a), y = e.facts(b);
  const auto below = [](const thread::Facts& low, const thread::Facts& high) {
    return high.multiple == 0 || low.high < (high.multiple & -high.multiple);
  };
  return x.low >= 0 && y.low >= 0 && (below(x, y) || below(y, x));
}

// The place that 16 bytes of a row change by, in elements: of rows that change places alike, in
// groups of a power of two, the groups count.
ExprId moved_by_row(Exprs& e, const Affine& row, const Shared& s, std::int64_t each) {
  constexpr std::int64_t places = 8;
  const int shift = std::countr_zero(static_cast<unsigned>(s.rows_alike));
  const ExprId place =
      e.bits(e.sum(row), (places - (places >> s.row_swizzle)) << shift, 3 - s.row_swizzle + shift);
  return e.plain(Operator::mul, place, e.number(each));
}

// Of a row what decides which place its 16 bytes have.
Affine row_in_turn(const Exprs& e, const Affine& row, const Shared& s) {
  const Affine in_turn = parted(e, row, 8 * s.rows_alike).first;
  const auto [inside, groups] = parted(e, in_turn, s.rows_alike);
  const thread::Facts known = e.facts(inside);
  return known.low >= 0 && known.high < s.rows_alike ? groups : in_turn;
}

// Where in its row a column stands: 16 bytes, of so many elements each, change places. What loops
// count is kept apart: it is a constant of each turn.
Affine swizzled(Exprs& e, const Affine& row, const Affine& column, const Shared& s,
                std::int64_t each) {
  const Affine in_turn = row_in_turn(e, row, s);
  if (in_turn.is_zero()) return column;
  // What counts the elements of 16 bytes, or of less that stays together, moves with them.
  std::int64_t together = each;
  auto [inside, whole] = parted(e, column, together);
  const auto is_inside = [&] {
    const thread::Facts known = e.facts(inside);
    return known.low >= 0 && known.high < together;
  };
  while (!is_inside() && together > 1) {
    together /= 2;
    std::tie(inside, whole) = parted(e, column, together);
  }
  // Chunks by which no row changes places.
  const auto [near, far] = parted(e, whole, each << s.row_swizzle);
  const auto exclusive = [&](const Affine& place, const Affine& turn) {
    if (turn.is_zero()) return e.sum(place);
    const ExprId moved = moved_by_row(e, turn, s, each);
    return place.is_zero() ? moved : e.plain(Operator::bit_xor, e.sum(place), moved);
  };
  const auto [near_thread, near_loop] = of_threads_and_loops(e, near);
  const auto [turn_thread, turn_loop] = of_threads_and_loops(e, in_turn);
  const bool has_both = !(near_thread.is_zero() && turn_thread.is_zero()) &&
                        !(near_loop.is_zero() && turn_loop.is_zero());
  if (!has_both || !is_apart_in_bits(e, near_thread, near_loop) ||
      !is_apart_in_bits(e, turn_thread, turn_loop))
    return Affine::term(exclusive(near, in_turn)) + far + inside;
  const ExprId thread = exclusive(near_thread, turn_thread);
  return Affine::term(e.plain(Operator::bit_xor, thread, exclusive(near_loop, turn_loop))) + far +
         inside;
}

Affine flat(const Extents& shape, const Coordinates& c) {
  Affine sum;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    sum = sum + c[d] * stride;
    stride *= shape[d];
  }
  return sum;
}

}  // namespace

DType unsigned_of(int bytes) { return bytes == 1 ? u8 : bytes == 2 ? u16 : bytes == 4 ? u32 : u64; }

void Addresses::see_as(Address& a, DType t) {
  if (!(a.dtype == t) && !a.shared) {
    if (a.first != no_expr) a.base = e_.address(e_[a.base].variable, a.first);
    a.first = no_expr;
    a.base = e_.reinterpret(t, a.base);
  }
  a.dtype = t;
}

// The parts as one element, if they are neighbours that are aligned, and in or out of bounds,
// together.
bool Addresses::join(const std::vector<Address>& parts, DType whole, Address& result) {
  const auto n = static_cast<std::int64_t>(parts.size());
  const Address& first = parts[0];
  if (first.alignment % n != 0 || !first.offset.divides(n)) return false;
  result = first;
  result.offset = first.offset.quotient(n);
  result.alignment = first.alignment / n;
  result.together = std::max(std::int64_t{1}, first.together / n);
  for (std::size_t b = 0; b < first.bounds.size(); ++b) {
    const Bound& bound = first.bounds[b];
    const bool along = !is_apart(bound.at, parts[1].bounds[b].at, 0);
    for (std::int64_t k = 1; k < n; ++k)
      if (!is_apart(bound.at, parts[static_cast<std::size_t>(k)].bounds[b].at, along ? k : 0))
        return false;
    if (!along) continue;
    if (bound.lower || e_.facts(bound.limit).multiple % n != 0 || !bound.at.divides(n))
      return false;
    result.bounds[b] = {bound.at.quotient(n), e_.plain(Operator::div, bound.limit, e_.number(n))};
  }
  for (std::int64_t k = 1; k < n; ++k)
    if (!is_apart(first.offset, parts[static_cast<std::size_t>(k)].offset, k)) return false;
  see_as(result, whole);
  return true;
}

Address Addresses::address(ValueId ref, const Coordinates& c, const DimMap& map) {
  const DType whole = g_[ref].type.dtype;
  DType part = whole;  // the narrowest of the chain
  for (ValueId v = ref;; v = g_[v].args[0]) {
    const int bytes = g_[v].type.dtype.bytes();
    if (bytes < part.bytes()) part = unsigned_of(bytes);
    if (g_.is_base(v)) break;
  }
  const WindowId window = l_.window_of[g_.base(ref)];
  Address a;
  if (part == whole) {
    a = part_address(ref, c, map, 0, whole);
  } else {
    std::vector<Address> parts;
    for (int k = 0; k < whole.bytes() / part.bytes(); ++k)
      parts.push_back(part_address(ref, c, map, k, part));
    if (!join(parts, whole, a)) {
      a = parts[0];
      a.bounds.clear();
      a.dtype = whole;
      a.parts = std::move(parts);
    }
  }
  set_outside(a, window);
  return a;
}

// A copy in shared memory holds what fills it.
void Addresses::set_outside(Address& a, WindowId window) {
  const int mapping = l_.windows[window].mapping;
  if (mapping < 0 || a.staged) return;
  const auto bits = graph::fill_as(g_.mapping.block_mappings[mapping], a.dtype);
  if (!bits) return;
  a.outside = e_.literal(a.dtype, *bits);
  for (Address& part : a.parts) set_outside(part, window);
}

// Where the k-th part with the size of `t` stands in the element at `c`, seen as a `t`.
Address Addresses::part_address(ValueId ref, Coordinates c, DimMap map, Affine k, DType t) {
  ValueId block = graph::no_value;
  for (; !g_.is_base(ref); ref = g_[ref].args[0]) {
    if (g_[ref].op == Op::RefPeer) block = g_[ref].args[1];
    step_into(ref, c, map, k, t);
    map = map_of_operand(g_, ref, 0, map);
  }
  const WindowId w = l_.window_of[ref];
  const Window& window = l_.windows[w];
  const bool staged = window.is_staged();
  const bool resident = !staged && !window.is_direct();
  if (staged) c.back() = c.back() + Affine(window.staged().lead);
  Address a = resident || staged ? storage_address(window.storage(), c) : window_address(w, c);
  a.peer = block != graph::no_value;
  if (a.peer) a.base = e_.call(Row::mapa, u32, {a.base, e_.as(u32, index_value(block))});
  a.resident = resident && !is_storing() && !a.peer;
  a.staged = staged;
  // What is stored beyond the array does no harm: it is neither read nor flushed.
  if (a.resident) add_bounds_of_block(a.bounds, w, c);
  const int parts = a.dtype.bytes() / t.bytes();
  if (parts != 1) {
    a.offset = a.offset * parts + k;
    a.alignment *= parts;
    a.together *= parts;
    a.wide = a.wide || a.reach >= (std::int64_t{1} << 31) / parts;
  }
  see_as(a, t);
  return a;
}

// From a place in a view to that in what it is a view of.
void Addresses::step_into(ValueId ref, Coordinates& c, const DimMap& map, Affine& k, DType t) {
  const Inst& view = g_[ref];
  const graph::Type& from = g_[view.args[0]].type;
  switch (view.op) {
  case Op::At: c = subscripted(ref, c, map); return;
  case Op::RefPeer: return;
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
  throw InternalError(fmt::format("addresses: '{}' is not a view", graph::info(view.op).name));
}

Coordinates Addresses::subscripted(ValueId at, const Coordinates& c, const DimMap& map) {
  const Inst& view = g_[at];
  const Extents& from = g_[view.args[0]].type.shape;
  const graph::Subscript s = graph::Subscript::of(view);
  const graph::Subscript::Chosen chosen = s.chosen(c.size());
  Coordinates inner;
  std::size_t next = chosen.first_of_slices(), operand = 1;
  for (const graph::SubscriptDim& d : s.dims) {
    Affine x(d.start);
    if (d.array)
      x = chosen_index(view.args[operand++], chosen.of(c), chosen.of(map));
    else if (d.dynamic)
      x = e_.affine(index_value(view.args[operand++]));
    if (d.is_slice) {
      x = c[next] * d.stride + x;
      next = chosen.next(next);
    }
    const auto dimension = static_cast<int>(inner.size());
    const std::int64_t extent = from[inner.size()];
    const bool is_known = extent != unknown_extent || (d.is_slice && d.size == extent);
    if (found_indices_ != nullptr &&
        (d.dynamic || !is_known || graph::Subscript::leaves(d, extent)))
      found_indices_->push_back({at, dimension, x, extent});
    inner.push_back(x);
  }
  return inner;
}

// The quotient, rounded down, of what is not negative.
Affine Addresses::divided(const Affine& a, std::int64_t by) {
  if (by == 1) return a;
  Affine whole(a.constant() / by), rest(a.constant() % by);
  for (const Affine::Term& t : a.terms()) {
    const bool exact = t.coefficient % by == 0;
    Affine& to = exact ? whole : rest;
    to = to + Affine::term(t.of, exact ? t.coefficient / by : t.coefficient);
  }
  if (rest.is_constant()) return whole;
  return whole + named_index(e_.plain(Operator::div, e_.sum(rest), e_.number(by)));
}

Address Addresses::window_address(WindowId window, const Coordinates& c) {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const BlockNames& names = block(window);
  const int rank = m.array_aval.shape.rank();
  Address a{.base = names.pointer,
            .first = names.first,
            .alignment = std::max(1, m.alignment / m.array_aval.dtype.bytes()),
            .together = most_together,
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
    const Affine& x = at[static_cast<std::size_t>(d)];
    const ExprId step = d + 1 == rank ? e_.number(1, i64)
                        : m.dense     ? dim(stride)
                                      : this->stride(w.mapping, d);
    const thread::Facts known = e_.facts(step);  // copied: expressions are made below
    if (m.block_shape[d].kind == BlockDim::Kind::whole && known.low == known.high) {
      a.offset = a.offset + x * known.low;
      a.reach = INT32_MAX;
      a.wide = a.wide || !g_.short_offsets;
    } else if (known.low == known.high) {
      a.offset = a.offset + x * known.low;
      a.reach += passes::loaded(l_, w, d).size * known.low;
    } else if (!x.is_zero() && g_.short_offsets) {
      a.offset = a.offset + Affine::term(e_.plain(Operator::mul, e_.sum(x), e_.cast(i32, step)));
      a.reach = INT32_MAX;
    } else if (!x.is_zero()) {
      a.offset = a.offset + Affine::term(wide_product(e_, e_.cast(i64, e_.sum(x)), step));
      a.wide = true;
    }
    // Modulo the alignment: the product is as large as strides are.
    const std::int64_t start = names.multiple[static_cast<std::size_t>(d)] % a.alignment;
    a.alignment = std::gcd(a.alignment, start * (known.multiple % a.alignment));
    const Dim& extent = m.array_aval.shape[d];
    a.together =
        std::gcd(a.together, d + 1 == rank ? multiple_of(extent, g_.facts) : known.multiple);
    stride = stride * m.array_aval.shape[d];
  }
  add_bounds_of_block(a.bounds, window, c);
  set_outside(a, window);
  if (a.reach >= std::int64_t{1} << 31) a.wide = true;
  return a;
}

// Tests, dimension by dimension, whether the element at `c` of a block lies in its array.
void Addresses::add_bounds_of_block(Bounds& bounds, WindowId window, const Coordinates& c) {
  const Window& w = l_.windows[window];
  if (w.mapping < 0) return;
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const BlockNames& names = block(window);
  std::size_t next = c.size();
  for (std::size_t d = m.block_shape.size(); d-- > 0;) {
    const bool squeezed = m.block_shape[d].kind == BlockDim::Kind::squeezed;
    const Affine at = squeezed ? Affine() : c[--next];
    const bool is_inside =
        names.multiple[d] == 0 && is_before_end(at, m.array_aval.shape[static_cast<int>(d)]);
    if (names.size[d] != no_expr && !is_inside) bounds.push_back({at, names.size[d]});
    if (names.from[d] != no_expr) bounds.push_back({at, names.from[d], true});
  }
}

Address Addresses::storage_address(StorageId storage, const Coordinates& c) {
  const Storage& s = l_.storages[storage];
  Address a{.base = shared_address(storage),
            .alignment = 16 / s.dtype.bytes(),
            .together = most_together,
            .shared = true,
            .apart = reads_apart(storage),
            .writable = true,
            .dtype = s.dtype};
  const Shared& in = s.shared();
  if (in.swizzle > 0) {
    a.offset = in_panels(s, c);
    return a;
  }
  std::int64_t stride = 1;
  if (!s.shape.empty()) a.together = std::gcd(a.together, std::gcd(s.shape.back(), in.row_stride));
  for (std::size_t d = s.shape.size(); d-- > 0;) {
    const bool swizzles = in.row_swizzle > 0 && d + 1 == s.shape.size();
    a.offset =
        a.offset + (swizzles ? swizzled(e_, c[d - 1], c[d], in, a.alignment) : c[d] * stride);
    stride = d + 1 == s.shape.size() ? in.row_stride : stride * s.shape[d];
  }
  return a;
}

// The part that counts the elements of a vector, and the rest, a multiple of the vector; none where
// the vector may reach over a chunk.
std::pair<Affine, Affine> Addresses::element_part(const Affine& x, std::int64_t chunk) const {
  Affine elements, rest(x.constant());
  for (const Affine::Term& t : x.terms()) {
    const bool counts = t.coefficient == 1 && (e_.depends(t.of) & thread::on_element) != 0;
    Affine& to = counts ? elements : rest;
    to = to + Affine::term(t.of, t.coefficient);
  }
  const thread::Facts known = e_.facts(elements);
  const bool aligned = known.low == 0 && known.high < chunk && chunk % (known.high + 1) == 0 &&
                       e_.multiple(rest) % (known.high + 1) == 0;
  return aligned ? std::pair(elements, rest) : std::pair(Affine(), x);
}

// Quotient, rounded down, and remainder by a power of two: of what lies in front of a value, too.
std::pair<Affine, Affine> Addresses::split(const Affine& x, std::int64_t by) {
  Affine whole(x.constant() / by), rest(x.constant() % by);
  for (const Affine::Term& t : x.terms()) {
    const bool exact = t.coefficient % by == 0;
    Affine& to = exact ? whole : rest;
    to = to + Affine::term(t.of, exact ? t.coefficient / by : t.coefficient);
  }
  const auto is_remainder = [&](const Affine& a) {
    const thread::Facts known = e_.facts(a);
    return known.low >= 0 && known.high < by;
  };
  if (is_remainder(rest)) return {whole, rest};
  if (const auto [elements, begin] = elements_apart(rest, by); !elements.is_zero()) {
    const ExprId of = e_.sum(elements);
    if (!begin.is_zero())
      whole = whole + named_index(quotient(e_.sum(named_index(e_.sum(begin))), by));
    if (is_remainder(elements)) return {whole, elements};
    return {whole + Affine::term(quotient(of, by)), Affine::term(e_.bits(of, by - 1, 0))};
  }
  const ExprId name = e_.sum(named_index(e_.sum(rest)));
  return {whole + named_index(quotient(name, by)), named_index(e_.bits(name, by - 1, 0))};
}

// What the number of an element in its vector says, and where the vector begins, a multiple of
// `by`. Where its elements stand, one beside the other, follows from their numbers then.
std::pair<Affine, Affine> Addresses::elements_apart(const Affine& x, std::int64_t by) const {
  Affine elements(x.constant()), begin;
  for (const Affine::Term& t : x.terms()) {
    const bool counts = e_.depends(t.of) == thread::on_element;
    if (!counts && t.coefficient * (e_.facts(t.of).multiple % by) % by != 0) return {};
    Affine& to = counts ? elements : begin;
    to = to + Affine::term(t.of, t.coefficient);
  }
  return elements.is_constant() ? std::pair(Affine(), x) : std::pair(elements, begin);
}

ExprId Addresses::quotient(ExprId x, std::int64_t by) {
  const int shift = std::countr_zero(static_cast<std::uint64_t>(by));
  const thread::Facts known = e_.facts(x);
  if (known.low < 0) return e_.plain(Operator::shift_right, x, e_.number(shift));
  const std::uint64_t most =
      static_cast<std::uint32_t>(std::min<std::int64_t>(INT32_MAX, known.high));
  return e_.bits(x, static_cast<std::int64_t>(std::bit_ceil(most + 1) - 1) & ~(by - 1), shift);
}

// In swizzled panels: the number of a chunk in its row is exclusive-or-ed with that of the row
// among all that stand in front of it, of narrow rows with that of 2 or 4 of them.
Affine Addresses::in_panels(const Storage& s, const Coordinates& c) {
  const std::int64_t chunk = 16 / s.dtype.bytes(), width = s.shared().swizzle / s.dtype.bytes();
  const std::int64_t alike = 128 / s.shared().swizzle;
  const std::size_t last = c.size() - 1;
  const auto [elements, column] = element_part(c[last], chunk);
  const auto [panel, inside] = split(column, width);
  const std::int64_t rows = s.shape[last - 1], panels = s.shape[last] / width;
  Affine all_rows = c[last - 1];
  if (rows % 8 != 0) {
    std::int64_t below = rows * panels;
    all_rows = all_rows + panel * rows;
    for (std::size_t d = last - 1; d-- > 0; below *= s.shape[d]) all_rows = all_rows + c[d] * below;
  }
  const Affine row = split(all_rows, 8).second;
  Affine at = inside;
  if (!row.is_zero()) {
    ExprId number = e_.sum(named_index(e_.sum(row)));
    if (alike > 1)
      number = e_.bits(number, 8 - alike, std::countr_zero(static_cast<std::uint64_t>(alike)));
    const ExprId turned = e_.plain(Operator::mul, number, e_.number(chunk));
    at = named_index(inside.is_zero() ? turned
                                      : e_.plain(Operator::bit_xor, e_.sum(inside), turned));
  }
  at = elements + at + c[last - 1] * width + panel * (rows * width);
  std::int64_t stride = s.shape[last] * s.shape[last - 1];
  for (std::size_t d = last - 1; d-- > 0; stride *= s.shape[d]) at = at + c[d] * stride;
  return at;
}

// ---- coordinates

Affine Addresses::named_index(ExprId value) {
  const thread::Node node = e_[value].node;
  if (node == thread::Node::number) return Affine(e_[value].number);
  if (node == thread::Node::variable) return Affine::term(value);
  ExprId& name = index_names_.try_emplace(value, no_expr).first->second;
  if (name == no_expr) name = let_coordinate(value);
  return Affine::term(name);
}

void Addresses::forget_names(thread::Depends changing) {
  std::erase_if(index_names_,
                [&](const auto& known) { return (e_.depends(known.first) & changing) != 0; });
}

// Dimensions that follow one another, and have as many elements as others that do, are those.
Coordinates Addresses::reshape_coordinates(const Extents& from, const Extents& to,
                                           const Coordinates& c) {
  Coordinates out(from.size());
  if (graph::element_count(from) == 0) return out;
  for (std::size_t d = 0, t = 0; d < from.size();) {
    const std::size_t first_d = d, first_t = t;
    std::int64_t of_from = from[d++], of_to = 1;
    while (of_from != of_to)
      if (of_from < of_to)
        of_from *= from[d++];
      else
        of_to *= to[t++];
    const auto part = [](const auto& of, std::size_t first, std::size_t end) {
      return std::vector(of.begin() + static_cast<std::ptrdiff_t>(first),
                         of.begin() + static_cast<std::ptrdiff_t>(end));
    };
    take_apart(flat(part(to, first_t, t), part(c, first_t, t)), part(from, first_d, d),
               std::span(out).subspan(first_d, d - first_d));
  }
  return out;
}

// The coordinates of the element at a position.
void Addresses::take_apart(Affine position, const Extents& shape, std::span<Affine> out) {
  std::int64_t stride = graph::element_count(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    stride /= shape[d];
    if (shape[d] == 1) continue;
    if (stride == 1) {
      out[d] = std::exchange(position, Affine());
    } else if (std::has_single_bit(static_cast<std::uint64_t>(stride))) {
      std::tie(out[d], position) = split(position, stride);
    } else {
      const ExprId whole = e_.sum(named_index(e_.sum(position)));
      out[d] = named_index(e_.plain(Operator::div, whole, e_.number(stride)));
      position = named_index(e_.plain(Operator::rem, whole, e_.number(stride)));
    }
  }
}

// ---- blocks

std::vector<Addresses::Index> Addresses::find_indices(ValueId ref, const Coordinates& c,
                                                      const DimMap& map) {
  std::vector<Index> found;
  std::vector<Index>* const outer = std::exchange(found_indices_, &found);
  address(ref, c, map);
  found_indices_ = outer;
  return found;
}

ExprId start_of_block(Exprs& e, const BlockDim& b, ExprId at, DType type, std::int64_t lead) {
  const std::int64_t step = b.step();
  return e.sum(Affine::term(e.as(type, at), step) + Affine(-b.pad_lo - lead), type);
}

ValueId size_of_slice(const graph::Graph& g, const BlockMapping& m, std::size_t dimension) {
  const auto slices = std::count_if(
      m.block_shape.begin(), m.block_shape.begin() + static_cast<std::ptrdiff_t>(dimension),
      [](const BlockDim& b) { return b.kind == BlockDim::Kind::bounded_slice; });
  return g[graph::RegionId{m.index_map}]
      .yields[m.block_shape.size() + static_cast<std::size_t>(slices)];
}

bool begins_inside(const graph::Graph& g, const BlockMapping& m, int d) {
  const BlockDim& b = m.block_shape[d];
  if (m.index_map == no_region || b.kind == BlockDim::Kind::element ||
      b.kind == BlockDim::Kind::bounded_slice)
    return false;
  const graph::Region& map = g[graph::RegionId{m.index_map}];
  const auto axis = std::ranges::find(map.params, map.yields[static_cast<std::size_t>(d)]);
  if (axis == map.params.end()) return false;
  const Dim& programs = g.mapping.grid[static_cast<std::size_t>(axis - map.params.begin())];
  const Dim blocks = cdiv(m.array_aval.shape[d], b.size);
  return programs.is_static() && blocks.is_static() ? programs.value() <= blocks.value()
                                                    : programs.same(blocks);
}

thread::Facts facts_of_size(const graph::Graph& g, const BlockMapping& m, int d,
                            std::int64_t loaded, const thread::Facts& extent,
                            const thread::Facts& start) {
  const BlockDim::Kind kind = m.block_shape[d].kind;
  // Data say how many elements of a slice exist.
  if (kind != BlockDim::Kind::bounded_slice && start.multiple == 0 && extent.low == extent.high) {
    const std::int64_t size = std::min(extent.low, loaded);
    return {.multiple = size, .low = size, .high = size};
  }
  const bool may_have_none =
      kind == BlockDim::Kind::element || kind == BlockDim::Kind::bounded_slice;
  return {.multiple = std::gcd(loaded, std::gcd(extent.multiple, start.multiple)),
          .low = may_have_none ? INT32_MIN : begins_inside(g, m, d),
          .high = loaded};
}

thread::Facts facts_of_from(std::int64_t size, std::int64_t multiple_of_start) {
  return {.multiple = std::gcd(size, multiple_of_start), .low = 0, .high = size};
}

Loaded loaded(const Program& l, const Window& w, int d) {
  const auto& block = l.graph.mapping.block_mappings[w.mapping].block_shape;
  const BlockDim& b = block[static_cast<std::size_t>(d)];
  const bool row = d + 1 == static_cast<int>(block.size()) && b.kind != BlockDim::Kind::squeezed;
  const bool in_bounds = w.in_bounds[static_cast<std::size_t>(d)];
  if (!w.is_staged() || !row) return {0, b.size, in_bounds};
  const std::int64_t size = l.storages[w.storage()].shape.back();
  return {w.staged().lead, size, in_bounds && size == b.size};
}

thread::Facts facts_of_stride(const BlockMapping& m) {
  return {.multiple = std::max(1, m.alignment / m.array_aval.dtype.bytes())};
}

thread::Facts facts_of_symbol(const graph::Graph& g, int symbol) {
  const auto number = static_cast<std::uint32_t>(symbol);
  thread::Facts facts{.multiple = g.facts.multiple(number), .low = 0};
  for (const BlockMapping& m : g.mapping.block_mappings)
    for (std::size_t d = 0; d < m.block_shape.size(); ++d)
      if (m.block_shape[d].kind == BlockDim::Kind::bounded &&
          m.array_aval.shape[static_cast<int>(d)].same(dim_symbol(number)))
        facts.high = std::min(facts.high, m.block_shape[d].size);
  return facts;
}

ExprId wide_product(Exprs& e, ExprId a, ExprId b) {
  const auto is_narrow = [&](ExprId x) {
    const thread::Facts& known = e.facts(x);
    return known.low >= INT32_MIN && known.high <= INT32_MAX;
  };
  const auto narrowed = [&](ExprId x) {
    return e[x].node == thread::Node::cast && e[e[x].args[0]].type == i32 ? e[x].args[0]
                                                                          : e.cast(i32, x);
  };
  const ExprId product = e.plain(Operator::mul, a, b, i64);
  if (e[product].node != thread::Node::plain || !is_narrow(a) || !is_narrow(b)) return product;
  const thread::Facts known = e.facts(product);
  return e.call(Row::mul_wide, i64, {narrowed(a), narrowed(b)}, false, known);
}

ExprId expr_of_dim(Exprs& e, const Dim& d, std::span<const ExprId> symbols) {
  using detail::DimOp;
  if (d.is_static()) return e.number(d.value(), i64);
  const DimNode n = dim_node(d);
  if (n.op == DimOp::symbol) return symbols[static_cast<std::size_t>(n.symbol)];
  const ExprId a = expr_of_dim(e, n.a, symbols), b = expr_of_dim(e, n.b, symbols);
  const auto plain = [&](Operator by, ExprId x) { return e.plain(by, x, b, i64); };
  switch (n.op) {
  case DimOp::add: return e.sum(Affine::term(a) + Affine::term(b), i64);
  case DimOp::sub: return plain(Operator::sub, a);
  case DimOp::mul: return plain(Operator::mul, a);
  case DimOp::div: return plain(Operator::div, a);
  case DimOp::mod: return plain(Operator::rem, a);
  case DimOp::cdiv:
    return plain(Operator::div, e.sum(Affine::term(a) + e.affine(b) + Affine(-1), i64));
  case DimOp::min: return e.call(Row::min, i64, {a, b});
  case DimOp::max: return e.call(Row::max, i64, {a, b});
  case DimOp::symbol:
  case DimOp::constant: break;
  }
  throw InternalError("a dimension without an operation");
}

}  // namespace palladium::passes
