// Which program of the grid a block runs, and how many there are.
#include <algorithm>

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/graph/limits.hpp"

namespace palladium::expand {

using lowered::Window;

// A size that an array holds is read here; programs that are none do nothing.
bool Expander::open_bounds() {
  const GridMapping& m = g_.mapping;
  bounds_.resize(m.grid.size(), no_expr);
  std::vector<ExprId> are_programs;
  for (std::size_t axis = 0; axis < m.bounds.size(); ++axis) {
    if (m.bounds[axis] < 0) continue;
    const BlockMapping& holder = m.block_mappings[static_cast<std::size_t>(m.bounds[axis])];
    const VariableId held =
        e_.declare({.name = fmt::format("programs{}", axis), .type = holder.array_aval.dtype});
    const ExprId array = e_.variable(arrays_[static_cast<std::size_t>(m.bounds[axis])]);
    b_.place(0, held,
             {thread::Load{{.function = Row::load_global_nc,
                            .registers = e_.address(held),
                            .place = {.base = array, .type = holder.array_aval.dtype}}},
              b_.at()});
    const ExprId given = e_.cast(i64, e_.variable(held)), most = dim(m.grid[axis]);
    b_.add(thread::Check{
        e_.all({e_.plain(Operator::at_least, given, e_.number(0, i64), bool_),
                e_.plain(Operator::at_least, most, given, bool_)}),
        fmt::format("grid axis {} has as many programs as {} says, at most {}; it says {{}}", axis,
                    holder.origin, to_string(m.grid[axis])),
        given});
    const ExprId bound = b_.let_here(fmt::format("bound{}", axis),
                                     e_.cast(i32, e_.call(Row::min, i64, {given, most})));
    bounds_[axis] = bound;
    const bool parallel = program_ids_[axis] != no_expr;
    are_programs.push_back(
        e_.plain(Operator::less, parallel ? program_ids_[axis] : number(0), bound, bool_));
  }
  if (are_programs.empty()) return false;
  is_program_ = e_.all(std::move(are_programs));
  b_.open(thread::If{.condition = is_program_, .body = {}, .uniform = true});
  return true;
}

ExprId Expander::grid_size(int axis) {
  const auto at = static_cast<std::size_t>(axis);
  return at < bounds_.size() && bounds_[at] != no_expr ? bounds_[at] : launched_size(axis);
}

// Where the loop over a sequential axis ends, not below 0.
ExprId Expander::loop_end(int axis) {
  const ExprId size = grid_size(axis);
  const ValueId end = l_.end_of(axis);
  if (end == graph::no_value) return size;
  const ExprId least = e_.call(Row::min, i32, {size, scalar(end)});
  return b_.let_once(fmt::format("end{}", axis), false, e_.call(Row::max, i32, {number(0), least}));
}

ExprId Expander::launched_size(int axis, DType type) {
  const Dim& d = g_.mapping.grid[axis];
  return d.is_static() ? e_.number(d.value(), type) : e_.cast(type, dim(d));
}

void Expander::name_program(int axis, ExprId id) {
  const Dim& d = g_.mapping.grid[static_cast<std::size_t>(axis)];
  const VariableId v =
      e_.declare({.name = fmt::format("p{}", axis),
                  .type = i32,
                  .facts = {.low = 0, .high = d.is_static() ? d.value() - 1 : INT32_MAX - 1}});
  b_.add(thread::Let{v, id});
  program_ids_[static_cast<std::size_t>(axis)] = e_.variable(v);
}

// Column by column of so many rows, of the last ones fewer; what is left numbers other axes.
ExprId Expander::name_rows(ExprId block, int rows, int columns) {
  const auto here = [&](const char* name, ExprId e) { return b_.let_here(name, e); };
  const auto of = [&](Operator op, ExprId a, ExprId b) { return e_.plain(op, a, b); };
  const ExprId height = launched_size(rows), width = launched_size(columns);
  ExprId rest = number(0), at = block;
  if (l_.parallel_axes.size() > 2) {
    const ExprId tile = here("tile", of(Operator::mul, height, width));
    rest = of(Operator::div, block, tile);
    at = here("in_tile", of(Operator::rem, block, tile));
  }
  const Dim& rows_of_grid = g_.mapping.grid[static_cast<std::size_t>(rows)];
  const ExprId most = number(l_.grid_rows);
  // No more than there are: their programs have numbers that an i32 holds.
  const ExprId group = rows_of_grid.is_static()
                           ? number(std::min<std::int64_t>(rows_of_grid.value(), l_.grid_rows))
                           : here("group", e_.call(Row::min, i32, {height, most}));
  const ExprId in_group = here("in_group", of(Operator::mul, group, width));
  const ExprId first = here("first", of(Operator::mul, of(Operator::div, at, in_group), group));
  const ExprId left = of(Operator::sub, height, first);
  const ExprId together = here("together", e_.call(Row::min, i32, {left, group}));
  const ExprId nth = here("nth", of(Operator::rem, at, in_group));
  name_program(rows, e_.sum(Affine::term(first) + Affine::term(of(Operator::rem, nth, together))));
  name_program(columns, of(Operator::div, nth, together));
  return rest;
}

// Programs on the parallel axes are numbered row-major, but for the order of the last two; else in
// u32, which is divided by fewer instructions.
void Expander::name_programs(ExprId number_of_program) {
  const auto& axes = l_.parallel_axes;
  std::size_t left = axes.size();
  const bool by_rows = l_.grid_rows > 1;
  const DType type = by_rows || left < 2 ? i32 : u32;
  ExprId rest = number_of_program;
  if (left > 1) {
    const VariableId block =
        e_.declare({.name = "block", .type = type, .facts = {.low = 0, .high = INT32_MAX - 1}});
    b_.add(thread::Let{block, rest});
    rest = e_.variable(block);
  }
  if (by_rows) {
    rest = name_rows(rest, axes[left - 2], axes[left - 1]);
    left -= 2;
  }
  for (std::size_t i = left; i-- > 0;) {
    const ExprId size = i == 0 ? no_expr : launched_size(axes[i], type);
    const ExprId id = i == 0 ? rest : e_.plain(Operator::rem, rest, size, type);
    name_program(axes[i], e_.as(i32, id));
    if (i > 0) rest = e_.plain(Operator::div, rest, size, type);
  }
}

// Memory of a program's own holds nothing of the program before.
void Expander::forget_scratch() {
  for (const Window& w : l_.windows)
    if (const auto it = unstored_.find(w.storage());
        w.mapping < 0 && it != unstored_.end() && own_.contains(w.storage()))
      b_.add(thread::Assign{e_.variable(it->second.flag), e_.literal(bool_, 0)});
}

// What a block that goes through several programs does for each.
void Expander::over_programs(const lowered::GridLoop& loop) {
  ExprId programs = number(1);
  for (const int a : l_.parallel_axes)
    programs = e_.plain(Operator::mul, programs, launched_size(a));
  programs = b_.let_here("programs", programs);
  const ExprId block = e_.call(Row::block_x, i32, {}), blocks = e_.call(Row::grid_x, i32, {});
  const VariableId n = e_.declare(
      {.name = "program", .type = i32, .facts = {.low = 0, .high = graph::most_blocks - 1}});
  const ExprId program = e_.variable(n);
  const ExprId left = e_.plain(Operator::sub, programs, program);
  const ExprId step = e_.call(Row::min, i32, {blocks, left});  // none that an i32 does not hold
  b_.open_loop(thread::For{.counter = n,
                           .low = block,
                           .high = programs,
                           .next = e_.sum(Affine::term(program) + Affine::term(step)),
                           .unroll = 1,
                           .body = {}});
  name_programs(program);
  const bool bounded = open_bounds();
  forget_scratch();
  expand_list(loop.body);
  if (bounded) b_.close();
  b_.close();
}

}  // namespace palladium::expand
