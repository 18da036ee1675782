// Values made of elements of others: slices, parts put together, elements chosen by number.
#include <algorithm>
#include <numeric>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {

Value counted(const Extents& shape, std::size_t dimension, Location at) {
  return iota(i32, to_shape(shape), static_cast<int>(dimension), at);
}

namespace {

using Ids = std::vector<ValueId>;

/// A typed value, its shape, and how to record at the user's line.
class Moving {
 public:
  Moving(const char* what, const Value& x, Location at)
      : what_(what), at_(at), recorder_(Recorder::current(what, at)) {
    v_ = recorder_.typed(x, what, at);
  }
  Moving(const char* what, const Operand& x) : Moving(what, resolve(x), location(x)) {}

  const Type& type() const { return recorder_.graph[v_].type; }
  const Extents& shape() const { return type().shape; }
  std::size_t rank() const { return shape().size(); }
  Value value() const { return recorder_.value(v_); }
  ValueId id() const { return v_; }
  Location at() const { return at_; }
  const char* what() const { return what_; }
  Recorder& recorder() const { return recorder_; }

  std::size_t axis(int given) const {
    return static_cast<std::size_t>(normalized(given, rank(), what_, at_)[0]);
  }
  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, std::string(what_) + ": " + text);
  }

  ValueId add(Op op, Ids args, Attr attr = {}, Extents shape = {}) const {
    return recorder_.builder().add(op, std::move(args), std::move(attr),
                                   Type::value(type().dtype, std::move(shape)), at_);
  }
  ValueId slice(ValueId v, const graph::SliceView& view, Extents shape) const {
    return add(Op::Slice, {v}, Attr{view.encode(), 0}, std::move(shape));
  }
  /// Elements from `start` on along one dimension.
  ValueId part(ValueId v, std::size_t along, std::int64_t start, std::int64_t size) const {
    Extents to = recorder_.graph[v].type.shape;
    graph::SliceView view{Extents(to.size(), 0), Extents(to.size(), 1)};
    view.starts[along] = start;
    to[along] = size;
    return slice(v, view, std::move(to));
  }
  ValueId concatenated(Ids parts, std::size_t along) const {
    if (parts.size() == 1) return parts[0];
    return add(Op::Concatenate, std::move(parts), Attr{{static_cast<std::int64_t>(along)}, 0});
  }
  ValueId reshaped(ValueId v, Extents shape) const {
    if (recorder_.graph[v].type.shape == shape) return v;
    return add(Op::Reshape, {v}, {}, std::move(shape));
  }
  ValueId number(std::int64_t n) const { return recorder_.builder().constant(i32, n, {}, at_); }

 private:
  const char* what_;
  Location at_;
  Recorder& recorder_;
  ValueId v_;
};

// Typed, left before right, of one dtype, which literals take.
Ids parts_of(const char* what, std::span<const Value> values, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  if (values.empty()) throw CompileError(at, std::string(what) + ": expected values, given none");
  Ids ids;
  for (const Value& v : values) ids.push_back(recorder.typed(v, what, at));
  return ids;
}

std::string types_of(const Recorder& recorder, const Ids& ids) {
  std::string list;
  for (std::size_t i = 0; i < ids.size(); ++i)
    list += (i == 0                ? ""
             : i + 1 == ids.size() ? " and "
                                   : ", ") +
            to_string(recorder.graph[ids[i]].type);
  return list;
}

std::vector<Value> resolved(std::initializer_list<Operand> operands) {
  std::vector<Value> values;
  for (const Operand& o : operands) values.push_back(resolve(o));
  return values;
}

Value concatenated(std::span<const Value> values, int axis, Location at) {
  const Ids ids = parts_of("concatenate", values, at);
  Recorder& recorder = Recorder::current("concatenate", at);
  const Moving first("concatenate", recorder.value(ids[0]), at);
  return recorder.value(first.concatenated(ids, first.axis(axis)));
}

