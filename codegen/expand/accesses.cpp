// How elements are read and written: by the widest accesses that their addresses and tests allow.
#include <algorithm>

#include "codegen/expand/nest.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::expand {

using thread::Depends;
using thread::in_element;
using thread::on_element;

// Where only one of several threads that compute a value stores it, the others must not read what
// it may just have overwritten.
std::vector<ExprId> Nest::reading_threads(const Address& a) const {
  return a.read_only ? std::vector<ExprId>{} : thread_mask_;
}

// Storages of which a nest reads one and writes the other are both alive in it: they share nothing.
bool Nest::reads_apart(StorageId storage) {
  if (nest_ == nullptr) return false;
  if (!written_) {
    written_.emplace();
    for (const lowered::Effect& e : lowered::effects(l_, *nest_))
      if (e.writes() && e.storage) written_->insert(e.storage);
  }
  return !written_->contains(storage);
}

// ---- vectors

thread::Place Nest::place_of(const Address& a) {
  const Affine first = a.first == no_expr ? Affine() : Affine::term(a.first);
  return {.base = a.base,
          .offset = e_.sum(first + a.offset, a.wide ? i64 : i32),
          .type = a.dtype,
          .shared = a.shared,
          .unwritten = a.read_only || a.apart};
}

// By as few instructions as may be.
thread::Statement Nest::vector_access(Vector v) {
  thread::Width w = vector_width(v.place, v.bounds);
  if (v.direction == Direction::flush) w.width = std::min(w.width, vector_width(v.from, {}).width);
  const bool once = w.width == vector_;
  std::vector<bool> along;
  for (const Bound& b : v.bounds) along.push_back(b.at.coefficient(element_) != 0);
  if (once) {
    v.place.offset = v.place.offset.without(element_);
    v.from.offset = v.from.offset.without(element_);
    for (Bound& b : v.bounds) b.at = b.at.without(element_);
  } else if (v.array != thread::no_variable) {
    v.first = v.first + Affine::term(element_);
  }
  thread::Access access{.function = w.part ? v.function_of_part : v.function, .width = w.width};
  if (w.part) {
    Bounds rest;
    for (std::size_t i = 0; i < v.bounds.size(); ++i) {
      const Bound& b = v.bounds[i];
      if (!along[i]) {
        rest.push_back(b);
        continue;
      }
      const ExprId left = e_.plain(Operator::sub, b.limit, e_.sum(b.at));
      access.valid = access.valid == no_expr ? left : e_.call(Row::min, i32, {access.valid, left});
    }
    v.bounds = std::move(rest);
  }
  access.test = predicate(v.bounds, v.tests);
  access.skew = v.place.skew;
  fill_outside(access, v.outside);
  access.place = place_of(v.place);
  if (v.array != thread::no_variable)
    access.registers =
        v.first.is_zero() ? e_.address(v.array) : e_.address(v.array, e_.sum(v.first));
  thread::Statement s{.at = b_.at()};
  switch (v.direction) {
  case Direction::load: s.what = thread::Load{access}; break;
  case Direction::store: s.what = thread::Store{access}; break;
  case Direction::flush: s.what = thread::Flush{access, place_of(v.from)}; break;
  }
  if (once) return s;
  thread::For loop{.counter = e_[element_].variable,
                   .low = e_.number(0),
                   .high = e_.number(vector_),
                   .step = w.width,
                   .body = {},
                   .short_form = true};
  loop.body.push_back(std::move(s));
  return {std::move(loop), b_.at()};
}

// Vectors beyond the end of their thread's row read its first one again, which is an address
// instead of a test, and nothing to fill registers with.
void Nest::read_first_again(Vector& v) {
  const RowEnd end = row_end(v.place, v.bounds);
  const ExprId behind = e_.sum(Affine::term(end.iteration, end.step));
  v.place.offset = end.first + Affine::term(e_.choose(end.inside, behind, e_.number(0)));
  v.bounds = end.others;
}

// ---- loads

Nest::Vector Nest::load_of(const Address& a, const DimMap& map, VariableId array,
                           const Affine& first) const {
  return {.direction = Direction::load,
          .function = load_function(a),
          .function_of_part = load_function_of_part(a),
          .place = a,
          .array = array,
          .first = first,
          .bounds = bounds_of(a, map),
          .tests = reading_threads(a),
          .outside = a.outside};
}

// Where all elements are there, nothing fills them.
void Nest::fill_outside(thread::Access& access, ExprId outside) {
  if (outside == no_expr || (access.test == no_expr && access.valid == no_expr)) return;
  switch (access.function) {
  case Row::load_global: access.function = Row::load_global_filled; break;
  case Row::load_global_nc: access.function = Row::load_global_nc_filled; break;
  case Row::load_global_part: access.function = Row::load_global_part_filled; break;
  case Row::load_global_nc_part: access.function = Row::load_global_nc_part_filled; break;
  default: return;
  }
  access.outside = outside;
  if (access.test == no_expr) access.test = e_.literal(bool_, 1);
}

