// Copies from global memory to shared memory that threads do not wait for.
#include <algorithm>
#include <utility>

#include "codegen/expand/nest.hpp"

namespace palladium::expand {

using graph::MemoryView;
using graph::Op;

namespace {

constexpr int least_bytes = 4;  // of a copy

}  // namespace

// A load, or its elements elsewhere. False where no copy is wide enough; then nothing has happened.
bool Nest::copies_moved(const lowered::Stage& s) {
  const std::size_t depth = b_.depth();
  open_repetitions(true, true);
  open_groups();
  ValueId v = nest_->value;
  passes::Coordinates c = coordinates_;
  DimMap map = all_dimensions();
  for (; g_[v].op != Op::Load; v = g_[v].args[0]) {
    c = operand_coordinates(v, 0, c);
    map = lowered::map_of_operand(g_, v, 0, map);
  }
  const MemoryView m = MemoryView::of(g_[v]);
  const Address from = address(m.ref, c, map);
  const Location outer = b_.at(g_.location(v) == Location{} ? b_.at() : g_.location(v));
  const ExprId mask = m.mask == graph::no_value ? no_expr : evaluate(m.mask, c, map, false);
  const bool copied = from.parts.empty() && copies_asynchronously(from, s.storage, s.by, mask);
  // Elements that travel together exist together; of a slice all do but what pads it.
  Bounds exists = limits().first;
  for (Bound& b : exists) b.at = b.at.without(element_);
  for (Affine& x : c) x = x.without(element_);
  if (copied)
    check_indices(v, c, map, e_.all({is_plain(m.ref) ? no_expr : predicate(exists), mask}));
  b_.at(outer);
  if (copied) {
    b_.close_nest_loops();
    return true;
  }
  while (b_.depth() > depth) (void)b_.take();
  forget_names(~thread::Depends{0});
  return false;
}

// A load, to where a view of shared memory shows. False where no copy is wide enough; then nothing
// has happened.
bool Nest::copies_stored(const lowered::Store& s) {
  const ValueId load = nest_->value;
  if (g_[load].op != Op::Load || l_.storage_of[load]) return false;
  const std::size_t depth = b_.depth();
  open_repetitions(true, true);
  open_groups();
  const DimMap all = all_dimensions();
  const Address from = address(g_[load].args[0], coordinates_, all);
  const Address to = store_address(g_[s.inst].args[0]);
  if (from.parts.empty() && to.parts.empty() && from.outside == no_expr && !from.shared &&
      copies_asynchronously(from, to, false, {true, from.zeros}, no_expr)) {
    Coordinates c = coordinates_;
    for (Affine& x : c) x = x.without(element_);
    check_indices(load, c, all, no_expr);
    check_indices(s.inst, c, all, no_expr);
    b_.close_nest_loops();
    return true;
  }
  while (b_.depth() > depth) (void)b_.take();
  forget_names(~thread::Depends{0});
  return false;
}

// Rows of any alignment: in each the pieces of 16 bytes around its elements, those of the nest's
// vectors, and behind them the one in which the row may end.
void Nest::copy_rows_around(const lowered::Stage& s) {
  const std::int64_t rows = nest_->valid[0], columns = nest_->valid[1];
  open_repetitions(true, true);
  open_groups();
  copy_around(s, coordinates_, vector_, thread_mask_);
  b_.close_nest_loops();
  const auto threads = static_cast<std::int64_t>(layout_.threads());
  for (std::int64_t first = 0; first < rows; first += threads) {
    const Affine row = Affine::term(e_.as(i32, thread_)) + Affine(first);
    std::vector<ExprId> has_row;
    if (rows - first < threads)
      has_row.push_back(e_.plain(Operator::less, e_.sum(row), e_.number(rows), bool_));
    copy_around(s, {row, Affine::term(element_) + Affine(columns)}, 0, std::move(has_row));
  }
}

// The vector at `c`, of which so many elements are wanted: more of them are copied as far as the
// row goes.
void Nest::copy_around(const lowered::Stage& s, const Coordinates& c, std::int64_t left,
                       std::vector<ExprId> threads) {
  const ValueId ref = g_[nest_->value].args[0];
  Address from = address(ref, c, all_dimensions()), to = storage_address(s.storage, c);
  Bounds rows;
  ExprId valid = e_.number(left);
  for (const Bound& b : from.bounds) {
    if (b.at.coefficient(element_) == 0) {
      rows.push_back(b);
      continue;
    }
    const ExprId rest = e_.plain(Operator::sub, b.limit, e_.sum(b.at.without(element_)));
    valid = left > 0 ? rest : e_.call(Row::min, i32, {rest, valid});
  }
  from.offset = from.offset.without(element_);
  to.offset = to.offset.without(element_);
  const ExprId iteration = l_.storages[s.storage].ring() && from.reach == INT32_MAX
                               ? std::exchange(from.first, no_expr)
                               : no_expr;
  thread::Copy copy{
      .access = {.function = s.by.zeros ? Row::copy_async_around_zero : Row::copy_async_around,
                 .width = vector_,
                 .place = place_of(to),
                 .valid = valid,
                 .test = predicate(rows)},
      .from = place_of(from),
      .begin = e_.address(x_.arrays_[l_.window_loaded(nest_->value).mapping])};
  copy.from.iteration = iteration;
  Bounds padding = limits().second;
  for (Bound& b : padding) b.at = b.at.without(element_);
  if (left > 0) threads.push_back(predicate(padding));
  thread::Statement made{copy, b_.at()};
  if (const ExprId condition = e_.all(std::move(threads)); condition != no_expr) {
    thread::If copies{.condition = condition, .body = {}};
    copies.body.push_back(std::move(made));
    made = {std::move(copies), b_.at()};
  }
  b_.add_statement(std::move(made));
}

// Elements that exist together, and are in bounds together, travel together.
bool Nest::copies_asynchronously(const Address& from, StorageId filled, lowered::CopyMode by,
                                 ExprId mask) {
  return copies_asynchronously(from, storage_address(filled, coordinates_),
                               bool(l_.storages[filled].ring()), by, mask);
}

bool Nest::copies_asynchronously(const Address& from, const Address& to, bool repeats,
                                 lowered::CopyMode by, ExprId mask) {
  if (from.outside != no_expr && e_[from.outside].number != 0) return false;  // it fills with zeros
  const auto [value, storage] = limits();
  Address whole = from;
  whole.zeros = true;  // no copy ends within its elements
  Bounds all = from.bounds;
  all.insert(all.end(), value.begin(), value.end());
  all.insert(all.end(), storage.begin(), storage.end());
  const int width = std::min(vector_width(whole, all).width, vector_width(to, {}).width);
  if (width * from.dtype.bytes() < least_bytes) return false;
  const bool once = width == vector_;
  const auto first = [&](Affine& at) {
    if (once) at = at.without(element_);
  };
  const auto tests = [&](Bounds bounds) {
    for (Bound& b : bounds) first(b.at);
    return predicate(bounds);
  };
  Address source = from, target = to;
  // Where strides are symbols, what a thread adds to where its block begins is the same in all
  // iterations of a loop; else it is a constant of the instruction.
  const ExprId iteration =
      repeats && source.reach == INT32_MAX ? std::exchange(source.first, no_expr) : no_expr;
  first(source.offset);
  first(target.offset);
  thread::Copy copy{.access = {.function = by.zeros ? Row::copy_async_zero : Row::copy_async,
                               .width = width,
                               .place = place_of(target),
                               .test = tests(from.bounds)},
                    .from = place_of(source),
                    .exists = e_.all({tests(value), mask})};
  copy.from.iteration = iteration;
  thread::Statement s{copy, b_.at()};
  std::vector<ExprId> threads = thread_mask_;
  threads.push_back(tests(storage));
  if (const ExprId condition = e_.all(std::move(threads)); condition != no_expr) {
    thread::If copies{.condition = condition, .body = {}};
    copies.body.push_back(std::move(s));
    s = {std::move(copies), b_.at()};
  }
  if (!once) {
    thread::For loop{.counter = e_[element_].variable,
                     .low = e_.number(0),
                     .high = e_.number(vector_),
                     .step = width,
                     .body = {}};
    loop.body.push_back(std::move(s));
    s = {std::move(loop), b_.at()};
  }
  b_.add_statement(std::move(s));
  return true;
}

}  // namespace palladium::expand
