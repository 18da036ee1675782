// Where the elements of a nest stand: in registers, in the padding of their layout, in vectors.
#include <algorithm>

#include "codegen/base/overloaded.hpp"
#include "codegen/graph/packed.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/ends.hpp"
#include "palladium/error.hpp"

namespace palladium::passes {

using graph::Op;
using thread::Address;
using thread::Affine;
using thread::Bound;
using thread::Bounds;
using thread::Depends;
using thread::ExprId;
using thread::in_element;
using thread::no_expr;
using thread::on_element;
using thread::Operator;

Elements::Elements(const Program& l, thread::Exprs& e)
    : Addresses(l, e),
      sums_(
          g_, e, [this](int axis) { return program_id(axis); },
          [this](std::uint32_t symbol) { return dim(dim_symbol(symbol)); }) {}

void Elements::enter(const LoopNest& p, const layout::Layout& layout) {
  nest_ = &p;
  redirects_ = &p.redirects;
  layout_ = layout;
  vector_bits_ = vector_bits(l_, p, layout_);
  vector_ = 1 << vector_bits_;
  conditions_hold_ = p.whole;
  if_whole_.reset();
}

bool Elements::is_reduced(int d) const {
  const auto* r = std::get_if<Reduce>(&nest_->sink);
  return r != nullptr && std::ranges::find(r->reduced, d) != r->reduced.end();
}

// ---- registers

Affine Elements::repetition(int d) const {
  return layout_.repetitions(d) > 1 ? Affine::term(repetitions_[static_cast<std::size_t>(d)])
                                    : Affine(0);
}

// The bits of the register number below the repetitions that a leaf keeps, renumbered.
Affine Elements::low_register_index(const DimMap& map, int& bits) const {
  layout::Bits columns;
  bits = 0;
  for (const std::uint32_t image : layout_.reg) {
    bool kept = false;
    for (const int d : map) kept |= d >= 0 && layout_.field(d, image) != 0;
    columns.push_back(kept ? 1u << bits++ : 0u);
  }
  const layout::Bits element(columns.begin(), columns.begin() + vector_bits_);
  const layout::Bits group(columns.begin() + vector_bits_, columns.end());
  return affine_of(e_, group_, layout::terms_of(group), static_cast<int>(group.size())) +
         affine_of(e_, element_, layout::terms_of(element), vector_bits_);
}

Affine Elements::register_index(const layout::Layout& leaf, const DimMap& map) const {
  int bits = 0;
  const Affine low = low_register_index(map, bits);
  if (bits != static_cast<int>(leaf.reg.size()))
    throw InternalError("elements: a leaf's layout does not follow from that of its nest: " +
                        layout::to_string(leaf) + " in " + layout::to_string(layout_));
  Affine index;
  std::int64_t stride = std::int64_t{1} << bits;
  for (std::size_t d = map.size(); d-- > 0;) {
    if (map[d] < 0) continue;
    index = repetition(map[d]) * stride + index;
    stride *= layout_.repetitions(map[d]);
  }
  return index + low;
}

// ---- tests

// A test against the window's size implies the one against the value's shape.
void add_padding(const thread::Exprs& e, Bounds& bounds, const Bounds& padding) {
  const std::size_t given = bounds.size();
  for (const Bound& p : padding) {
    bool implied = false;
    for (std::size_t i = 0; i < given; ++i)
      implied |= !bounds[i].lower && e.facts(bounds[i].limit).high <= e.facts(p.limit).low &&
                 bounds[i].at == p.at;
    if (!implied) bounds.push_back(p);
  }
}

Bounds Elements::padding(const DimMap& map) const {
  Bounds bounds;
  if (!nest_) return bounds;
  const bool all = is_opaque(map);
  for (int d = 0; d < layout_.rank(); ++d) {
    const bool wanted = all || std::find(map.begin(), map.end(), d) != map.end();
    const std::int64_t valid = nest_->valid[static_cast<std::size_t>(d)];
    if (!wanted || (valid == layout_.domain[static_cast<std::size_t>(d)] && !layout_.pads(d)))
      continue;
    if (is_before_end_of_block(d, valid)) continue;
    bounds.push_back({coordinates_[static_cast<std::size_t>(d)], e_.number(valid)});
  }
  return bounds;
}

Bounds Elements::bounds_of(const Address& a, const DimMap& map) const {
  Bounds bounds = a.bounds;
  add_padding(e_, bounds, padding(map));
  return bounds;
}

// All elements of a group stand on one side of a limit that is a multiple of their number: the
// first speaks for them.
Affine Elements::tested_coordinate(const Bound& b) const {
  if (element_ == no_expr || b.lower || b.at.coefficient(element_) != 1) return b.at;
  const Affine first = b.at.without(element_);
  const thread::Facts known = e_.facts(first);
  const bool together = (known.depends & (on_element | in_element)) == 0 &&
                        e_.facts(b.limit).multiple % vector_ == 0 && known.multiple % vector_ == 0;
  return together ? first : b.at;
}

ExprId Elements::predicate(const Bounds& bounds, std::vector<ExprId> others) {
  std::vector<ExprId> tests;
  for (const Bound& b : bounds) {
    const ExprId at = e_.sum(tested_coordinate(b));
    const thread::Facts &x = e_.facts(at), &limit = e_.facts(b.limit);
    if (b.lower ? x.low >= limit.high : x.high < limit.low) continue;
    tests.push_back(e_.plain(b.lower ? Operator::at_least : Operator::less, at, b.limit, bool_));
  }
  tests.insert(tests.end(), others.begin(), others.end());
  return e_.all(std::move(tests));
}

void Elements::add_range(Bounds& bounds, const Coordinates& c, const Extents& shape) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const thread::Facts known = e_.facts(e_.sum(c[d]));  // copied: expressions are made below
    if (known.high >= shape[d]) bounds.push_back({c[d], e_.number(shape[d])});
    if (known.low < 0) bounds.push_back({c[d], e_.number(0), true});
  }
}