Value stacked(std::span<const Value> values, int axis, Location at) {
  Ids ids = parts_of("stack", values, at);
  Recorder& recorder = Recorder::current("stack", at);
  const Moving first("stack", recorder.value(ids[0]), at);
  for (const ValueId v : ids)
    if (!(recorder.graph[v].type == first.type()))
      first.fail("expected operands of one dtype and shape, given " + types_of(recorder, ids));
  Extents shape = first.shape();
  const auto along = static_cast<std::size_t>(normalized(axis, first.rank() + 1, "stack", at)[0]);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(along), 1);
  for (ValueId& v : ids) v = first.reshaped(v, shape);
  return recorder.value(first.concatenated(std::move(ids), along));
}

// An index for each dimension, as i32[] starts.
Ids starts_of(const Moving& m, std::initializer_list<Operand> starts) {
  if (starts.size() != m.rank())
    m.fail("expected a start for each dimension of " + to_string(m.type()) + ", given " +
           std::to_string(starts.size()));
  Ids ids;
  for (const Operand& s : starts)
    ids.push_back(m.recorder().i32_scalar(resolve(s), m.what(), "a start", m.at()));
  return ids;
}

Value selected_part(const Value& x, const detail::Place& subscript) {
  using detail::Access;
  const Moving m("slice", x, Access::at(subscript));
  const Selection s = selection(m.recorder(), m.type(), Access::indices(subscript),
                                Access::count(subscript), {}, "slice", m.at());
  Extents spanned, sizes, kept;
  graph::SliceView view;
  Ids operands{m.id()};
  std::size_t next = 0;
  for (const graph::SubscriptDim& d : s.subscript.dims) {
    spanned.push_back((d.size - 1) * d.stride + 1);
    sizes.push_back(d.size);
    if (d.is_slice) kept.push_back(d.size);
    view.starts.push_back(s.starts.empty() ? d.start : 0);
    view.strides.push_back(d.stride);
    if (!s.starts.empty()) operands.push_back(d.dynamic ? s.starts[next++] : m.number(d.start));
  }
  ValueId v = m.id();
  if (!s.starts.empty()) v = m.add(Op::DynamicSlice, std::move(operands), {}, spanned);
  if (m.recorder().graph[v].type.shape != sizes || (s.starts.empty() && !s.everything))
    v = m.slice(v, view, sizes);
  return m.recorder().value(m.reshaped(v, kept));
}

Value flipped(const Moving& m, const Axes& axes) {
  graph::SliceView view{Extents(m.rank(), 0), Extents(m.rank(), 1)};
  std::vector<std::int64_t> along = normalized(axes, m.rank(), m.what(), m.at());
  if (axes.size() == 0)
    for (std::size_t d = 0; d < m.rank(); ++d) along.push_back(static_cast<std::int64_t>(d));
  for (const std::int64_t d : along) {
    const auto at = static_cast<std::size_t>(d);
    view.starts[at] = m.shape()[at] - 1;
    view.strides[at] = m.shape()[at] == 1 ? 1 : -1;
  }
  return m.recorder().value(m.slice(m.id(), view, m.shape()));
}

ValueId rolled(const Moving& m, ValueId v, std::size_t along, std::int64_t shift) {
  const std::int64_t extent = m.recorder().graph[v].type.shape[along];
  const std::int64_t behind = ((shift % extent) + extent) % extent;  // how many come in front
  if (behind == 0) return v;
  return m.concatenated(
      {m.part(v, along, extent - behind, behind), m.part(v, along, 0, extent - behind)}, along);
}

