#include "codegen/passes/nest_model.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace palladium::passes {

using graph::MemoryView;
using thread::Address;
using thread::Affine;
using thread::Bounds;
using thread::ExprId;
using thread::no_expr;

bool adds_vectors(const Program& l, const lowered::Update& u) {
  const graph::Inst& i = l.graph[u.inst];
  const DType t = l.graph[i.args[0]].type.dtype;
  return !u.storage && graph::update_of(i) == graph::Update::add &&
         (t == f32 || t == f16 || t == bf16);
}

NestModel::Found NestModel::look(const LoopNest& p) {
  found_ = {};
  memo_.clear();
  quotients_.clear();
  row_numbers_.clear();
  rows_by_array_.clear();
  row_sums_.clear();
  row_arrays_.clear();
  met_.clear();
  has_conditions_ = false;
  AccessModel::enter(p, p.layout);
  divide();
  std::visit([this](const auto& sink) { look_at(sink); }, p.sink);
  found_.has_conditions = has_conditions_;
  join_rows();
  share_columns();
  return std::move(found_);
}

// ---- blocks

ExprId NestModel::shared_address(StorageId storage) {
  const auto [it, is_new] = shared_addresses_.try_emplace(storage, no_expr);
  if (is_new) it->second = unknown(u32, {});
  return it->second;
}

std::size_t NestModel::tests_of(const std::vector<WindowId>& windows) {
  std::set<std::pair<ExprId, std::int64_t>> tests;
  for (const WindowId w : windows) {
    if (l_.windows[w].mapping < 0) continue;
    for (const auto& [x, n] : tests_of_whole(l_, e_, w, AccessModel::block(w))) {
      if (e_.facts(x).high < n) return 0;
      tests.emplace(x, n);
    }
  }
  return tests.size();
}

// Copies of blocks do not ask where these end.
bool NestModel::may_end(const std::vector<WindowId>& windows) const {
  return std::ranges::any_of(windows, [&](WindowId i) {
    const Window& w = l_.windows[i];
    if (w.mapping < 0 || w.is_staged()) return false;
    for (int d = 0; d < static_cast<int>(w.in_bounds.size()); ++d)
      if (!loaded(l_, w, d).in_bounds) return true;
    return false;
  });
}

bool NestModel::pads_rows(const LoopNest& p) {
  AccessModel::enter(p, p.layout);
  return has_later_vectors();
}

// ---- what becomes of elements

ExprId NestModel::evaluated(ValueId v, bool enter) {
  return v == graph::no_value ? no_expr : evaluate(v, coordinates_, all_dimensions(), enter);
}

void NestModel::divide() {
  if (nest_->divided.empty()) return;
  const std::vector<Counting> loops = countings();
  const auto [at, count] = place_in_row(
      std::span(loops).subspan(loops.size() - static_cast<std::size_t>(nest_->row_loops)));
  for (const ValueId v : nest_->divided) {
    evaluated(g_[v].args[1]);
    if (in_registers(g_[v].args[0]) == no_expr) evaluated(g_[v].args[0]);
    const thread::VariableId q = e_.declare({.name = "",
                                             .form = thread::Form::array,
                                             .type = f32,
                                             .count = count,
                                             .facts = {.depends = thread::on_thread}});
    quotients_[v] = e_.element(q, e_.sum(at));
  }
}

void NestModel::look_at(const Assign& s) {
  if (!loads_memory(s.storage)) return void(evaluated(nest_->value, enters(s.storage)));
  const Address a = address(g_[nest_->value].args[0], coordinates_, all_dimensions());
  if (!l_.storages[s.storage].is_packed() && fills_vectors(a, s.storage)) return copied(a);
  evaluated(nest_->value, true);
}

void NestModel::look_at(const Stage& s) { evaluated(nest_->value, enters(s.storage)); }
void NestModel::look_at(const Reduce&) { evaluated(nest_->value); }
void NestModel::look_at(const Scan&) { evaluated(nest_->value); }
void NestModel::look_at(const Print&) { evaluated(nest_->value); }
void NestModel::look_at(const Spill&) {}

void NestModel::look_at(const Clear& s) {
  stored(storage_address(s.storage, coordinates_), evaluated(nest_->value), limits().second);
}

