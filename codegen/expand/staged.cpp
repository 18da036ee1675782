// Staged windows: how they come to shared memory, and how rows of them are read that several reads
// share, at offsets which are aligned for none of them.
#include <algorithm>

#include "codegen/expand/nest.hpp"
#include "palladium/error.hpp"

namespace palladium::expand {

// From global memory to shared memory, by way of registers.
void Nest::stage(const lowered::Fill& s) {
  const DimMap all = all_dimensions();
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
  passes::add_padding(e_, store.bounds, padding(all));
  b_.add(thread::Declare{.variable = moved});
  b_.add_statement(vector_access(load_of(from, all, moved, {})));
  b_.add_statement(vector_access(std::move(store)));
}

// Rows have numbers in the order in which their first reads are evaluated.
std::pair<std::size_t, std::size_t> Nest::span_of(const Address& a) {
  const auto key = std::pair(a.base, e_.sum(row_of(a)));
  const std::size_t row = row_numbers_.try_emplace(key, row_numbers_.size()).first->second;
  const lowered::RowSpan wanted = wanted_of(a);
  if (row < nest_->rows.size()) {
    const std::vector<lowered::RowSpan>& spans = nest_->rows[row].spans;
    const auto found = std::ranges::find_if(spans, [&](const lowered::RowSpan& s) {
      return s.low <= wanted.low && wanted.high <= s.high;
    });
    if (found != spans.end()) return {row, static_cast<std::size_t>(found - spans.begin())};
  }
  throw InternalError("expand: a nest reads a row of a staged window that is none of its rows");
}

// Whether all elements of the vector are read, by accesses around them; a single element, if its
// neighbours are.
bool Nest::shares_row(const Address& a, const DimMap& map, ExprId mask) {
  if (nest_ == nullptr || !reads_row(a, map, mask)) return false;
  const auto [row, span] = span_of(a);
  const lowered::RowSpan& s = nest_->rows[row].spans[span];
  return vector_ > 1 || s.high - s.low > 1;
}

ExprId Nest::row_access(const Address& a, const DimMap& map) {
  const auto [row, number] = span_of(a);
  const lowered::RowSpan& span = nest_->rows[row].spans[number];
  row_arrays_.resize(nest_->rows.size());
  row_arrays_[row].resize(nest_->rows[row].spans.size(), thread::no_variable);
  VariableId& array = row_arrays_[row][number];
  if (array == thread::no_variable) {
    array = unfilled("a", a.dtype, span.high - span.low);
    load_span(span, array, a, map);
  }
  const Affine element = vector_ == 1 ? Affine() : Affine::term(element_);
  return e_.element(array, e_.sum(element + Affine(a.offset.constant() - span.low)));
}

void Nest::load_span(const lowered::RowSpan& span, VariableId array, const Address& a,
                     const DimMap& map) {
  thread::Access access{.function = load_function(a), .width = span.width};
  access.test = predicate(bounds_of(a, map));
  Address from = a;
  from.offset = row_of(a) + Affine(span.low);
  read_span(access, from, array, span.high - span.low, depends(from, {}) | e_.depends(access.test));
}

}  // namespace palladium::expand