// Each element of `sizes[d]` times along d, as a whole (of a tile) or each by itself.
ValueId repeated(const Moving& m, ValueId v, std::size_t along, std::int64_t times, bool tiles) {
  Extents shape = m.recorder().graph[v].type.shape, wide = shape, to = shape;
  if (times == 1) return v;
  const auto at = static_cast<std::ptrdiff_t>(tiles ? along : along + 1);
  shape.insert(shape.begin() + at, 1);
  wide.insert(wide.begin() + at, times);
  to[along] *= times;
  Attr all;
  for (std::size_t d = 0; d < shape.size(); ++d) all.ints.push_back(static_cast<std::int64_t>(d));
  return m.reshaped(m.add(Op::Broadcast, {m.reshaped(v, shape)}, std::move(all), wide), to);
}

// The number of the element that stands at `i - before` beyond the ends, too.
Value continued(Value i, std::int64_t before, std::int64_t extent, PadMode mode, Location at) {
  i = elementwise(Op::Sub, {i, Value(before)}, at);
  if (mode == PadMode::edge) return i;  // a number out of bounds stands for the nearest in them
  // Not negative, so that the remainder is not.
  const std::int64_t turns = (before + extent - 1) / extent * extent;
  return elementwise(Op::Rem, {elementwise(Op::Add, {i, Value(turns)}, at), Value(extent)}, at);
}

ValueId padding(const Moving& m, const Extents& shape, const PadOptions& options) {
  const Value& x = detail::Access::value(options.value);
  const ValueId one = detail::Access::given(options.value)
                          ? m.recorder().typed(x, m.type().dtype, m.what(), m.at())
                          : m.recorder().builder().constant(m.type().dtype, 0, {}, m.at());
  return m.recorder().builder().broadcast_to(one, shape, m.at());
}

// Every n-th element is one of the value's, those between are padding.
ValueId padded_between(const Moving& m, ValueId v, std::size_t along, const PadWidth& p,
                       const PadOptions& options) {
  Extents shape = m.recorder().graph[v].type.shape;
  const std::int64_t extent = shape[along], apart = p.interior + 1;
  shape[along] = (extent - 1) * apart + 1 + p.before + p.after;
  const Location at = m.at();
  const auto op = [&](Op op, const Value& x, std::int64_t y) {
    return elementwise(op, {x, Value(y)}, at);
  };
  const Value i = op(Op::Sub, counted(shape, along, at), p.before), nth = op(Op::Div, i, apart);
  const Value is_inside = elementwise(Op::And, {op(Op::Ge, i, 0), op(Op::Lt, nth, extent)}, at);
  const Value is_own = elementwise(Op::And, {is_inside, op(Op::Eq, op(Op::Rem, i, apart), 0)}, at);
  const ValueId own = m.add(Op::TakeAlong, {v, m.recorder().id(nth, m.what(), at)},
                            Attr{{static_cast<std::int64_t>(along)}, 0});
  return m.recorder().id(selected(m.what(), is_own, m.recorder().value(own),
                                  m.recorder().value(padding(m, shape, options)), at),
                         m.what(), at);
}

ValueId padded(const Moving& m, ValueId v, std::size_t along, const PadWidth& p,
               const PadOptions& options) {
  Extents shape = m.recorder().graph[v].type.shape;
  const std::int64_t extent = shape[along];
  if (p.interior > 0 && extent > 1) return padded_between(m, v, along, p, options);
  if (options.mode == PadMode::constant) {
    Ids parts;
    const auto filled = [&](std::int64_t n) {
      if (n <= 0) return;
      shape[along] = n;
      parts.push_back(padding(m, shape, options));
    };
    const std::int64_t first = std::max<std::int64_t>(-p.before, 0);
    const std::int64_t own = extent - first - std::max<std::int64_t>(-p.after, 0);
    filled(std::min(p.before, extent + p.before + p.after));
    if (own > 0) parts.push_back(own == extent ? v : m.part(v, along, first, own));
    filled(std::min(p.after, extent + p.before + p.after));
    return m.concatenated(std::move(parts), along);
  }
  shape[along] = extent + p.before + p.after;
  const Value index =
      continued(counted(shape, along, m.at()), p.before, extent, options.mode, m.at());
  return m.add(Op::TakeAlong, {v, m.recorder().id(index, m.what(), m.at())},
               Attr{{static_cast<std::int64_t>(along)}, 0});
}