// What the user stored beyond the array in a block that lives in shared memory is not there.
ExprId Nest::filled(const Address& a, ExprId value) {
  if (a.outside == no_expr || !a.resident) return value;
  const ExprId exists = predicate(a.bounds);
  if (exists == no_expr) return value;
  return temporary("x", e_.choose(exists, value, a.outside));
}

Row load_function(const Address& a) {
  return a.peer              ? Row::load_cluster
         : a.skew != no_expr ? Row::load_shared_skewed
         : a.resident        ? Row::load_resident
         : a.shared          ? Row::load_shared_padded
         : a.zeros           ? Row::load_global_nc_zero
         : a.read_only       ? Row::load_global_nc
                             : Row::load_global;
}

Row load_function_of_part(const Address& a) {
  return a.resident    ? Row::load_resident_part
         : a.read_only ? Row::load_global_nc_part
                       : Row::load_global_part;
}

VariableId Nest::unfilled(const char* of, DType type, std::int64_t count) {
  return e_.declare({.name = prefix(of),
                     .temporary = true,
                     .form = count > 0 ? thread::Form::array : thread::Form::value,
                     .type = type,
                     .count = count});
}

// What is the same in all iterations of a run-time loop is loaded in front of it, as far as
// registers hold it: the rest is read again in each.
Depends Nest::near(Depends depends, DType type) {
  constexpr std::int64_t most_held = 64;
  Depends rolled = 0;
  for (int d = 0; d < layout_.rank(); ++d)
    if (unrolled_by(d) > 0) rolled |= loops_ & thread::on_repetition(d);
  if (rolled == 0 || (depends & rolled) != 0) return depends;
  const bool of_vector = (depends & on_element) != 0;
  held_in_front_ += cdiv((of_vector ? vector_ : 1) * type.bytes(), std::int64_t{4});
  return held_in_front_ > most_held ? depends | rolled : depends;
}

// Reads the element at `a`; with it the others of its vector where they stand together.
ExprId Nest::access(const Address& a, const DimMap& map, ExprId mask) {
  if (!a.parts.empty()) return joined_access(a, map, mask);
  if (shares_row(a, map, mask)) return row_access(a, map);
  if (const auto span = span_around(a, map, mask)) return span_access(a, map, mask, *span);
  const Depends of_mask = e_.depends(mask);
  const Depends all = near(depends(a, bounds_of(a, map)) | of_mask, a.dtype);
  if ((of_mask & (on_element | in_element)) == 0 && is_vector(a, map)) {
    const VariableId array = unfilled("a", a.dtype, vector_);
    Vector v = load_of(a, map, array, {});
    if (mask != no_expr) v.tests.insert(v.tests.begin(), mask);
    b_.place(all & ~on_element, array, vector_access(std::move(v)));
    return filled(a, e_.element(array, element_));
  }
  std::vector<ExprId> tests = reading_threads(a);
  const Bounds bounds = bounds_of(a, map);
  thread::Access access{.function = load_function(a), .place = place_of(a), .skew = a.skew};
  const ExprId inside = predicate(bounds);
  tests.insert(tests.begin(), {mask, inside});
  access.test = e_.all(std::move(tests));
  fill_outside(access, a.outside);
  const VariableId x = unfilled("a", a.dtype, 0);
  access.registers = e_.address(x);
  b_.place(all, x, {thread::Load{access}, b_.at()});
  return filled(a, e_.variable(x));
}

// Reads all that stand around the elements of a vector, once for all who want some of them.
ExprId Nest::span_access(const Address& a, const DimMap& map, ExprId mask,
                         const thread::Span& span) {
  constexpr std::uint32_t span_of_vector = UINT32_MAX - 2;  // as the value in a key
  Address from = a;
  from.offset = span.first;
  thread::Access access{.function = load_function(a), .width = span.width};
  std::vector<ExprId> tests = reading_threads(a);
  tests.insert(tests.begin(), {mask, predicate(bounds_of(a, map))});
  access.test = e_.all(std::move(tests));
  fill_outside(access, a.outside);
  const thread::Place place = place_of(from);
  const Key key{span_of_vector,
                thread::index(place.base),
                thread::index(place.offset),
                thread::index(access.test),
                thread::index(access.outside),
                static_cast<std::uint32_t>(span.count),
                static_cast<std::uint32_t>(a.dtype.kind())};
  const auto [known, is_new] = memo_.try_emplace(key, no_expr);
  if (is_new) {
    const VariableId array = unfilled("a", a.dtype, span.count);
    read_span(
        access, from, array, span.count,
        near(depends(from, {}) | e_.depends(access.test) | on_element, a.dtype) & ~on_element);
    known->second = e_.address(array);
    spans_.insert(array);
  }
  return e_.element(e_[known->second].variable, e_.sum(span.at));
}