// ---- elements that nobody wants

// The first of a thread's elements of the repetitions that the loops stand at.
Affine Elements::first_of_repetition(int d) const {
  const Affine first = coordinates_[static_cast<std::size_t>(d)].without(element_);
  return group_ == no_expr ? first : first.without(group_);
}

// Whether the first element of a thread's repetition says that it has none.
bool Elements::ends_loop(const NestEnd& end) const {
  constexpr Depends inside = thread::on_group | on_element | in_element;
  return layout_.repetitions(end.dimension) > 1 &&
         (e_.depends(first_of_repetition(end.dimension)) & inside) == 0;
}

// Then it speaks for all of them, which follow each other along the dimension.
bool Elements::ends_vectors(const NestEnd& end) const {
  std::int64_t together = 1;
  for (const std::uint32_t bit : fields_of(layout_, layout_.reg, end.dimension)) {
    if (bit != 0 && bit != together) return false;
    if (bit != 0) together *= 2;
  }
  return ends_loop(end) && multiple_of(extent_of(g_, end), g_.facts) % together == 0;
}

bool Elements::is_before_end(const Affine& x, const Dim& extent) const {
  return nest_ != nullptr && std::ranges::any_of(nest_->ends, [&](const NestEnd& end) {
           return extent_of(g_, end).same(extent) &&
                  x == coordinates_[static_cast<std::size_t>(end.dimension)] && ends_vectors(end);
         });
}

// Bounded blocks have no fewer elements than their arrays.
bool Elements::is_before_end_of_block(int d, std::int64_t size) const {
  return std::ranges::any_of(nest_->ends, [&](const NestEnd& end) {
    const BlockMapping& m = g_.mapping.block_mappings[static_cast<std::size_t>(end.mapping)];
    const BlockDim& block = m.block_shape[static_cast<std::size_t>(end.along)];
    return end.dimension == d && block.kind == BlockDim::Kind::bounded && block.size <= size &&
           ends_vectors(end);
  });
}

std::vector<Dim> Elements::ends_along(int d) const {
  std::vector<Dim> extents;
  for (const NestEnd& end : nest_->ends)
    if (end.dimension == d && ends_loop(end)) extents.push_back(extent_of(g_, end));
  return extents;
}

// ---- vectors

Depends Elements::depends(const Address& a, const Bounds& bounds) const {
  Depends d = e_.depends(a.base) | e_.depends(a.first) | e_.depends(a.offset) | e_.depends(a.skew);
  for (const Bound& b : bounds) d |= e_.depends(b.at) | e_.depends(b.limit);
  return d;
}