void check_width(const Moving& m, std::size_t d, const PadWidth& p, PadMode mode) {
  constexpr std::int64_t most = INT32_MAX;
  const auto in_range = [&](std::int64_t n, std::int64_t least) { return n >= least && n <= most; };
  const std::string where = " in dimension " + std::to_string(d);
  const std::int64_t least = mode == PadMode::constant ? -most : 0;
  if (!in_range(p.before, least) || !in_range(p.after, least))
    m.fail((least == 0 ? "expected widths from 0, given " : "expected widths of 31 bits, given ") +
           std::to_string(p.before) + " and " + std::to_string(p.after) + where);
  if (!in_range(p.interior, 0) || (p.interior > 0 && mode != PadMode::constant))
    m.fail(std::string(p.interior > 0 && p.interior <= most ? "expected constants between elements"
                                                            : "expected an interior width from 0") +
           ", given " + std::to_string(p.interior) + where);
  const std::int64_t left = (m.shape()[d] - 1) * (p.interior + 1) + 1 + p.before + p.after;
  if (left < 1)
    m.fail("expected widths that leave an element, given " + std::to_string(p.before) + " and " +
           std::to_string(p.after) + " for " + std::to_string(left - p.before - p.after) +
           " elements" + where);
}

// x where `keep` holds of column - row, else 0.
Value triangle(const char* what, const Operand& operand, std::int64_t diagonal, Op keep) {
  const Moving m(what, operand);
  if (m.rank() < 2)
    m.fail("expected a value of at least two dimensions, given " + to_string(m.type()));
  const Value row = counted(m.shape(), m.rank() - 2, m.at());
  const Value column = counted(m.shape(), m.rank() - 1, m.at());
  const Value apart = elementwise(Op::Sub, {column, row}, m.at());
  return selected(what, elementwise(keep, {apart, Value(diagonal)}, m.at()), m.value(), 0, m.at());
}

// i32 of any integers.
Value as_indices(const Moving& m, const Value& indices) {
  const Moving i(m.what(), indices, m.at());
  if (!i.type().dtype.is_integer())
    m.fail("expected integers as indices, given " + to_string(i.type()));
  return m.recorder().value(m.recorder().as_i32(i.id(), m.at()));
}

Value taken_along(const Moving& m, const Value& indices, std::size_t along) {
  return m.recorder().value(m.add(Op::TakeAlong,
                                  {m.id(), m.recorder().id(indices, m.what(), m.at())},
                                  Attr{{static_cast<std::int64_t>(along)}, 0}));
}

}  // namespace
}  // namespace palladium::trace

namespace palladium {

using trace::Extents;
using trace::Moving;
using trace::Op;
using trace::ValueId;

Value Value::operator[](Subscript&& subscript) const {
  return trace::selected_part(*this, detail::Access::place(subscript));
}

// ---- dimensions of extent 1

Value squeeze(const Operand& x, Axes axes) {
  const Moving m("squeeze", x);
  const std::vector<std::int64_t> gone = trace::normalized(axes, m.rank(), m.what(), m.at());
  Extents shape;
  for (std::size_t d = 0; d < m.rank(); ++d) {
    const bool named = std::ranges::count(gone, static_cast<std::int64_t>(d)) > 0;
    if (named && m.shape()[d] != 1)
      m.fail("expected an extent of 1 in dimension " + std::to_string(d) + " of " +
             to_string(m.type()) + ", given " + std::to_string(m.shape()[d]));
    if (axes.size() == 0 ? m.shape()[d] != 1 : !named) shape.push_back(m.shape()[d]);
  }
  return m.recorder().value(m.reshaped(m.id(), shape));
}

Value expand_dims(const Operand& x, Axes axes) {
  const Moving m("expand_dims", x);
  const std::size_t rank = m.rank() + static_cast<std::size_t>(axes.size());
  std::vector<std::int64_t> added = trace::normalized(axes, rank, m.what(), m.at());
  std::ranges::sort(added);
  Extents shape = m.shape();
  for (const std::int64_t d : added)
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(d), 1);
  return m.recorder().value(m.reshaped(m.id(), shape));
}

