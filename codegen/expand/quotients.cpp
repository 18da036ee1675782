// Rows of f32 that are divided by one number: by one call of the device library for what a thread
// holds of a row, in front of the loops over its elements.
#include <algorithm>

#include "codegen/expand/nest.hpp"
#include "codegen/passes/signs.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::MemoryView;
using graph::Op;
using lowered::Residency;
using lowered::Storage;

// ---- the divisions

void Nest::open(const Counting& loop) {
  loop.over == lowered::over_groups ? open_groups() : open_repetition(loop.over);
}

// The loops down to those over the groups of elements. Rows are divided before the loops along
// them.
void Nest::open_to_groups() {
  if (nest_->divided.empty()) {
    open_repetitions(true, true);
    return open_groups();
  }
  const std::vector<Counting> loops = countings();
  const std::size_t first = loops.size() - static_cast<std::size_t>(nest_->row_loops);
  const auto row = std::span(loops).subspan(first);
  for (const Counting& loop : std::span(loops).first(first)) open(loop);
  for (const ValueId v : nest_->divided) divide_row(v, row);
  for (const Counting& loop : row) open(loop);
}

// q[...] = dividend / divisor, for all elements that `row` counts.
void Nest::divide_row(ValueId division, std::span<const Counting> row) {
  const Inst& i = g_[division];
  const Location outer = b_.at();
  if (const Location at = g_.location(division); at != Location{}) b_.at(at);
  const auto [at, count] = place_in_row(row);
  const DimMap all = all_dimensions();
  ExprId divisor = evaluate(i.args[1], coordinates_, all, false);
  if (e_.size(divisor) > 1) divisor = temporary("x", divisor);
  const VariableId q = unfilled("q", f32, count);
  e_[q].facts.depends = thread::on_thread | loops_;
  b_.add(thread::Declare{.variable = q});
  const ExprId from = dividends(i.args[0], at, count, row, q);
  thread::Call call{
      .function = Row::div_all, .templates = {count}, .args = {e_.address(q), from, divisor}};
  if (passes::is_part_of(g_, i.args[0], i.args[1], holding(i, coordinates_)))
    call.templates.emplace_back(true);
  b_.add(std::move(call));
  quotients_[division] = e_.element(q, e_.sum(at));
  b_.at(outer);
}

// Where they stand in the order of q: in the registers of a value that has that order, or in q.
ExprId Nest::dividends(ValueId v, const Affine& at, std::int64_t count,
                       std::span<const Counting> row, VariableId q) {
  if (const ExprId held = in_registers(v); held != no_expr) {
    const thread::Expr& element = e_[held];
    const Affine before = e_.affine(element.args[0]) + at * -1;
    const bool same = std::ranges::none_of(
        row, [&](const Counting& loop) { return before.coefficient(loop.counter) != 0; });
    if (same && before.coefficient(element_) == 0 && e_[element.variable].count >= count)
      return before.is_zero() ? e_.address(element.variable)
                              : e_.address(element.variable, e_.sum(before));
  }
  const thread::Depends around = loops_;
  const std::size_t depth = b_.depth();
  for (const Counting& loop : row) open(loop);
  open_elements();
  const ExprId value = evaluate(v, coordinates_, all_dimensions(), false);
  b_.add(thread::Assign{e_.element(q, e_.sum(at)), value});
  b_.close_down_to(depth);
  forget((loops_ & ~around) | thread::on_element | thread::in_element);
  loops_ = around;
  return e_.address(q);
}

// What was named inside of loops that are closed is computed again.
void Nest::forget(thread::Depends changing) {
  const auto changes = [&](const auto& known) {
    return (e_.depends(known.second) & changing) != 0;
  };
  std::erase_if(memo_, changes);
  std::erase_if(hoisted_, changes);
  forget_names(changing);
}

// ---- whole vectors of registers

// A vector of them goes to memory as it is.
bool Nest::stores_registers(const lowered::Store& s) {
  const ExprId held = held_vector(s);
  if (held == no_expr) return false;
  const ValueId ref = MemoryView::of(g_[s.inst]).ref;
  check_indices(s.inst, coordinates_, all_dimensions(), no_expr);
  Vector v{.direction = Direction::store, .place = store_address(ref)};
  if (!v.place.parts.empty()) return false;
  v.function = store_function(v.place);
  v.function_of_part = Row::store_global_part;
  v.array = e_[held].variable;
  v.first = e_.affine(e_[held].args[0]).without(element_);
  v.bounds = bounds_of(v.place, all_dimensions());
  v.tests = thread_mask_;
  b_.add_statement(vector_access(std::move(v)));
  return true;
}

}  // namespace palladium::expand