// The address moves with e, and nothing in it comes from what was computed for one element.
bool Elements::is_vector(const Address& a, const DimMap& map) const {
  if (!a.parts.empty() || vector_ == 1) return false;
  const Depends d = depends(a, bounds_of(a, map));
  return (d & on_element) != 0 && (d & in_element) == 0;
}

// Of what others may write while it is read nothing is read that nobody wants.
std::optional<thread::Span> Elements::span_around(const Address& a, const DimMap& map,
                                                  ExprId mask) {
  constexpr Depends on_elements = on_element | in_element;
  const bool is_still = a.shared ? a.apart && !a.resident && !a.peer : a.read_only;
  if (vector_ == 1 || !a.parts.empty() || !is_still || a.skew != no_expr ||
      (e_.depends(mask) & on_elements) != 0 || (is_vector(a, map) && vector_width(a, {}).width > 1))
    return {};
  auto span = thread::span_of(e_, a, element_, vector_);
  if (span && (e_.depends(predicate(bounds_of(a, map))) & on_elements) != 0) span.reset();
  return span;
}

bool Elements::is_together(const Address& a, const Bounds& bounds, ExprId mask) const {
  const Depends of_mask = e_.depends(mask);
  return vector_ > 1 && ((depends(a, bounds) | of_mask) & in_element) == 0 &&
         (of_mask & on_element) == 0;
}

bool Elements::is_plain(ValueId ref) const {
  if (g_.chooses(ref)) return false;
  for (ValueId v = ref; !g_.is_base(v); v = g_[v].args[0]) {
    const graph::Type &to = g_[v].type, &from = g_[g_[v].args[0]].type;
    if (g_[v].op == Op::RefReshape || to.dtype.bytes() != from.dtype.bytes()) return false;
  }
  return true;
}

bool Elements::loads_memory(StorageId storage) const {
  if (!enters(storage) || g_[nest_->value].op != Op::Load) return false;
  const graph::MemoryView m = graph::MemoryView::of(g_[nest_->value]);
  const Window& w = l_.windows[l_.window_of[g_.base(m.ref)]];
  return m.mask == graph::no_value && w.residency() != Residency::registers;
}

bool Elements::fills_vectors(const Address& a, StorageId storage) const {
  const Storage& s = l_.storages[storage];
  if (!s.in_registers() || vector_ == 1) return false;
  const Affine at = register_index(s.registers().layout, all_dimensions());
  if (at.coefficient(element_) != 1 || a.dtype != s.dtype || !is_vector(a, all_dimensions()))
    return false;
  if (a.resident && a.outside != no_expr) return false;
  return !a.staged || vector_width(a, a.bounds).width == vector_;
}

ExprId Elements::held_vector(const Store& s) {
  const graph::MemoryView m = graph::MemoryView::of(g_[s.inst]);
  const ExprId held = in_registers(nest_->value);
  if (held == no_expr || vector_ == 1 || m.mask != graph::no_value || !is_plain(m.ref))
    return no_expr;
  return e_.affine(e_[held].args[0]).coefficient(element_) == 1 ? held : no_expr;
}

// ---- halves of bytes

std::optional<Elements::HalvedBytes> Elements::halved_bytes(ValueId v, const Coordinates& c) {
  constexpr int least = 4;
  if (vector_ < least) return {};
  const graph::Halves halves = graph::halves_of(g_, v);
  if (halves.bytes == graph::no_value || e_.multiple(c.back().without(element_)) % vector_ != 0)
    return {};
  HalvedBytes bytes{
      .of = halves.bytes, .first = c, .count = vector_ / 2, .is_signed = halves.packed.is_signed()};
  bytes.first.back() = c.back().without(element_);
  constexpr Depends of_elements = thread::on_element | thread::in_element;
  const auto is_one = [&](const Affine& x) { return (e_.depends(x) & of_elements) == 0; };
  if (c.back().coefficient(element_) != 1 || !std::ranges::all_of(bytes.first, is_one)) return {};
  bytes.first.back() = Affine::term(
      let_coordinate(e_.plain(Operator::div, e_.sum(bytes.first.back()), e_.number(2))));
  bytes.byte = e_.variable(
      e_.declare({.name = "e",
                  .type = i32,
                  .facts = {.low = 0, .high = bytes.count - 1, .depends = thread::on_element}}));
  Coordinates each = bytes.first;
  each.back() = each.back() + Affine::term(bytes.byte);
  const StorageId storage = l_.storage_of[halves.bytes];
  if (storage && l_.storages[storage].in_shared() && !l_.storages[storage].shared().skewed)
    bytes.at = storage_address(storage, each);
  else if (!storage && is_read_directly(halves.bytes))
    bytes.at = address(g_[halves.bytes].args[0], each, DimMap(each.size(), opaque_dim));
  else
    return {};
  Bounds bounds = bytes.at.bounds;
  add_padding(e_, bounds, padding(all_dimensions()));
  if (!bytes.at.parts.empty() ||
      thread::width_of(e_, bytes.at, {}, bytes.byte, bytes.count).width != bytes.count)
    return {};
  if (predicate(bounds) == no_expr) return bytes;
  note_end_in_halves();
  return {};
}

