// Where a block of an array begins, and how much of it exists.
#include <algorithm>
#include <numeric>

#include "codegen/base/format.hpp"
#include "codegen/expand/expander.hpp"
#include "codegen/expand/nest.hpp"
#include "codegen/graph/classes.hpp"

namespace palladium::expand {

using lowered::Window;

// Whether 32 bits hold the distance of any two elements.
bool Expander::is_short(const BlockMapping& m) const {
  return m.dense && (graph::has_runtime_reach(m) ? g_.short_offsets : graph::has_short_reach(m));
}

Expander::Along Expander::along(WindowId window, int d) const {
  const BlockMapping& m = g_.mapping.block_mappings[l_.windows[window].mapping];
  Along a{.d = d,
          .begins_inside = passes::begins_inside(g_, m, d),
          .loaded = passes::loaded(l_, l_.windows[window], d)};
  a.begins_inside = a.begins_inside || (m.index_map != no_region && a.loaded.in_bounds);
  const Dim& extent = m.array_aval.shape[d];
  if (a.begins_inside && (is_short(m) || (extent.is_static() && extent.value() <= INT32_MAX)))
    a.type = i32;
  return a;
}

// A name, but for the index of a program itself.
ExprId Expander::window_start(const BlockDim& b, ExprId at, const Along& along) {
  const ExprId start = passes::start_of_block(e_, b, at, along.type, along.loaded.lead);
  if (e_.facts(start).multiple == 0) return e_.number(0, along.type);
  return e_[start].node == thread::Node::cast ? start : b_.let_once("start", true, start);
}

// Whether a block has elements in its array: more is loaded of one that is staged.
ExprId Expander::exists_along(const passes::BlockNames& names, ExprId start, ExprId extent,
                              std::int64_t size, const Along& along) {
  const ExprId from = names.from[along.d] == no_expr ? number(0) : names.from[along.d];
  if (along.loaded.lead == 0 && along.loaded.size == size)
    return e_.plain(Operator::greater, names.size[along.d], from, bool_);
  const Affine first = Affine::term(start) + Affine(along.loaded.lead);
  const ExprId zero = e_.number(0, along.type);
  return e_.all(
      {e_.plain(Operator::less, e_.sum(first, along.type), extent, bool_),
       e_.plain(Operator::greater, e_.sum(first + Affine(size), along.type), zero, bool_)});
}

// What has to be known for a check that only programs make.
ExprId Expander::of_programs(ExprId check) {
  return is_program_ == no_expr ? check : e_.all({check, is_program_});
}

void Expander::check_slice(WindowId window, ExprId start, ExprId extent, ExprId slice,
                           const Along& along) {
  const BlockMapping& m = g_.mapping.block_mappings[l_.windows[window].mapping];
  const std::int64_t most = m.block_shape[along.d].size;
  const ExprId end = e_.sum(Affine::term(start) + Affine::term(e_.as(i64, slice)), i64);
  const ExprId is_inside = e_.all({e_.plain(Operator::at_least, start, e_.number(0, i64), bool_),
                                   e_.plain(Operator::at_least, slice, number(0), bool_),
                                   e_.plain(Operator::at_least, number(most), slice, bool_),
                                   e_.plain(Operator::at_least, extent, end, bool_)});
  b_.add_where_known(of_programs(is_inside),
                     thread::Check{.condition = is_inside,
                                   .message = fmt::format(
                                       "{}: the slice that the index map gives along dimension {} "
                                       "leaves the array, or has more than {} elements",
                                       m.origin, along.d, most),
                                   .test = is_program_,
                                   .of_placement = true});
}

// The number of elements along d that exist, and the first of them where there is padding before.
// `slice`: of how many the index map speaks, or none.
void Expander::size_of_window(WindowId window, ExprId start, const Along& along, ExprId slice) {
  const int d = along.d;
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const BlockDim& b = m.block_shape[d];
  const DType type = along.type;
  const bool padded = b.kind == BlockDim::Kind::element;
  const bool at_zero = e_[start].node == thread::Node::number;
  const std::int64_t loaded = along.loaded.size;
  const ExprId extent = e_.as(type, dim(m.array_aval.shape[d])), size = e_.number(loaded, type);
  passes::BlockNames& names = windows_[window];
  if (padded && b.pad_lo + b.pad_hi > 0) {
    const ExprId before = e_.sum(Affine::term(start, -1), i64);
    const ExprId least = e_.call(Row::min, i64, {before, e_.number(loaded, i64)});
    const thread::Facts facts = passes::facts_of_from(loaded, e_.facts(start).multiple);
    if (at_zero)
      names.from[d] = number(std::clamp<std::int64_t>(-e_[start].number, 0, loaded));
    else
      names.from[d] = b_.let_once("from", true,
                                  e_.choose(e_.plain(Operator::less, start, number(0), bool_),
                                            e_.cast(i32, least), number(0)),
                                  facts);
  }
  const ExprId left = at_zero ? extent : e_.plain(Operator::sub, extent, start, type);
  ExprId room = e_.as(i32, e_.call(Row::min, type, {left, size}));
  // Without padding a start on either side is far from the array: the room may not be an i32.
  if (!padded && !at_zero && !along.begins_inside)
    room = e_.choose(e_.plain(Operator::less, e_.cast(u64, start), e_.cast(u64, extent), bool_),
                     room, number(0));
  if (at_zero && m.array_aval.shape[d].is_static())
    room = number(std::min(m.array_aval.shape[d].value(), loaded));
  thread::Facts known = passes::facts_of_size(g_, m, d, loaded, e_.facts(extent), e_.facts(start));
  if (slice != no_expr) {
    known.multiple = std::gcd(known.multiple, e_.facts(slice).multiple);
    room = e_.call(Row::min, i32, {room, slice});
    check_slice(window, e_.as(i64, start), e_.as(i64, extent), slice, along);
  }
  names.size[d] = b_.let_once("size", true, room, known);
  if (along.begins_inside || slice != no_expr) return;
  // The only block of an array that may have no elements.
  const bool bounded = b.kind == BlockDim::Kind::bounded;
  if (bounded && at_zero) return;
  // Where there is no element, no block has one: what nobody uses may be that.
  if (graph::is_empty(m) && !graph::is_used(g_, static_cast<std::size_t>(w.mapping))) return;
  const ExprId exists = bounded ? e_.plain(Operator::equal, start, e_.number(0, type), bool_)
                                : exists_along(names, start, extent, b.size, along);
  b_.add_where_known(
      of_programs(exists),
      thread::Check{.condition = exists,
                    .message = fmt::format("{}: the block is wholly out of bounds along "
                                           "dimension {} (an index map gives block indices, "
                                           "not element offsets)",
                                           m.origin, d),
                    .test = is_program_,
                    .of_placement = true});
}

// From the first element of the array to that of the block, i32 where that holds it and all that is
// added to it in the block.
ExprId Expander::window_offset(WindowId window, const std::vector<ExprId>& starts) {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const int rank = m.array_aval.shape.rank();
  const auto is_zero = [&](ExprId s) { return e_[s].node == thread::Node::number; };
  const bool narrow = is_short(m) && std::ranges::all_of(starts, [&](ExprId s) {
                        return is_zero(s) || e_[s].type == i32;
                      });
  const DType type = narrow ? i32 : i64;
  Affine offset;
  Dim stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const ExprId start = e_.as(type, starts[static_cast<std::size_t>(d)]);
    if (!is_zero(start) && (m.dense ? stride.is_static() : d + 1 == rank)) {
      offset = offset + Affine::term(start, m.dense ? stride.value() : 1);
    } else if (!is_zero(start)) {
      const ExprId step =
          m.dense ? e_.as(type, dim(stride)) : e_.variable(strides_.at({w.mapping, d}));
      offset = offset + Affine::term(narrow ? e_.plain(Operator::mul, start, step, type)
                                            : passes::wide_product(e_, start, step));
    }
    stride = stride * m.array_aval.shape[d];
  }
  return e_.sum(offset, type);
}