Value swapaxes(const Operand& x, int a, int b) {
  const Moving m("swapaxes", x);
  std::vector<std::int64_t> order(m.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[m.axis(a)], order[m.axis(b)]);
  return m.recorder().value(m.add(Op::Transpose, {m.id()}, trace::Attr{order, 0}));
}

// ---- put together, taken apart

Value concatenate(std::initializer_list<Operand> values, int axis, Location at) {
  return trace::concatenated(trace::resolved(values), axis, at);
}
Value concatenate(std::span<const Value> values, int axis, Location at) {
  return trace::concatenated(values, axis, at);
}
Value stack(std::initializer_list<Operand> values, int axis, Location at) {
  return trace::stacked(trace::resolved(values), axis, at);
}
Value stack(std::span<const Value> values, int axis, Location at) {
  return trace::stacked(values, axis, at);
}

std::vector<Value> split(const Operand& x, std::int64_t parts, int axis) {
  const Moving m("split", x);
  const std::size_t along = m.axis(axis);
  const std::int64_t extent = m.shape()[along];
  if (parts < 1 || extent % parts != 0)
    m.fail("expected a number of parts that divides " + std::to_string(extent) + ", given " +
           std::to_string(parts));
  const std::int64_t size = extent / parts;
  std::vector<Value> result;
  for (std::int64_t i = 0; i < parts; ++i)
    result.push_back(m.recorder().value(m.part(m.id(), along, i * size, size)));
  return result;
}

Value pad(const Operand& x, std::initializer_list<PadWidth> widths, PadOptions options) {
  const Moving m("pad", x);
  if (widths.size() != m.rank())
    m.fail("expected a width for each dimension of " + to_string(m.type()) + ", given " +
           std::to_string(widths.size()));
  ValueId v = m.id();
  std::size_t d = 0;
  for (const PadWidth& p : widths) {
    trace::check_width(m, d, p, options.mode);
    if (p.before != 0 || p.after != 0 || p.interior != 0) v = trace::padded(m, v, d, p, options);
    ++d;
  }
  return m.recorder().value(v);
}

// ---- the same elements elsewhere, or several times

Value flip(const Operand& x, Axes axes) { return trace::flipped(Moving("flip", x), axes); }

Value roll(const Operand& x, std::int64_t shift, Axes axes) {
  const Moving m("roll", x);
  if (axes.size() == 0) {
    const ValueId flat = m.reshaped(m.id(), {graph::element_count(m.shape())});
    return m.recorder().value(m.reshaped(trace::rolled(m, flat, 0, shift), m.shape()));
  }
  ValueId v = m.id();
  for (const std::int64_t d : trace::normalized(axes, m.rank(), m.what(), m.at()))
    v = trace::rolled(m, v, static_cast<std::size_t>(d), shift);
  return m.recorder().value(v);
}

Value repeat(const Operand& x, std::int64_t times, Axes axis) {
  const Moving m("repeat", x);
  if (times < 1) m.fail("expected at least one time, given " + std::to_string(times));
  if (axis.size() > 1)
    m.fail("expected one axis, or none for all elements, given " + std::to_string(axis.size()));
  if (axis.size() == 1)
    return m.recorder().value(trace::repeated(m, m.id(), m.axis(axis[0]), times, false));
  const ValueId flat = m.reshaped(m.id(), {graph::element_count(m.shape())});
  return m.recorder().value(trace::repeated(m, flat, 0, times, false));
}