// Of an array that nobody writes, all of what is asked for.
bool Elements::is_read_directly(ValueId load) const {
  if (g_[load].op != Op::Load || graph::MemoryView::of(g_[load]).mask != graph::no_value)
    return false;
  const Window& w = l_.window_loaded(load);
  return (w.is_direct() || w.is_staged()) && w.read_only && !g_.chooses(g_[load].args[0]);
}

ExprId Elements::halves_together(ValueId v, const Coordinates& c, DType to) {
  constexpr std::uint32_t vector_of_halves = UINT32_MAX - 1;
  if (vector_ == 1 || graph::halves_of(g_, v).bytes == graph::no_value) return no_expr;
  Key key = key_of(index(v), c);
  key.insert(key.begin(), {vector_of_halves, static_cast<std::uint32_t>(to.kind())});
  if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
  const std::optional<HalvedBytes> bytes = halved_bytes(v, c);
  if (!bytes) return no_expr;
  return memo_[key] = converted_halves(*bytes, to);
}

// ---- rows that end between two vectors of a thread

// Whether each thread has a vector in the row, and beyond it whole ones, a repetition away.
bool Elements::has_later_vectors() const {
  const int d = layout_.rank() - 1;
  if (nest_ == nullptr || d < 0) return false;
  const auto at = static_cast<std::size_t>(d);
  const bool rolled = at < nest_->rolled.size() && nest_->rolled[at] > 0;
  const Depends on = e_.depends(coordinates_[at]);
  return vector_ > 1 && !rolled && layout_.pads(d) && nest_->valid[at] == layout_.domain[at] &&
         layout_.domain[at] % vector_ == 0 && layout_.tile(d) <= layout_.domain[at] &&
         (on & thread::on_group) == 0;
}

Elements::RowEnd Elements::row_end(const Address& a, const Bounds& bounds) {
  if (!has_later_vectors() || a.shared || !a.parts.empty()) return {};
  const auto d = static_cast<std::size_t>(layout_.rank() - 1);
  RowEnd found{.iteration = repetitions_[d], .step = a.offset.coefficient(repetitions_[d])};
  const Depends on_iteration = thread::on_repetition(static_cast<int>(d));
  found.first = a.offset.without(found.iteration);
  if ((e_.depends(found.first) & on_iteration) != 0) return {};
  const Bound end{coordinates_[d], e_.number(layout_.domain[d])};
  for (const Bound& b : bounds) {
    if ((e_.depends(b.at) & on_iteration) == 0)
      found.others.push_back(b);
    else if (b.lower || !(b.at == end.at) || b.limit != end.limit)
      return {};
  }
  found.inside = predicate({end});
  if (found.inside == no_expr || (e_.depends(found.inside) & on_element) != 0) return {};
  return found;
}

// ---- blocks

const BlockNames& Elements::as_nest_sees(WindowId window, const BlockNames& names) {
  if (nest_ == nullptr || !nest_->whole) return names;
  const auto [it, is_new] = whole_blocks_.try_emplace(window, names);
  if (is_new) {
    std::ranges::fill(it->second.size, no_expr);
    std::ranges::fill(it->second.from, no_expr);
  }
  return it->second;
}

std::vector<std::pair<ExprId, std::int64_t>> tests_of_whole(const Program& l,
                                                            const thread::Exprs& e, WindowId window,
                                                            const BlockNames& names) {
  std::vector<std::pair<ExprId, std::int64_t>> tests;
  const auto require = [&](ExprId x, std::int64_t n) {
    const thread::Facts known = e.facts(x);
    if (known.low != n || known.high != n) tests.emplace_back(x, n);
  };
  for (std::size_t d = 0; d < names.size.size(); ++d) {
    if (names.size[d] == no_expr) continue;
    require(names.size[d], loaded(l, l.windows[window], static_cast<int>(d)).size);
    if (names.from[d] != no_expr) require(names.from[d], 0);
  }
  return tests;
}