// So many elements to the beginning of the array, by accesses of the width.
void Nest::read_span(thread::Access access, Address from, VariableId array, std::int64_t count,
                     Depends depends) {
  if (count == access.width) {
    access.registers = e_.address(array);
    access.place = place_of(from);
    return b_.place(depends, array, {thread::Load{access}, b_.at()});
  }
  const VariableId q = e_.declare(
      {.name = "q", .type = i32, .facts = {.multiple = access.width, .low = 0, .high = count - 1}});
  const Affine iteration = Affine::term(e_.variable(q));
  from.offset = from.offset + iteration;
  access.registers = e_.address(array, e_.sum(iteration));
  access.place = place_of(from);
  thread::For loop{.counter = q,
                   .low = e_.number(0),
                   .high = e_.number(count),
                   .step = access.width,
                   .body = {},
                   .short_form = true};
  loop.body.push_back({thread::Load{access}, b_.at()});
  b_.place(depends, array, {std::move(loop), b_.at()});
}

// Reads the parts of one element and joins them. Out of bounds is what has a part there.
ExprId Nest::joined_access(const Address& a, const DimMap& map, ExprId mask) {
  if (a.outside != no_expr) return joined_filled(a, map, mask);
  Bounds bounds;
  for (const Address& part : a.parts) passes::add_padding(e_, bounds, part.bounds);
  passes::add_padding(e_, bounds, padding(map));
  std::vector<ExprId> tests = reading_threads(a);
  tests.insert(tests.begin(), {mask, predicate(bounds)});
  const ExprId test = e_.all(std::move(tests));
  Depends all = e_.depends(test);
  for (const Address& part : a.parts) all |= depends(part, {});

  const DType part = a.parts[0].dtype, bits = passes::unsigned_of(a.dtype.bytes());
  const auto count = static_cast<std::int64_t>(a.parts.size());
  const VariableId parts = unfilled("part", part, count);
  b_.place(all, thread::Declare{.variable = parts});
  e_[parts].facts.depends = all;
  ExprId joined = no_expr;
  for (std::int64_t k = 0; k < count; ++k) {
    const Address& piece = a.parts[static_cast<std::size_t>(k)];
    b_.place(all, thread::Load{{.function = load_function(a),
                                .registers = e_.address(parts, e_.number(k)),
                                .place = place_of(piece),
                                .test = test}});
    ExprId moved = e_.cast(bits, e_.element(parts, e_.number(k)));
    if (k > 0) moved = e_.plain(Operator::shift_left, moved, e_.number(8 * part.bytes() * k), bits);
    joined = k == 0 ? moved : e_.plain(Operator::bit_or, joined, moved, bits);
  }
  ExprId whole = e_.bitcast(a.dtype, e_.cast(bits, joined));
  if (test != no_expr)
    whole = e_.choose(test, whole, e_.call(Row::out_of_bounds, a.dtype, {}, true));
  return temporary("a", whole);
}

// The same of a block with a fill: each part is there, or filled, by itself.
ExprId Nest::joined_filled(const Address& a, const DimMap& map, ExprId mask) {
  const DType bits = passes::unsigned_of(a.dtype.bytes());
  ExprId joined = no_expr;
  std::int64_t shift = 0;
  for (const Address& piece : a.parts) {
    Address part = piece;
    passes::add_padding(e_, part.bounds, padding(map));
    const ExprId exists = predicate(part.bounds);
    std::vector<ExprId> tests = reading_threads(a);
    tests.insert(tests.begin(), {mask, exists});
    const ExprId test = e_.all(std::move(tests));
    const VariableId x = unfilled("part", part.dtype, 0);
    b_.place(depends(part, part.bounds) | e_.depends(test), x,
             {thread::Load{{.function = load_function(a),
                            .registers = e_.address(x),
                            .place = place_of(part),
                            .test = test}},
              b_.at()});
    ExprId value = e_.variable(x);
    if (exists != no_expr) value = e_.choose(exists, value, part.outside);
    ExprId moved = e_.cast(bits, value);
    if (shift > 0) moved = e_.plain(Operator::shift_left, moved, e_.number(shift), bits);
    joined = joined == no_expr ? moved : e_.plain(Operator::bit_or, joined, moved, bits);
    shift += 8 * part.dtype.bytes();
  }
  return temporary("a", e_.bitcast(a.dtype, e_.cast(bits, joined)));
}

}  // namespace palladium::expand