void NestModel::look_at(const Store& s) {
  const MemoryView m = MemoryView::of(g_[s.inst]);
  if (held_vector(s) != no_expr)
    if (const Address a = store_address(m.ref); a.parts.empty())
      return moved(a, bounds_of(a, all_dimensions()));
  evaluated(nest_->value);
  const ExprId mask = evaluated(m.mask);
  stored(store_address(m.ref), mask, padding(all_dimensions()));
}

void NestModel::look_at(const Update& s) {
  const MemoryView m = MemoryView::of(g_[s.inst]);
  for (const ValueId v : {m.value, m.other, m.mask}) evaluated(v);
  (void)store_address(m.ref);
  if (s.storage)
    stored(storage_address(s.storage, coordinates_), no_expr, padding(all_dimensions()));
}

void NestModel::look_at(const Fill& s) {
  const Address from = window_address(s.window, coordinates_);
  const bool shared = l_.storages[s.storage].in_shared();
  if (l_.windows[s.window].is_staged()) {
    moved(from, bounds_of(from, all_dimensions()));
    Bounds bounds;
    add_padding(e_, bounds, padding(all_dimensions()));
    return moved(storage_address(s.storage, coordinates_), bounds);
  }
  if (!shared && fills_vectors(from, s.storage)) return copied(from);
  (void)access(from, all_dimensions(), no_expr);
  if (shared) stored(storage_address(s.storage, coordinates_), no_expr, limits().second);
}

void NestModel::look_at(const Flush& s) {
  const Storage& storage = l_.storages[s.from];
  const Address to = window_address(s.window, coordinates_);
  if (storage.in_shared()) {
    const Address from = storage_address(s.from, coordinates_);
    return moved(to, bounds_of(to, all_dimensions()), vector_width(from, {}).width);
  }
  const bool as_it_is =
      storage.in_registers() && vector_ > 1 && to.dtype == storage.dtype &&
      register_index(storage.registers().layout, all_dimensions()).coefficient(element_) == 1;
  if (as_it_is) return moved(to, bounds_of(to, all_dimensions()));
  stored(to, no_expr, padding(all_dimensions()));
}

// ---- accesses

void NestModel::moved(const Address& a, const Bounds& bounds, int most) {
  const thread::Width w = vector_width(a, bounds);
  found_.has_parts |= w.part || std::min(w.width, most) < vector_width(a, {}).width;
}

void NestModel::copied(const Address& a) {
  const Bounds bounds = bounds_of(a, all_dimensions());
  found_.may_repeat = row_end(a, bounds).step != 0;
  moved(a, bounds);
}

void NestModel::stored(const Address& a, ExprId mask, const Bounds& limits) {
  if (!a.parts.empty()) return;
  Bounds bounds = a.bounds;
  add_padding(e_, bounds, limits);
  if (!is_together(a, bounds, mask)) return;
  found_.stores_vectors = mask == no_expr;
  moved(a, bounds);
}

ExprId NestModel::load(const Pending& p, ExprId mask) {
  const ValueId outer = std::exchange(loaded_, p.v);
  const ExprId value = AccessModel::load(p, mask);
  loaded_ = outer;
  return value;
}

ExprId NestModel::access(const Address& a, const DimMap& map, ExprId mask) {
  const auto span = span_around(a, map, mask);
  const int width = span                ? span->width
                    : is_vector(a, map) ? vector_width(a, bounds_of(a, map)).width
                                        : 1;
  const auto [known, is_new] = found_.widths.try_emplace(loaded_, width);
  if (!is_new) known->second = std::min(known->second, width);
  if (a.parts.empty() && reads_row(a, map, mask)) return row_element(a);
  constexpr thread::Depends on_elements = thread::on_element | thread::in_element;
  if ((e_.depends(mask) & on_elements) == 0 && is_vector(a, map)) moved(a, bounds_of(a, map));
  if (a.outside != no_expr && a.resident && predicate(a.bounds) != no_expr)
    found_.has_parts |= !nest_->whole;
  return AccessModel::access(a, map, mask);
}

ExprId NestModel::converted_halves(const HalvedBytes& bytes, DType to) {
  found_.widths.try_emplace(bytes.of, bytes.count);
  return AccessModel::converted_halves(bytes, to);
}

// ---- rows of staged windows