std::pair<Bounds, Bounds> Elements::limits() const {
  Bounds value, storage;
  for (int d = 0; d < layout_.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (nest_->valid[at] != layout_.domain[at])
      value.push_back({coordinates_[at], e_.number(nest_->valid[at])});
    if (layout_.pads(d)) storage.push_back({coordinates_[at], e_.number(layout_.domain[at])});
  }
  return {value, storage};
}

// ---- rows that are divided

std::vector<Elements::Counting> Elements::countings() const {
  std::vector<Counting> loops;
  for (const int over : nest_->loops)
    if (over == over_groups)
      loops.push_back({over, group_, groups()});
    else
      loops.push_back(
          {over, repetitions_[static_cast<std::size_t>(over)], layout_.repetitions(over)});
  return loops;
}

std::pair<Affine, std::int64_t> Elements::place_in_row(std::span<const Counting> row) const {
  Affine at = vector_ > 1 ? Affine::term(element_) : Affine();
  std::int64_t count = vector_;
  for (std::size_t k = row.size(); k-- > 0; count *= row[k].count)
    at = Affine::term(row[k].counter) * count + at;
  return {at, count};
}

// ---- rows of staged windows

bool Elements::reads_row(const Address& a, const DimMap& map, ExprId mask) {
  if (!a.staged || mask != no_expr || !a.parts.empty()) return false;
  const ExprId test = predicate(bounds_of(a, map));
  if ((e_.depends(test) & (on_element | in_element)) != 0) return false;
  return vector_ == 1 || (is_vector(a, map) && thread::width_around(e_, a, element_, vector_) > 0);
}

RowSpan Elements::wanted_of(const Address& a) const {
  const int width = vector_ == 1 ? 1 : thread::width_around(e_, a, element_, vector_);
  const std::int64_t at = a.offset.constant();
  const std::int64_t low = at - ((at % width) + width) % width;
  return {.low = low, .high = low + cdiv(at - low + vector_, width) * width, .width = width};
}

Affine Elements::row_of(const Address& a) const {
  return a.offset.without(element_) + Affine(-a.offset.constant());
}

// ---- sums of integers

// What a sum of integers adds, sums that nothing else uses taken apart; nothing of few.
std::vector<ValueId> Elements::addends_of(ValueId v) const {
  constexpr std::size_t fewest = 4;
  std::vector<ValueId> found, stack{v};
  if (g_[v].op != Op::Add || !g_[v].type.dtype.is_integer()) return found;
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    const graph::Inst& i = g_[next];
    const bool apart = i.op == Op::Add && l_.uses[next] == 1 && !l_.storage_of[next];
    if (next == v || apart)
      stack.insert(stack.end(), i.args.rbegin(), i.args.rend());
    else
      found.push_back(next);
  }
  if (found.size() < fewest) found.clear();
  return found;
}

// ---- windows

std::vector<WindowId> accessed_windows(const Program& l, const LoopNest& p) {
  const graph::Graph& g = l.graph;
  std::vector<WindowId> windows;
  const auto accessed = [&](ValueId access) {
    windows.push_back(l.window_of[g.base(g[access].args[0])]);
  };
  const bool wanted = std::visit(
      Overloaded{[&](const Assign&) { return true; },
                 [&](const Store& s) { return accessed(s.inst), true; },
                 [&](const Update& s) { return accessed(s.inst), true; },
                 [&](const Fill& s) { return windows.push_back(s.window), !s.by.asynchronous; },
                 [&](const Flush& s) { return windows.push_back(s.window), true; },
                 [](const auto&) { return false; }},
      p.sink);
  if (!wanted) return {};
  for (const Effect& e : element_reads(l, p)) {
    const bool load = g[e.leaf].op == Op::Load || g[e.leaf].op == Op::Swap;
    if (load && (e.window || l.storage_of[e.leaf] != e.own_storage())) accessed(e.leaf);
  }
  std::ranges::sort(windows);
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  return windows;
}

}  // namespace palladium::passes
