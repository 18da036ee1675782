// Staged windows: how they come to shared memory, and how rows of them are read that several reads
// share, at offsets which are aligned for none of them.
#include <algorithm>

#include "codegen/expand/nest.hpp"
#include "codegen/lowered/effects.hpp"

namespace palladium::expand {

using graph::Op;
using lowered::Residency;

// From global memory to shared memory, by way of registers.
void Nest::stage(const lowered::Fill& s) {
  const DimMap all = lowered::identity_map(layout_.rank());
  Address from = window_address(s.window, coordinates_);
  from.zeros = l_.windows[s.window].staged().zeros;
  const Address to = storage_address(s.storage, coordinates_);
  if (s.by.asynchronous && copies_asynchronously(from, s.storage, {true, from.zeros || s.by.zeros}))
    return;
  const VariableId moved = unfilled("a", from.dtype, vector_ == 1 ? 0 : vector_);
  Vector store{.direction = Direction::store,
               .function = Row::store_shared,
               .function_of_part = Row::store_shared,
               .place = to,
               .array = moved,
               .tests = thread_mask_};
  add_padding(e_, store.bounds, padding(all));
  b_.add(thread::Declare{.variable = moved});
  b_.add_statement(vector_access(load_of(from, all, moved, {})));
  b_.add_statement(vector_access(std::move(store)));
}

bool Nest::reads_staged() const {
  return std::ranges::any_of(lowered::element_reads(l_, *nest_), [&](const lowered::Effect& e) {
    return lowered::reads_staged(l_, e.leaf);
  });
}

// Expands the nest for nobody: spans_ are what its reads want of each row, joined where they touch.
void Nest::survey() {
  b_.open(thread::Block{});
  Nest nest(x_, *nest_);
  nest.whole_ = whole_;
  nest.surveying_ = true;
  nest.expand_nest();
  b_.take();
  group_ = nest.group_;
  element_ = nest.element_;
  repetitions_ = nest.repetitions_;
  for (auto& [row, wanted] : nest.spans_) {
    std::ranges::sort(wanted, {}, &Span::low);
    std::vector<Span>& joined = spans_[row];
    for (const Span& s : wanted) {
      if (joined.empty() || joined.back().high < s.low)
        joined.push_back({.low = s.low, .high = s.high, .width = s.width});
      else
        joined.back().high = std::max(joined.back().high, s.high);
    }
  }
}

// What an access reads of its row: as many elements as a vector has, by accesses around them.
Nest::Span Nest::wanted_of(const Address& a) const {
  const int width = vector_ == 1 ? 1 : thread::width_around(e_, a, element_, vector_);
  const std::int64_t at = a.offset.constant();
  const std::int64_t low = at - ((at % width) + width) % width;
  return {.low = low, .high = low + cdiv(at - low + vector_, width) * width, .width = width};
}

Affine Nest::row_of(const Address& a) const {
  return a.offset.without(element_) + Affine(-a.offset.constant());
}

// Those of the row that hold what is wanted; nullptr: none.
Nest::Span* Nest::span_of(const Affine& row, const Address& a, const Span& wanted) {
  std::vector<Span>& spans = spans_[{a.base, e_.sum(row)}];
  const auto holds = [&](const Span& s) { return s.low <= wanted.low && wanted.high <= s.high; };
  const auto found = std::ranges::find_if(spans, holds);
  return found == spans.end() ? nullptr : &*found;
}

// Whether all elements of the vector are read, by accesses around them; a single element, if its
// neighbours are.
bool Nest::shares_row(const Address& a, const DimMap& map, ExprId mask) {
  if (!a.staged || mask != no_expr || !a.parts.empty()) return false;
  const ExprId test = predicate(bounds_of(a, map));
  if ((e_.depends(test) & (thread::on_element | thread::in_element)) != 0) return false;
  if (vector_ > 1) return is_vector(a, map) && thread::width_around(e_, a, element_, vector_) > 0;
  if (surveying_) return true;
  const Span* const span = span_of(row_of(a), a, wanted_of(a));
  return span != nullptr && span->high - span->low > 1;
}

ExprId Nest::row_access(const Address& a, const DimMap& map) {
  const Affine row = row_of(a);
  const Span wanted = wanted_of(a);
  Span* span = span_of(row, a, wanted);
  if (surveying_ || span == nullptr) span = &spans_[{a.base, e_.sum(row)}].emplace_back(wanted);
  if (span->array == thread::no_variable) load_span(*span, a, row, map);
  const Affine element = vector_ == 1 ? Affine() : Affine::term(element_);
  return e_.element(span->array, e_.sum(element + Affine(a.offset.constant() - span->low)));
}

void Nest::load_span(Span& span, const Address& a, const Affine& row, const DimMap& map) {
  const std::int64_t count = span.high - span.low;
  const Bounds bounds = bounds_of(a, map);
  span.array = unfilled("a", a.dtype, count);
  thread::Access access{.function = load_function(a), .width = span.width};
  access.test = predicate(bounds);
  Address from = a;
  from.offset = row + Affine(span.low);
  thread::Depends all = depends(from, {}) | e_.depends(access.test);
  if (count == span.width) {
    access.registers = e_.address(span.array);
    access.place = place_of(from);
    return b_.place(all, span.array, {thread::Load{access}, b_.at()});
  }
  const VariableId q = e_.declare(
      {.name = "q", .type = i32, .facts = {.multiple = span.width, .low = 0, .high = count - 1}});
  const Affine iteration = Affine::term(e_.variable(q));
  from.offset = from.offset + iteration;
  access.registers = e_.address(span.array, e_.sum(iteration));
  access.place = place_of(from);
  thread::For loop{.counter = q,
                   .low = e_.number(0),
                   .high = e_.number(count),
                   .step = span.width,
                   .body = {},
                   .short_form = true};
  loop.body.push_back({thread::Load{access}, b_.at()});
  b_.place(all, span.array, {std::move(loop), b_.at()});
}

}  // namespace palladium::expand
