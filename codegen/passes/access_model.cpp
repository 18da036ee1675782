#include "codegen/passes/access_model.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "codegen/thread/evaluate.hpp"

namespace palladium::passes {

using thread::Address;
using thread::Affine;
using thread::ExprId;
using thread::no_expr;
using thread::VariableId;

namespace {

// What a size or stride that is known at the call alone is taken for.
constexpr std::int64_t least_unknown = 4096;

}  // namespace

AccessModel::AccessModel(const Program& l)
    : Elements(l, exprs_), indices_(l.graph, exprs_), blocks_(l.windows.size()) {
  for (int s = 0; s < g_.num_symbols; ++s) symbols_.push_back(unknown(i64, facts_of_symbol(g_, s)));
  thread_ = unknown(i32, {.low = 0, .high = l.threads() - 1, .depends = thread::on_thread});
  for (const BlockMapping& m : g_.mapping.block_mappings)
    if (m.index_map != no_region)
      for (std::size_t i = 0; i < g_.mapping.grid.size(); ++i)
        indices_.set(g_[graph::RegionId{m.index_map}].params[i], program_id(static_cast<int>(i)));
}

ExprId AccessModel::unknown(DType t, const thread::Facts& facts) {
  return e_.variable(e_.declare({.name = "", .type = t, .facts = facts}));
}

ExprId AccessModel::let_coordinate(ExprId value) {
  thread::Facts known = e_.facts(value);
  // As in a program, where the name stands in the loop over elements.
  if ((known.depends & thread::on_element) != 0) known.depends |= thread::in_element;
  const ExprId name = unknown(i32, known);
  names_[e_[name].variable] = values_of(value);
  named_[e_[name].variable] = {value};
  return name;
}

ExprId AccessModel::program_id(int axis) {
  ExprId& known = program_ids_.try_emplace(axis, no_expr).first->second;
  const Dim& d = g_.mapping.grid[static_cast<std::size_t>(axis)];
  if (known == no_expr)
    known = unknown(i32, {.low = 0, .high = d.is_static() ? d.value() - 1 : INT32_MAX - 1});
  return known;
}

// Of what is loaded nothing is known but with what it changes: threads find their elements apart.
Affine AccessModel::chosen_index(ValueId v, const Coordinates& c, const DimMap&) {
  if (const auto sum = sums_.of(v, c)) return *sum;
  std::vector<std::uint32_t> key{index(v)};
  thread::Depends depends = 0;
  for (const Affine& a : c) {
    key.push_back(thread::index(e_.sum(a)));
    depends |= e_.depends(a);
  }
  if ((depends & thread::on_element) != 0) depends |= thread::in_element;
  ExprId& known = chosen_.try_emplace(std::move(key), no_expr).first->second;
  if (known == no_expr) {
    known = unknown(i32, {.low = 0, .high = INT32_MAX, .depends = depends});
    names_[e_[known].variable] = scattered(c);
  }
  return Affine::term(known);
}

AccessModel::OfThreads AccessModel::scattered(const Coordinates& c) {
  constexpr std::int64_t apart = 67;
  OfThreads all = {};
  for (const Affine& a : c) {
    const OfThreads values = values_of(e_.sum(a));
    for (std::size_t t = 0; t < all.size(); ++t) all[t] = (all[t] + values[t]) * apart;
  }
  return all;
}

const BlockNames& AccessModel::block(WindowId window) {
  std::optional<BlockNames>& known = blocks_[window];
  if (known) return *known;
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  BlockNames names{.pointer = e_.number(0, i64), .size = {}, .from = {}, .multiple = {}};
  for (std::size_t d = 0; d < m.block_shape.size(); ++d) {
    const BlockDim& b = m.block_shape[d];
    const ExprId at = m.index_map == no_region
                          ? e_.number(0)
                          : indices_.expr(g_[graph::RegionId{m.index_map}].yields[d]);
    const Loaded loaded = passes::loaded(l_, w, static_cast<int>(d));
    const ExprId start = start_of_block(e_, b, at, i64, loaded.lead);
    const thread::Facts extent = e_.facts(dim(m.array_aval.shape[static_cast<int>(d)]));
    const bool padded = b.kind == BlockDim::Kind::element && b.pad_lo + b.pad_hi > 0;
    const bool inside = loaded.in_bounds;
    const std::int64_t multiple = e_.facts(start).multiple;
    names.multiple.push_back(multiple);
    thread::Facts size =
        facts_of_size(g_, m, static_cast<int>(d), loaded.size, extent, e_.facts(start));
    if (b.kind == BlockDim::Kind::bounded_slice)
      size.multiple =
          std::gcd(size.multiple, e_.facts(indices_.expr(size_of_slice(g_, m, d))).multiple);
    names.size.push_back(inside ? no_expr
                                : size_name(start, m.array_aval.shape[static_cast<int>(d)], size));
    names.from.push_back(inside || !padded ? no_expr
                                           : unknown(i32, facts_of_from(loaded.size, multiple)));
  }
  known = std::move(names);
  return *known;
}

// Blocks that begin and end alike have one.
ExprId AccessModel::size_name(ExprId start, const Dim& extent, const thread::Facts& known) {
  const ExprId end = dim(extent);
  ExprId& name = sizes_.try_emplace({start, end, known.low, known.high, known.multiple}, no_expr)
                     .first->second;
  if (name == no_expr) name = unknown(i32, known);
  return name;
}

ExprId AccessModel::stride(int mapping, int d) {
  ExprId& known = strides_.try_emplace({mapping, d}, no_expr).first->second;
  if (known == no_expr) known = unknown(i64, facts_of_stride(g_.mapping.block_mappings[mapping]));
  return known;
}

void AccessModel::enter(const LoopNest& p, const layout::Layout& layout) {
  Elements::enter(p, layout);
  const auto counter = [&](std::int64_t count, thread::Depends on) {
    ExprId& known = counters_of_.try_emplace({count, on}, no_expr).first->second;
    if (known == no_expr) known = unknown(i32, {.low = 0, .high = count - 1, .depends = on});
    return known;
  };
  group_ = counter(groups(), thread::on_group);
  element_ = counter(vector_, thread::on_element);
  repetitions_.clear();
  coordinates_.clear();
  warps_ = layout.warp;
  for (int d = 0; d < layout.rank(); ++d)
    repetitions_.push_back(counter(layout.repetitions(d), thread::on_repetition(d)));
  const Counters counters{group_, element_, repetitions_, vector_bits_};
  for (int d = 0; d < layout.rank(); ++d) {
    const ExprId part = thread_part(e_, layout, d, thread_);
    coordinates_.push_back((part == no_expr ? Affine() : named_index(part)) +
                           counted_part(e_, layout, d, counters));
  }
}

// ---- values

ExprId AccessModel::temporary(const char*, ExprId value) {
  thread::Facts known = e_.facts(value);
  if ((known.depends & thread::on_element) != 0) known.depends |= thread::in_element;
  return unknown(e_[value].type, known);
}

ExprId AccessModel::held_value(StorageId storage, const DimMap& map) {
  const Storage& s = l_.storages[storage];
  if (s.is_scalar()) {
    const ValueId of = s.of;
    if (of != graph::no_value && g_[of].type.is_scalar() && s.dtype.is_integer())
      return indices_.expr(of);
    return unknown(s.dtype, {});
  }
  const auto [it, is_new] = registers_.try_emplace(storage, thread::no_variable);
  if (is_new)
    it->second = e_.declare({.name = "",
                             .form = thread::Form::array,
                             .type = s.dtype,
                             .count = s.registers().layout.registers(),
                             .facts = {.depends = thread::on_thread}});
  return e_.element(it->second, e_.sum(register_index(s.registers().layout, map)));
}

ExprId AccessModel::hinted(const Pending& p) {
  const graph::Inst& i = g_[p.v];
  return i.type.shape.empty() && i.op == graph::Op::MultipleOf
             ? e_.multiple_of(p.operands[0], graph::hint(i)[0])
             : p.operands[0];
}

ExprId AccessModel::converted_halves(const HalvedBytes& bytes, DType to) {
  return unknown(to, {.depends = depends(bytes.at, {})});
}

ExprId AccessModel::skew_of(const Address& row) {
  return unknown(u32, {.low = 0, .high = 15, .depends = depends(row, {})});
}

ExprId AccessModel::access(const Address& a, const DimMap& map, ExprId mask) {
  thread::Depends known = depends(a, bounds_of(a, map)) | e_.depends(mask);
  if ((known & thread::on_element) != 0 && !is_vector(a, map)) known |= thread::in_element;
  return unknown(a.dtype, {.depends = known});
}

ExprId AccessModel::sum_of(ValueId v, std::vector<ExprId> addends) {
  ExprId total = addends[0];
  for (std::size_t k = 1; k < addends.size(); ++k)
    total = operation(g_[v], coordinates_, {total, addends[k]});
  return total;
}

// ---- accesses in a layout that is weighed

Coordinates AccessModel::coordinates(const DimMap& map) const {
  Coordinates c;
  for (const int d : map) c.push_back(d < 0 ? Affine() : coordinates_[static_cast<std::size_t>(d)]);
  return c;
}

Address AccessModel::in_view(ValueId ref, const DimMap& map) {
  return address(ref, coordinates(map), map);
}

Address AccessModel::place(ValueId ref, const DimMap& map) {
  const Coordinates c = coordinates(map);
  // A window that is filled or flushed is one of global memory then.
  return g_.is_base(ref) ? window_address(l_.window_of[ref], c) : address(ref, c, map);
}

std::optional<layout::AccessCost> AccessModel::cost(ValueId ref, const DimMap& map,
                                                    const layout::Layout& layout) {
  const Address a = place(ref, map);
  if (!a.parts.empty()) return std::nullopt;
  int width = thread::width_of(e_, a, a.bounds, element_, vector_).width;
  layout::Around around;
  if (const auto span = width > 1 ? std::nullopt : span_around(a, map, no_expr)) {
    around = {span->count / span->width, std::int64_t{span->width} * a.dtype.bytes()};
    width = vector_;
  }
  const ExprId offset = e_.sum(a.offset, i64);
  const OfThreads at = values_of(offset);
  std::vector<std::int64_t> distances;
  for (std::size_t b = 1; b < at.size(); ++b)
    distances.push_back(std::abs(at[b] - at[0]) * a.dtype.bytes());
  int alike = 1;
  for (std::size_t b = 0; b < warps_.size(); ++b)
    if (warps_[b] != 0 && layout.warp[b] == 0) alike *= 2;
  return layout::access_cost(layout, width, a.dtype.bytes(), distances, alike, around);
}

int AccessModel::whole_width(ValueId ref, const DimMap& map) {
  Address a = place(ref, map);
  a.zeros = true;  // no access ends within its elements
  if (!a.parts.empty()) return 1;
  return thread::width_of(e_, a, a.bounds, element_, vector_).width;
}

int AccessModel::staged_width(ValueId ref, const DimMap& map) {
  const Address a = in_view(ref, map);
  return a.parts.empty() ? std::max(1, thread::width_around(e_, a, element_, vector_)) : 1;
}

double AccessModel::wavefronts(ValueId ref, const DimMap& map) {
  const Address a = in_view(ref, map);
  return a.parts.empty() ? wavefronts(a, staged_width(ref, map)) : 1;
}

double AccessModel::wavefronts(StorageId storage, const DimMap& map, std::int64_t width) {
  return wavefronts(storage_address(storage, coordinates(map)), width);
}

// Lanes whose bytes fill a wavefront are served together; each bank gives one word at a time.
double AccessModel::wavefronts(const Address& a, std::int64_t width) {
  constexpr std::int64_t bank = 4, banks = 32;
  const ExprId at = e_.sum(a.offset, i64);
  const std::int64_t bytes = std::max(bank, std::int64_t{a.dtype.bytes()} * width);
  const std::int64_t together = banks * bank / bytes, lanes = 1 << layout::lane_bits;
  double total = 0;
  for (std::int64_t first = 0; first < lanes; first += together) {
    std::vector<std::int64_t> words;
    for (std::int64_t lane = first; lane < first + together; ++lane) {
      const std::int64_t word = in_lane(at, lane) * a.dtype.bytes() / bank;
      for (std::int64_t k = 0; k < bytes / bank; ++k) words.push_back(word + k);
    }
    std::ranges::sort(words);
    std::array<int, banks> of_bank = {};  // different words
    for (std::size_t i = 0; i < words.size(); ++i)
      of_bank[static_cast<std::size_t>(words[i] % banks)] += i == 0 || words[i] != words[i - 1];
    total += std::ranges::max(of_bank);
  }
  return total * static_cast<double>(together) / static_cast<double>(lanes);
}

// In the first iterations of the loops.
AccessModel::OfThreads AccessModel::values_of(ExprId e) const {
  OfThreads values = {};
  for (std::size_t t = 0; t < values.size(); ++t)
    values[t] = thread::evaluate(e_, e, [&](VariableId v) { return value_of(v, t); }).value_or(0);
  return values;
}

// What is chosen by data is the sum of what the bits of the thread's number give.
std::int64_t AccessModel::in_lane(ExprId e, std::int64_t lane) const {
  const auto value = [&](VariableId v) -> std::int64_t {
    if (v == e_[thread_].variable) return lane;
    if (const auto stands = named_.find(v); stands != named_.end()) {
      std::optional<std::int64_t>& known = stands->second.in_lanes[static_cast<std::size_t>(lane)];
      if (!known) known = in_lane(stands->second.value, lane);
      return *known;
    }
    const auto named = names_.find(v);
    if (named == names_.end()) return value_of(v, 0);
    const OfThreads& of = named->second;
    std::int64_t n = of[0];
    for (std::size_t b = 0; b < layout::lane_bits; ++b)
      if ((lane >> b & 1) != 0) n += of[b + 1] - of[0];
    return n;
  };
  return thread::evaluate(e_, e, value).value_or(0);
}

std::int64_t AccessModel::value_of(VariableId v, std::size_t thread) const {
  if (v == e_[thread_].variable) return thread == 0 ? 0 : std::int64_t{1} << (thread - 1);
  if (const auto it = names_.find(v); it != names_.end()) return it->second[thread];
  const thread::Facts& known = e_[v].facts;
  if (known.depends != 0 || e_[v].type != i64) return std::max<std::int64_t>(0, known.low);
  const std::int64_t by = std::max<std::int64_t>(1, known.multiple);
  return (least_unknown + by - 1) / by * by;
}

int AccessModel::widest(ValueId ref) {
  return widest(g_[ref].type, [&](const Coordinates& c) {
    return address(ref, c, DimMap(c.size(), opaque_dim));
  });
}

int AccessModel::widest_of_block(WindowId window) {
  return widest(g_[l_.windows[window].root].type,
                [&](const Coordinates& c) { return window_address(window, c); });
}

bool AccessModel::has_neighbours(ValueId ref) {
  const Extents& shape = g_[ref].type.shape;
  const ExprId element = unknown(i32, {.low = 0, .high = 1, .depends = thread::on_element});
  constexpr thread::Depends on_elements = thread::on_element | thread::in_element;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Coordinates c;
    for (std::size_t k = 0; k < shape.size(); ++k)
      c.push_back(Affine::term(k == d ? element : unknown(i32, {.low = 0})));
    const Address a = g_.is_base(ref) ? window_address(l_.window_of[ref], c)
                                      : address(ref, c, DimMap(c.size(), opaque_dim));
    if (shape[d] > 1 && a.parts.empty() && a.offset.coefficient(element) == 1 &&
        (e_.depends(a.offset.without(element)) & on_elements) == 0)
      return true;
  }
  return false;
}

template <class F>
int AccessModel::widest(const graph::Type& type, F&& address_of) {
  const int rank = static_cast<int>(type.shape.size());
  const int vector = 16 / type.dtype.bytes();
  const ExprId element =
      unknown(i32, {.low = 0, .high = vector - 1, .depends = thread::on_element});
  int most = 1;
  for (int d = 0; d < rank; ++d) {
    Coordinates c;
    for (int k = 0; k < rank; ++k)
      c.push_back(Affine::term(unknown(i32, {.multiple = k == d ? vector : 1, .low = 0})));
    c[static_cast<std::size_t>(d)] = c[static_cast<std::size_t>(d)] + Affine::term(element);
    const Address a = address_of(c);
    if (a.parts.empty())
      most = std::max(most, thread::width_of(e_, a, a.bounds, element, vector).width);
  }
  return most;
}

}  // namespace palladium::passes