Value tile(const Operand& x, Shape times) {
  const Moving m("tile", x);
  Extents shape = m.shape(), counts = trace::extents(times);
  const std::size_t rank = std::max(shape.size(), counts.size());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  counts.insert(counts.begin(), rank - counts.size(), 1);
  ValueId v = m.reshaped(m.id(), shape);
  for (std::size_t d = 0; d < rank; ++d) {
    if (counts[d] < 1) m.fail("expected at least one time, given " + std::to_string(counts[d]));
    v = trace::repeated(m, v, d, counts[d], true);
  }
  return m.recorder().value(v);
}

Value tril(const Operand& x, std::int64_t diagonal) {
  return trace::triangle("tril", x, diagonal, Op::Le);
}
Value triu(const Operand& x, std::int64_t diagonal) {
  return trace::triangle("triu", x, diagonal, Op::Ge);
}

Value diagonal(const Operand& x, std::int64_t offset) {
  const Moving m("diagonal", x);
  if (m.rank() != 2) m.fail("expected a value of two dimensions, given " + to_string(m.type()));
  const std::int64_t rows = m.shape()[0], columns = m.shape()[1];
  if (offset <= -rows || offset >= columns)
    m.fail("expected an offset above -" + std::to_string(rows) + " and below " +
           std::to_string(columns) + ", given " + std::to_string(offset));
  const std::int64_t row = std::max<std::int64_t>(-offset, 0);
  const std::int64_t column = std::max<std::int64_t>(offset, 0);
  const std::int64_t size = std::min(rows - row, columns - column);
  const ValueId flat = m.reshaped(m.id(), {rows * columns});
  const std::int64_t stride = size == 1 ? 1 : columns + 1;
  return m.recorder().value(m.slice(flat, {{row * columns + column}, {stride}}, {size}));
}

// ---- by numbers that are values

Value dynamic_slice(const Operand& x, std::initializer_list<Operand> starts, Shape sizes) {
  const Moving m("dynamic_slice", x);
  std::vector<ValueId> operands = trace::starts_of(m, starts);
  operands.insert(operands.begin(), m.id());
  return m.recorder().value(
      m.add(Op::DynamicSlice, std::move(operands), {}, trace::extents(sizes)));
}

Value dynamic_update_slice(const Operand& x, const Operand& part,
                           std::initializer_list<Operand> starts) {
  const Moving m("dynamic_update_slice", x);
  const Value update = trace::resolve(part);
  std::vector<ValueId> operands = trace::starts_of(m, starts);
  operands.insert(operands.begin(),
                  {m.id(), m.recorder().typed(update, m.type().dtype, m.what(), m.at())});
  return m.recorder().value(m.add(Op::DynamicUpdateSlice, std::move(operands)));
}

Value take_along_axis(const Operand& x, const Operand& indices, int axis) {
  const Moving m("take_along_axis", x);
  const Value numbers = trace::as_indices(m, trace::resolve(indices));
  return trace::taken_along(m, numbers, m.axis(axis));
}

Value take(const Operand& x, const Operand& indices, int axis) {
  const Moving m("take", x);
  const Value numbers = trace::as_indices(m, trace::resolve(indices));
  const std::size_t along = m.axis(axis);
  const Extents chosen = trace::extents(numbers.shape(m.at()));
  Extents shape = m.shape(), to(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(along));
  to.insert(to.end(), chosen.begin(), chosen.end());
  to.insert(to.end(), shape.begin() + static_cast<std::ptrdiff_t>(along) + 1, shape.end());
  shape[along] = graph::element_count(chosen);
  // One number for all elements of a part of the operand.
  const Value flat = trace::reshaped(numbers, {-1}, m.at());
  const ValueId wide = m.recorder().builder().add(
      Op::Broadcast, {m.recorder().id(flat, m.what(), m.at())},
      trace::Attr{{static_cast<std::int64_t>(along)}, 0}, trace::Type::value(i32, shape), m.at());
  const Value result = trace::taken_along(m, m.recorder().value(wide), along);
  return m.recorder().value(m.reshaped(m.recorder().id(result, m.what(), m.at()), to));
}

}  // namespace palladium
