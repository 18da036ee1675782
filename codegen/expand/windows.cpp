// Where a block of an array begins, and how much of it exists.
#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/expand/nest.hpp"

namespace palladium::expand {

using passes::Window;

// The number of elements along d that exist, and the first of them where there is padding before.
void Expander::size_of_window(int window, int d, ExprId start) {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const BlockDim& b = m.block_shape[d];
  const bool padded = b.kind == BlockDim::Kind::element;
  const bool at_zero = e_[start].node == thread::Node::number;
  const std::string name = fmt::format("w{}_size{}", window, d);
  const ExprId extent = dim(m.array_aval.shape[d]), size = e_.number(b.size, i64);
  passes::BlockNames& names = windows_[window];
  if (padded && b.pad_lo + b.pad_hi > 0) {
    const ExprId before = e_.sum(Affine::term(start, -1), i64);
    names.from[d] =
        b_.let_here(fmt::format("w{}_from{}", window, d),
                    e_.choose(e_.plain(Operator::less, start, number(0), bool_),
                              e_.cast(i32, e_.call(Row::min, i64, {before, size})), number(0)));
  }
  const ExprId left = at_zero ? extent : e_.plain(Operator::sub, extent, start, i64);
  ExprId room = e_.cast(i32, e_.call(Row::min, i64, {left, size}));
  // Without padding a start on either side is far from the array: the room may not be an i32.
  if (!padded && !at_zero)
    room = e_.choose(e_.plain(Operator::less, e_.cast(u64, start), e_.cast(u64, extent), bool_),
                     room, number(0));
  names.size[d] =
      b_.let_here(name, room, passes::facts_of_size(b, e_.facts(extent), e_.facts(start)));
  const ExprId from = names.from[d] == no_expr ? number(0) : names.from[d];
  b_.add(thread::Check{
      e_.plain(Operator::greater, names.size[d], from, bool_),
      fmt::format("{}: the block is wholly out of bounds along dimension {} (an index map gives "
                  "block indices, not element offsets)",
                  m.origin, d)});
}

void Expander::enter_window(int window) {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const passes::Copies none;
  const int rank = m.array_aval.shape.rank();
  const std::vector<ExprId> at = Nest(*this, none).index_map(m.index_map, rank);
  passes::BlockNames& names = windows_[window];
  names.size.assign(static_cast<std::size_t>(rank), no_expr);
  names.from = names.size;
  names.at_zero.assign(static_cast<std::size_t>(rank), false);
  std::vector<ExprId> starts;
  for (int d = 0; d < rank; ++d) {
    ExprId start = passes::start_of_block(e_, m.block_shape[d], at[d]);
    const bool at_zero = e_.facts(start).multiple == 0;
    names.at_zero[static_cast<std::size_t>(d)] = at_zero;
    start = at_zero ? e_.number(0, i64) : b_.let_here(fmt::format("w{}_start{}", window, d), start);
    starts.push_back(start);
    if (!w.in_bounds[d]) size_of_window(window, d, start);
  }
  Affine offset;
  Dim stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const ExprId start = starts[static_cast<std::size_t>(d)];
    if (!names.at_zero[static_cast<std::size_t>(d)]) {
      if (m.dense ? stride.is_static() : d + 1 == rank)
        offset = offset + Affine::term(start, m.dense ? stride.value() : 1);
      else
        offset =
            offset + Affine::term(e_.plain(
                         Operator::mul, start,
                         m.dense ? dim(stride) : e_.variable(strides_.at({w.mapping, d})), i64));
    }
    stride = stride * m.array_aval.shape[d];
  }
  const VariableId pointer = e_.declare({.name = fmt::format("w{}", window),
                                         .form = thread::Form::pointer,
                                         .type = m.array_aval.dtype,
                                         .writable = w.stored});
  const VariableId array = arrays_[w.mapping];
  b_.add(thread::Let{
      pointer, offset.is_zero() ? e_.variable(array) : e_.address(array, e_.sum(offset, i64))});
  names.pointer = e_.variable(pointer);
  if (const auto it = unstored_.find(w.storage); w.depth > 0 && it != unstored_.end())
    b_.add(thread::Assign{e_.variable(it->second.flag), e_.literal(bool_, 0)});
}

}  // namespace palladium::expand