ExprId NestModel::row_element(const Address& a) {
  const auto key = std::pair(a.base, e_.sum(row_of(a)));
  const auto [it, is_new] = row_numbers_.try_emplace(key, row_numbers_.size());
  if (is_new) {
    found_.rows.emplace_back();
    const thread::VariableId array =
        e_.declare({.name = "",
                    .form = thread::Form::array,
                    .type = a.dtype,
                    .count = INT32_MAX,
                    .facts = {.depends = depends(a, {}) & ~thread::on_element}});
    rows_by_array_[array] = it->second;
    row_arrays_.push_back(array);
  }
  found_.rows[it->second].spans.push_back(wanted_of(a));
  met_.emplace_back(it->second, found_.rows[it->second].spans.back().low);
  const Affine element = vector_ == 1 ? Affine() : Affine::term(element_);
  return e_.element(row_arrays_[it->second], e_.sum(element + Affine(a.offset.constant())));
}

// What is wanted of each row, joined where it touches.
void NestModel::join_rows() {
  for (SharedRow& row : found_.rows) {
    std::ranges::sort(row.spans, {}, &RowSpan::low);
    std::vector<RowSpan> joined;
    for (const RowSpan& s : row.spans) {
      if (joined.empty() || joined.back().high < s.low)
        joined.push_back(s);
      else
        joined.back().high = std::max(joined.back().high, s.high);
    }
    row.spans = std::move(joined);
  }
}

// ---- sums of integers

ExprId NestModel::sum_of(ValueId v, std::vector<ExprId> addends) {
  Sum sum{.value = v};
  for (std::size_t k = 0; k < addends.size(); ++k) {
    const thread::Expr* x = &e_[addends[k]];
    if (x->node == thread::Node::op && x->op == graph::Op::Cast) x = &e_[x->args[0]];
    const auto row =
        x->node == thread::Node::element ? rows_by_array_.find(x->variable) : rows_by_array_.end();
    if (row == rows_by_array_.end()) continue;
    const Affine at = e_.affine(x->args[0]), column = at.without(element_);
    if (at.coefficient(element_) == 1 && column.is_constant())
      sum.taps.push_back({row->second, column.constant(), static_cast<int>(k)});
  }
  row_sums_.push_back(std::move(sum));
  return AccessModel::sum_of(v, std::move(addends));
}

// The span that holds an element, as the number of the first access to it.
std::size_t NestModel::span_of(const Tap& tap) const {
  const std::vector<RowSpan>& spans = found_.rows[tap.row].spans;
  const auto span = std::ranges::find_if(
      spans, [&](const RowSpan& s) { return s.low <= tap.column && tap.column < s.high; });
  const auto first = std::ranges::find_if(met_, [&](const auto& met) {
    return met.first == tap.row && span->low <= met.second && met.second < span->high;
  });
  return static_cast<std::size_t>(first - met_.begin());
}

// Rows of which the same columns are added are added to one, where that adds less.
std::vector<SharedColumns> NestModel::shared_columns(const Sum& sum) const {
  std::map<std::size_t, std::map<std::int64_t, int>> rows;  // the first, where one is added twice
  for (const Tap& t : sum.taps) rows[span_of(t)].try_emplace(t.column, t.number);
  std::map<std::vector<std::int64_t>, SharedColumns> alike;
  for (const auto& [span, taps] : rows) {
    std::vector<std::int64_t> columns;
    std::vector<int> places;
    for (const auto& [column, number] : taps) {
      columns.push_back(column - taps.begin()->first);
      places.push_back(number);
    }
    SharedColumns& all = alike[columns];
    all.sum = sum.value;
    all.rows.push_back(std::move(places));
  }
  std::vector<SharedColumns> shared;
  for (auto& [columns, all] : alike) {
    const std::int64_t longer = columns.back() + vector_;
    const auto each = vector_ * static_cast<std::int64_t>(columns.size());
    if (all.rows.size() > 1 && longer < each) shared.push_back(std::move(all));
  }
  return shared;
}

// Of a sum that is evaluated at several places, what holds at all of them.
void NestModel::share_columns() {
  if (vector_ == 1) return;
  std::map<ValueId, std::vector<SharedColumns>> known;
  std::set<ValueId> differing;
  std::vector<ValueId> order;
  for (const Sum& sum : row_sums_) {
    std::vector<SharedColumns> shared = shared_columns(sum);
    const auto [it, is_new] = known.try_emplace(sum.value, shared);
    if (is_new)
      order.push_back(sum.value);
    else if (it->second != shared)
      differing.insert(sum.value);
  }
  for (const ValueId v : order)
    if (!differing.contains(v))
      found_.columns.insert(found_.columns.end(), known[v].begin(), known[v].end());
}

}  // namespace palladium::passes
