// Rows of f32 that are divided by one number: by one call of the device library for what a thread
// holds of a row, in front of the loops over its elements.
#include <algorithm>

#include "codegen/expand/nest.hpp"
#include "codegen/passes/signs.hpp"

namespace palladium::expand {

using graph::Inst;
using graph::MemoryView;
using graph::Op;
using lowered::Place;
using lowered::Residency;
using lowered::Storage;

namespace {

// Elements of a call: of fewer the guard costs more than it saves, and dividends that no registers
// hold anyway wait in them for the others.
constexpr std::int64_t fewest = 4, most_in_registers = 64, most_computed = 32;

// Operations of a divisor that are looked at.
constexpr int most_looked_at = 256;

}  // namespace

// ---- which

// The dimensions of the nest along which a value may change.
std::vector<bool> Nest::dimensions_of(ValueId v) const {
  const int rank = layout_.rank();
  std::vector<bool> found(static_cast<std::size_t>(rank));
  std::vector<std::pair<ValueId, DimMap>> stack{{v, lowered::identity_map(rank)}};
  const auto all = std::vector<bool>(found.size(), true);
  for (int seen = 0; !stack.empty(); ++seen) {
    if (seen == most_looked_at) return all;
    const auto [next, map] = std::move(stack.back());
    stack.pop_back();
    const Inst& i = g_[next];
    const bool moves = i.op == Op::Broadcast || i.op == Op::Transpose || i.op == Op::Reshape;
    if (!l_.storage_of[next] && (moves || graph::is_elementwise(i.op))) {
      for (std::size_t a = 0; a < i.args.size(); ++a)
        stack.emplace_back(i.args[a], lowered::map_of_operand(g_, next, a, map));
      continue;
    }
    if (i.op == Op::Constant) continue;
    if (i.op == Op::Load || i.op == Op::Swap)  // what stands in for masked elements, too
      for (std::size_t a = 1; a < i.args.size(); ++a)
        if (g_[i.args[a]].type.is_value())
          stack.emplace_back(i.args[a], lowered::map_of_operand(g_, next, a, map));
    for (std::size_t d = 0; d < map.size(); ++d) {
      if (i.type.shape[d] == 1) continue;
      if (map[d] == lowered::opaque_dim) return all;
      if (map[d] >= 0) found[static_cast<std::size_t>(map[d])] = true;
    }
  }
  return found;
}

// Divisions of elements by what is the same for all of a vector, operands first.
Nest::Values Nest::row_divisions(ValueId value, bool enter) const {
  Values found, stack{value};
  if (g_.approx_math) return found;
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    const Inst& i = g_[v];
    const bool whole = l_.storage_of[v] && !(v == value && enter);
    if (whole || !graph::is_elementwise(i.op) || !seen.insert(v).second) continue;
    stack.insert(stack.end(), i.args.begin(), i.args.end());
    if (i.op != Op::Div || i.type.dtype != f32) continue;
    const std::vector<bool> dimensions = dimensions_of(i.args[1]);
    if (vector_ == 1 || !dimensions.back()) found.push_back(v);
  }
  // An operand has been seen after what uses it.
  std::ranges::reverse(found);
  return found;
}

// From the outermost to the innermost.
std::vector<Nest::Counting> Nest::loops_around(const Values& divisions) const {
  std::vector<bool> changing(static_cast<std::size_t>(layout_.rank()));
  for (const ValueId v : divisions) {
    const std::vector<bool> dimensions = dimensions_of(g_[v].args[1]);
    for (std::size_t d = 0; d < dimensions.size(); ++d) changing[d] = changing[d] || dimensions[d];
  }
  std::vector<Counting> loops;
  for (int d = 0; d < layout_.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (layout_.repetitions(d) > 1)
      loops.push_back(
          {d, repetitions_[at], layout_.repetitions(d), !is_rolled(d) && !changing[at]});
  }
  if (groups() > 1) {
    bool row = true;
    for (std::size_t bit = static_cast<std::size_t>(vector_bits_); bit < layout_.reg.size(); ++bit)
      for (int d = 0; d < layout_.rank(); ++d)
        row = row &&
              (layout_.field(d, layout_.reg[bit]) == 0 || !changing[static_cast<std::size_t>(d)]);
    loops.push_back({-1, group_, groups(), row});
  }
  return loops;
}

// ---- the divisions

