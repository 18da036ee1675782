// Where the elements of a view stand in memory, and accesses of those that lie in parts.
#include <algorithm>
#include <numeric>
#include <utility>

#include "codegen/base/dim.hpp"
#include "codegen/base/format.hpp"
#include "codegen/cuda/printer.hpp"
#include "codegen/cuda/spelling.hpp"

namespace palladium::cuda {

using graph::Inst;
using graph::Op;
using passes::Residency;
using passes::Storage;
using passes::Window;

namespace {

DType unsigned_of(int bytes) { return bytes == 1 ? u8 : bytes == 2 ? u16 : bytes == 4 ? u32 : u64; }

// The quotient if every term is divisible.
bool divides(std::int64_t n, const Affine& a) {
  return a.constant() % n == 0 &&
         std::all_of(a.terms().begin(), a.terms().end(),
                     [&](const Affine::Term& t) { return t.coefficient % n == 0; });
}

Affine quotient(const Affine& a, std::int64_t n) {
  Affine result(a.constant() / n);
  for (const Affine::Term& t : a.terms())
    result = result + Affine::term(t.name, t.multiple) * (t.coefficient / n);
  return result;
}

bool is_apart(const Affine& from, const Affine& to, std::int64_t distance) {
  const Affine difference = to + from * -1;
  return difference.is_constant() && difference.constant() == distance;
}

// The parts as one element, if they are neighbours that are aligned, and in or out of bounds,
// together.
bool join(const std::vector<Address>& parts, DType whole, Address& result) {
  const auto n = static_cast<std::int64_t>(parts.size());
  const Address& first = parts[0];
  if (first.alignment % n != 0 || !divides(n, first.offset)) return false;
  result = first;
  result.offset = quotient(first.offset, n);
  result.alignment = first.alignment / n;
  for (std::size_t b = 0; b < first.bounds.size(); ++b) {
    const Bound& bound = first.bounds[b];
    const bool along = !is_apart(bound.coordinate, parts[1].bounds[b].coordinate, 0);
    for (std::int64_t k = 1; k < n; ++k)
      if (!is_apart(bound.coordinate, parts[static_cast<std::size_t>(k)].bounds[b].coordinate,
                    along ? k : 0))
        return false;
    if (!along) continue;
    if (bound.lower || bound.multiple % n != 0 || !divides(n, bound.coordinate)) return false;
    result.bounds[b] = {.coordinate = quotient(bound.coordinate, n),
                        .limit = fmt::format("{} / {}", bound.limit, n),
                        .multiple = bound.multiple / n};
  }
  for (std::int64_t k = 1; k < n; ++k)
    if (!is_apart(first.offset, parts[static_cast<std::size_t>(k)].offset, k)) return false;
  result.see_as(whole);
  return true;
}

}  // namespace

void Address::see_as(DType t) {
  if (!(dtype == t) && !shared)
    base = fmt::format("reinterpret_cast<{}{}*>({})", writable ? "" : "const ", type_name(t), base);
  dtype = t;
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
  if (a.resident) add_bounds_of_window(a, w, c);
  const int parts = a.dtype.bytes() / t.bytes();
  if (parts != 1) {
    a.offset = a.offset * parts + k;
    a.alignment *= parts;
    a.wide = a.wide || a.reach >= (std::int64_t{1} << 31) / parts;
  }
  a.see_as(t);
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
        const std::string start = evaluate(view.args[operand++], {}, {}, false);
        x = x + Affine::term(parenthesised(start));
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
  throw InternalError(fmt::format("print: '{}' is not a view", graph::info(view.op).name));
}

// The quotient, rounded down, of what is not negative.
Affine Nest::divided(const Affine& a, std::int64_t by) {
  if (by == 1) return a;
  Affine whole(a.constant() / by), rest(a.constant() % by);
  for (const Affine::Term& t : a.terms()) {
    const bool exact = t.coefficient % by == 0;
    Affine& to = exact ? whole : rest;
    to = to + Affine::term(t.name, t.multiple) * (exact ? t.coefficient / by : t.coefficient);
  }
  if (rest.is_constant()) return whole;
  const std::string text = parenthesised(rest.text()) + " / " + std::to_string(by);
  std::string& name = memo_["i32 " + text];
  if (name.empty()) name = declare_index(text, is_of_element(rest));
  return whole + Affine::term(name);
}

Address Nest::window_address(int window, const Coordinates& c) const {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const std::string name = p_.window_name(window);
  const int rank = m.array_aval.shape.rank(), bytes = m.array_aval.dtype.bytes();
  Address a{.base = name,
            .alignment = std::max(1, m.alignment / bytes),
            .bounds = {},
            .read_only = w.read_only,
            .writable = w.stored,
            .dtype = m.array_aval.dtype};
  std::vector<Affine> at(static_cast<std::size_t>(rank));
  std::size_t next = 0;
  for (int d = 0; d < rank; ++d)
    if (m.block_shape[d].kind != BlockDim::Kind::squeezed) at[d] = c[next++];

  Dim stride = 1;
  std::int64_t reach = 0;
  for (int d = rank - 1; d >= 0; --d) {
    const BlockDim& b = m.block_shape[d];
    const bool unit = d + 1 == rank;
    const bool known = unit || (m.dense && stride.is_static());
    const std::int64_t step = unit      ? 1
                              : known   ? stride.value()
                              : m.dense ? multiple_of(stride, g_.facts)
                                        : a_multiple(m, bytes);
    if (known) {
      a.offset = a.offset + at[d] * step;
      reach += b.size * step;
    } else {
      const std::string by =
          m.dense ? dim_text(stride) : fmt::format("{}_stride{}", p_.arrays_[w.mapping], d);
      if (at[d].is_constant() && at[d].constant() == 0) {
      } else if (g_.short_offsets) {
        a.offset = a.offset +
                   Affine::term(fmt::format("{} * i32({})", parenthesised(at[d].text()), by), step);
        reach = INT32_MAX;
      } else {
        a.offset = a.offset + Affine::term(fmt::format("i64({}) * {}", at[d].text(), by), step);
        a.wide = true;
      }
    }
    const std::int64_t start = b.kind == BlockDim::Kind::blocked ? b.size : 1;
    const bool at_zero = b.pad_lo == 0 && is_zero(m.index_map, d);
    if (!at_zero) a.alignment = std::gcd(a.alignment, start * step);
    stride = stride * m.array_aval.shape[d];
  }
  add_bounds_of_window(a, window, c);
  a.reach = reach;
  if (reach >= std::int64_t{1} << 31) a.wide = true;
  return a;
}

// Tests, dimension by dimension, whether the element at `c` of a block lies in its array.
void Nest::add_bounds_of_window(Address& a, int window, const Coordinates& c) const {
  const Window& w = l_.windows[window];
  if (w.mapping < 0) return;
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  std::size_t next = c.size();
  for (std::size_t d = m.block_shape.size(); d-- > 0;) {
    const bool squeezed = m.block_shape[d].kind == BlockDim::Kind::squeezed;
    const Affine at = squeezed ? Affine() : c[--next];
    if (!w.in_bounds[d]) add_window_bounds(a, p_.window_name(window), m, static_cast<int>(d), at);
  }
}

bool Nest::is_zero(RegionIndex region, int d) const {
  if (region == no_region) return true;
  const Inst& i = g_[g_[graph::RegionId{region}].yields[d]];
  return i.op == Op::Constant && i.attr.bits == 0;
}

std::int64_t Nest::a_multiple(const BlockMapping& m, int bytes) {
  return std::max(1, m.alignment / bytes);
}

void Nest::add_window_bounds(Address& a, const std::string& name, const BlockMapping& m, int d,
                             const Affine& at) const {
  const BlockDim& b = m.block_shape[d];
  const Dim& extent = m.array_aval.shape[d];
  const bool regular = b.kind == BlockDim::Kind::blocked;
  a.bounds.push_back({at, fmt::format("{}_size{}", name, d),
                      regular ? std::gcd(multiple_of(extent, g_.facts), b.size) : 1, false,
                      b.size});
  if (b.kind == BlockDim::Kind::element && b.pad_lo + b.pad_hi > 0)
    a.bounds.push_back({at, fmt::format("{}_from{}", name, d), 1, true});
}

Address Nest::storage_address(int storage, const Coordinates& c) const {
  const Storage& s = l_.storages[storage];
  Address a{.base = p_.shared_address(storage),
            .alignment = 16 / s.dtype.bytes(),
            .bounds = {},
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
void Nest::check_indices(ValueId access, const Coordinates& c, const DimMap& map,
                         const std::string& mask) {
  const ValueId ref = g_[access].args[0];
  if (!has_dynamic_index(ref)) return;
  const bool whole = mask.empty() && is_plain(ref);
  Coordinates end;
  for (const std::int64_t extent : g_[ref].type.shape) end.emplace_back(extent - 1);
  const std::vector<Index> first = find_indices(ref, whole ? Coordinates(end.size()) : c);
  const std::vector<Index> last = whole ? find_indices(ref, end) : first;
  const std::string test = whole ? "" : predicate(padding(map), mask);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Index& x = first[i];
    std::string text = fmt::format("pl::check_range({}, {}, {}, \"{}: dimension {} of {}\");",
                                   x.coordinate.text(true), last[i].coordinate.text(true), x.extent,
                                   graph::info(g_[access].op).name, x.dimension,
                                   graph::to_string(g_[g_[x.at].args[0]].type));
    if (!test.empty()) text = fmt::format("if ({}) {}", test, text);
    const Location outer = std::exchange(reading_, g_.location(x.at));
    if (whole)
      print_check(text);
    else if (vector_ > 1 || varies_within_group(text))
      inside(text);
    else
      before(text);
    reading_ = outer;
  }
}

// Once for the pass, where it names nothing that the pass computes.
void Nest::print_check(const std::string& text) {
  if (varies_within_group(text)) return inside(text);
  const bool local = std::ranges::any_of(
      temporary_names_, [&](const std::string& n) { return names_identifier(text, n); });
  if (!pass_ || local) return before(text);
  for (const Line& line : checks_)
    if (line.text == text) return;
  checks_.push_back({text, reading_});
}

// ---- elements in parts

// Reads the parts of one element and joins them. Out of bounds is what has a part there.
std::string Nest::joined_access(const Address& a, const DimMap& map, const std::string& mask) {
  std::vector<Bound> bounds;
  for (const Address& part : a.parts) add_padding(bounds, part.bounds);
  add_padding(bounds, padding(map));
  bool per_element = !mask.empty();
  for (const Address& part : a.parts) per_element |= is_of_element(part.offset);
  for (const Bound& b : bounds) per_element |= is_of_element(b.coordinate);
  auto& lines = per_element ? inside_ : before_;
  std::string test = predicate(bounds, mask);
  if (const std::string mine = reading_threads(a); !mine.empty())
    test += (test.empty() ? "" : " && ") + mine;

  const std::string name = temporary("a"), parts = temporary("p");
  const std::string part = type_name(a.parts[0].dtype);
  const std::string bits = type_name(unsigned_of(a.dtype.bytes())), whole = type_name(a.dtype);
  lines.push_back({fmt::format("{} {}[{}];", part, parts, a.parts.size()), reading_});
  std::string joined;
  for (std::size_t k = 0; k < a.parts.size(); ++k) {
    lines.push_back({fmt::format("{}<1>({} + {}, {}{});", load_function(a), parts, k,
                                 place(a.parts[k]), test.empty() ? "" : ", " + test),
                     reading_});
    joined += k == 0 ? fmt::format("{}({}[0])", bits, parts)
                     : fmt::format(" | {}({}[{}]) << {}", bits, parts, k,
                                   8 * a.parts[k].dtype.bytes() * static_cast<int>(k));
  }
  joined = fmt::format("pl::bitcast<{}>({}({}))", whole, bits, joined);
  if (!test.empty()) joined = fmt::format("{} ? {} : pl::out_of_bounds<{}>()", test, joined, whole);
  lines.push_back({fmt::format("const {} {} = {};", whole, name, joined), reading_});
  if (per_element) element_names_.insert(name);
  return name;
}

// Stores those parts of one element that are in bounds.
void Nest::store_parts(const Address& a, const std::string& text, const std::string& mask,
                       const std::vector<Bound>& limits) {
  open_elements();
  const std::string name = temporary("o"), part = type_name(a.parts[0].dtype);
  p_.w_.line(fmt::format("const {} {} = {};", type_name(a.dtype), name, text));
  for (std::size_t k = 0; k < a.parts.size(); ++k) {
    std::vector<Bound> bounds = a.parts[k].bounds;
    add_padding(bounds, limits);
    const std::string piece = fmt::format("{}_{}", name, k);
    p_.w_.line(fmt::format("const {} {} = {}(pl::bitcast<{}>({}) >> {});", part, piece, part,
                           type_name(unsigned_of(a.dtype.bytes())), name,
                           8 * a.parts[k].dtype.bytes() * static_cast<int>(k)));
    store_one(a.parts[k], "&" + piece, mask, bounds);
  }
}

}  // namespace palladium::cuda