void Expander::enter_window(WindowId window) {
  const Window& w = l_.windows[window];
  const BlockMapping& m = g_.mapping.block_mappings[w.mapping];
  const lowered::Redirects none;
  const int rank = m.array_aval.shape.rank();
  const std::vector<ExprId> at = Nest(*this, none).index_map(m.index_map, rank);
  auto size = static_cast<std::size_t>(rank);  // of the next bounded slice
  passes::BlockNames& names = windows_[window];
  names.size.assign(static_cast<std::size_t>(rank), no_expr);
  names.from = names.size;
  names.multiple.clear();
  std::vector<ExprId> starts;
  for (int d = 0; d < rank; ++d) {
    const Along along = this->along(window, d);
    starts.push_back(window_start(m.block_shape[d], at[d], along));
    const bool at_zero = e_[starts.back()].node == thread::Node::number;
    names.multiple.push_back(at_zero ? 0 : e_.facts(starts.back()).multiple);
    const bool is_slice = m.block_shape[d].kind == BlockDim::Kind::bounded_slice;
    const ExprId slice = is_slice ? at[size++] : no_expr;
    if (!along.loaded.in_bounds) size_of_window(window, starts.back(), along, slice);
  }
  names.start = starts;
  const ExprId offset = window_offset(window, starts);
  place_window(window, offset);
  if (const auto it = unstored_.find(w.storage()); w.depth > 0 && it != unstored_.end())
    b_.add(thread::Assign{e_.variable(it->second.flag), e_.literal(bool_, 0)});
}

// Where 32 bits hold all offsets from the array, threads add up one for the arrays that they access
// alike, and only then make addresses of it: elsewhere the block has a pointer.
void Expander::place_window(WindowId window, ExprId offset) {
  const Window& w = l_.windows[window];
  const VariableId array = arrays_[w.mapping];
  passes::BlockNames& names = windows_[window];
  names.first = no_expr;
  names.pointer = e_.variable(array);
  if (e_[offset].node == thread::Node::number) return;
  if (e_[offset].type == i32) {
    names.first = b_.let_once("at", true, offset);
    return;
  }
  const VariableId pointer = e_.declare({.name = fmt::format("w{}", window.number()),
                                         .form = thread::Form::pointer,
                                         .type = e_[array].type,
                                         .writable = w.stored});
  b_.add(thread::Let{pointer, e_.address(array, offset)});
  names.pointer = e_.variable(pointer);
}

}  // namespace palladium::expand