void Nest::open(const Counting& loop) {
  loop.dimension < 0 ? open_groups() : open_repetition(loop.dimension);
}

// The loops down to those over the groups of elements. Rows are divided before the loops along
// them, which then are the innermost.
void Nest::open_to_groups(ValueId value, bool enter) {
  const Values divisions = row_divisions(value, enter);
  std::vector<Counting> loops = loops_around(divisions);
  const std::vector<Counting> plain = loops;
  const auto rows = std::ranges::stable_partition(loops, [](const Counting& l) { return !l.row; });
  const bool held = std::ranges::all_of(
      divisions, [&](ValueId v) { return in_registers(g_[v].args[0]) != no_expr; });
  const std::int64_t most = held ? most_in_registers : most_computed;
  std::size_t first = loops.size();
  const std::size_t first_of_rows = loops.size() - rows.size();
  std::int64_t count = vector_;
  while (first > first_of_rows && count * loops[first - 1].count <= most)
    count *= loops[--first].count;
  if (divisions.empty() || count < fewest) {
    for (const Counting& loop : plain) open(loop);
    return;
  }
  const auto row = std::span(loops).subspan(first);
  for (const Counting& loop : std::span(loops).first(first)) open(loop);
  for (const ValueId v : divisions) divide_row(v, row);
  for (const Counting& loop : row) open(loop);
}

// q[...] = dividend / divisor, for all elements that `row` counts.
void Nest::divide_row(ValueId division, std::span<const Counting> row) {
  const Inst& i = g_[division];
  const Location outer = b_.at();
  if (const Location at = g_.location(division); at != Location{}) b_.at(at);
  Affine at = vector_ > 1 ? Affine::term(element_) : Affine();
  std::int64_t count = vector_;
  for (std::size_t k = row.size(); k-- > 0; count *= row[k].count)
    at = Affine::term(row[k].counter) * count + at;

  const DimMap all = lowered::identity_map(layout_.rank());
  ExprId divisor = evaluate(i.args[1], coordinates_, all, false);
  if (e_.size(divisor) > 1) divisor = temporary("x", divisor);
  const VariableId q = unfilled("q", f32, count);
  e_[q].facts.depends = thread::on_thread | loops_;
  b_.add(thread::Declare{.variable = q});
  const ExprId from = dividends(i.args[0], at, count, row, q);
  thread::Call call{
      .function = Row::div_all, .templates = {count}, .args = {e_.address(q), from, divisor}};
  if (passes::is_part_of(g_, i.args[0], i.args[1])) call.templates.emplace_back(true);
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
  const ExprId value = evaluate(v, coordinates_, lowered::identity_map(layout_.rank()), false);
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

// The register that holds the value at coordinates_; no_expr if it has to be computed.
ExprId Nest::in_registers(ValueId v) const {
  if (const auto it = quotients_.find(v); it != quotients_.end()) return it->second;
  const StorageId storage = l_.storage_of[v];
  if (!storage) return no_expr;
  const DimMap all = lowered::identity_map(layout_.rank());
  const Storage& s = l_.storages[copy_of(storage, all)];
  if (s.place() != Place::registers) return no_expr;
  return e_.element(x_.storage(copy_of(storage, all)), e_.sum(register_index(s.registers().layout, all)));
}

// A vector of them goes to memory as it is.
bool Nest::stores_registers(const lowered::Store& s) {
  const MemoryView m = MemoryView::of(g_[s.inst]);
  const ExprId held = in_registers(nest_->value);
  if (held == no_expr || vector_ == 1 || m.mask != graph::no_value || !is_plain(m.ref))
    return false;
  const Affine at = e_.affine(e_[held].args[0]);
  if (at.coefficient(element_) != 1) return false;
  const DimMap all = lowered::identity_map(layout_.rank());
  check_indices(s.inst, coordinates_, all, no_expr);
  storing_ = true;
  Vector v{.direction = Direction::store, .place = address(m.ref, coordinates_, all)};
  storing_ = false;
  if (!v.place.parts.empty()) return false;
  v.function = v.place.shared ? Row::store_shared : Row::store_global;
  v.function_of_part = Row::store_global_part;
  v.array = e_[held].variable;
  v.first = at.without(element_);
  v.bounds = bounds_of(v.place, all);
  v.tests = thread_mask_;
  b_.add_statement(vector_access(std::move(v)));
  return true;
}

}  // namespace palladium::expand
