// Elements of values by arrays of numbers: gather and scatter.
#include <algorithm>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu.hpp"
#include "palladium/ops.hpp"
#include "palladium/scoped.hpp"

namespace palladium::trace {
namespace {

/// A value, and which of its elements arrays of numbers name: one for each of some dimensions.
class Indexed {
 public:
  Indexed(const char* what, const Operand& x, std::initializer_list<Operand> indices,
          const Axes& axes)
      : what_(what), at_(location(x)), recorder_(Recorder::current(what, at_)) {
    x_ = recorder_.value(recorder_.typed(resolve(x), what, at_));
    shape_ = extents(x_.shape(at_));
    for (const Operand& o : indices) numbers_.push_back(as_numbers(resolve(o)));
    choose(axes);
    broadcast();
  }

  const Value& value() const { return x_; }
  Location at() const { return at_; }
  Recorder& recorder() const { return recorder_; }
  [[noreturn]] void fail(const std::string& text) const {
    throw CompileError(at_, std::string(what_) + ": " + text);
  }
  ValueId id(const Value& v) const { return recorder_.id(v, what_, at_); }

  /// What `gathered` has: the other dimensions, and the indices' own from place() on.
  Extents selected_shape() const { return around(index_shape_); }
  std::size_t place() const { return are_neighbours() ? *std::ranges::min_element(axes_) : 0; }

  /// The dimensions of `axes` as one, whose elements one number each names.
  Value gathered() const {
    Attr order;
    Extents flat = rest();
    const auto put = static_cast<std::ptrdiff_t>(place());
    for (std::size_t d = 0; d < shape_.size(); ++d)
      if (std::ranges::count(axes_, d) == 0) order.ints.push_back(static_cast<std::int64_t>(d));
    order.ints.insert(order.ints.begin() + put, axes_.begin(), axes_.end());
    std::int64_t all = 1;
    for (const std::size_t d : axes_) all *= shape_[d];
    flat.insert(flat.begin() + put, all);
    const Value turned = recorder_.value(
        recorder_.builder().add(Op::Transpose, {id(x_)}, std::move(order), {}, at_));
    return take(Operand(reshaped(turned, to_shape(flat), at_), at_), Operand(flat_number(), at_),
                static_cast<int>(place()));
  }

  /// The part of a Ref of the value's shape that the arrays select, and its lanes that are in
  /// bounds.
  ValueId selected(ValueId ref) const {
    graph::Subscript subscript;
    std::vector<ValueId> starts;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const auto i = static_cast<std::size_t>(std::ranges::find(axes_, d) - axes_.begin());
      if (i == axes_.size()) {
        subscript.dims.push_back({.size = shape_[d]});
        continue;
      }
      subscript.dims.push_back({.is_slice = false, .dynamic = true, .array = true});
      starts.push_back(id(reshaped(numbers_[i], to_shape(array_shape()), at_)));
    }
    return recorder_.builder().at(ref, subscript, std::move(starts), at_);
  }
  ValueId in_bounds() const {
    Value all;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const Value& n = numbers_[i];
      const Value own = op(Op::And, op(Op::Ge, n, 0), op(Op::Lt, n, shape_[axes_[i]]));
      all = i == 0 ? own : op(Op::And, all, own);
    }
    Attr dims;
    for (std::size_t d = 0; d < array_shape().size(); ++d)
      dims.ints.push_back(static_cast<std::int64_t>(place() + d));
    return recorder_.builder().add(Op::Broadcast, {id(reshaped(all, to_shape(array_shape()), at_))},
                                   std::move(dims), Type::value(bool_, around(array_shape())), at_);
  }
  /// The updates, broadcast to what is selected.
  ValueId fitted(const Value& updates) const {
    const ValueId v = recorder_.typed(updates, x_.dtype(at_), what_, at_);
    if (recorder_.graph[v].type.dtype != x_.dtype(at_))
      fail("expected updates of the value's dtype " + std::string(x_.dtype(at_).name()) +
           ", given " + to_string(recorder_.graph[v].type));
    const Extents& own = recorder_.graph[v].type.shape;
    const Extents to = selected_shape();
    bool fits = own.size() <= to.size();
    for (std::size_t i = 1; fits && i <= own.size(); ++i)
      fits = own[own.size() - i] == 1 || own[own.size() - i] == to[to.size() - i];
    if (!fits)
      fail("expected updates that can be broadcast to " + to_string(to_shape(to)) + ", given " +
           to_string(recorder_.graph[v].type));
    const Value all = recorder_.value(recorder_.builder().broadcast_to(v, to, at_));
    return id(reshaped(all, to_shape(around(array_shape())), at_));
  }

 private:
  Value op(Op op, const Value& x, const Value& y) const { return elementwise(op, {x, y}, at_); }

  Value as_numbers(const Value& indices) const {
    const ValueId v = recorder_.typed(indices, what_, at_);
    if (!recorder_.graph[v].type.dtype.is_integer())
      fail("expected integers as indices, given " + to_string(recorder_.graph[v].type));
    return recorder_.value(recorder_.as_i32(v, at_));
  }

  void choose(const Axes& axes) {
    const std::size_t n = numbers_.size();
    if (n == 0) fail("expected an array of indices, given none");
    if (axes.size() == 0 && n <= shape_.size())
      for (std::size_t d = 0; d < n; ++d) axes_.push_back(d);
    for (const std::int64_t d : normalized(axes, shape_.size(), what_, at_))
      axes_.push_back(static_cast<std::size_t>(d));
    if (axes_.size() != n)
      fail("expected an array of indices for each of " +
           std::to_string(axes.size() == 0 ? shape_.size() : axes_.size()) + " axes" +
           (axes.size() == 0 ? " at most" : "") + ", given " + std::to_string(n));
  }

  void broadcast() {
    std::vector<ValueId> ids;
    for (const Value& v : numbers_) ids.push_back(id(v));
    ids = recorder_.builder().broadcast_together(std::move(ids), what_, at_);
    for (std::size_t i = 0; i < ids.size(); ++i) numbers_[i] = recorder_.value(ids[i]);
    index_shape_ = recorder_.graph[ids[0]].type.shape;
  }

  // Index arrays have dimensions.
  Extents array_shape() const { return index_shape_.empty() ? Extents{1} : index_shape_; }
  Extents around(const Extents& indices) const {
    Extents to = rest();
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(place()), indices.begin(), indices.end());
    return to;
  }
  bool are_neighbours() const {
    const auto [low, high] = std::ranges::minmax(axes_);
    return high - low + 1 == axes_.size();
  }
  Extents rest() const {
    Extents to;
    for (std::size_t d = 0; d < shape_.size(); ++d)
      if (std::ranges::count(axes_, d) == 0) to.push_back(shape_[d]);
    return to;
  }

  // In row-major order of the axes, each in bounds.
  Value flat_number() const {
    Value all;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const std::int64_t extent = shape_[axes_[i]];
      const Value own = op(Op::Min, op(Op::Max, numbers_[i], 0), extent - 1);
      all = i == 0 ? own : op(Op::Add, op(Op::Mul, all, extent), own);
    }
    return all;
  }

  const char* what_;
  Location at_;
  Recorder& recorder_;
  Value x_;
  Extents shape_, index_shape_;
  std::vector<Value> numbers_;
  std::vector<std::size_t> axes_;
};

// What updates are combined in: of 4 or 8 bytes, so that no small float is rounded several times.
DType combined_dtype(DType t) {
  if (t.bytes() >= 4) return t;
  return t.is_float() ? f32 : i32;
}

graph::Update update_of(ScatterMode mode) {
  switch (mode) {
  case ScatterMode::max: return graph::Update::max;
  case ScatterMode::min: return graph::Update::min;
  default: return graph::Update::add;
  }
}

Value scattered(const Indexed& x, const Value& given, ScatterMode mode) {
  const Location at = x.at();
  const DType t = x.value().dtype(at);
  if (mode != ScatterMode::set && t.is_bool()) x.fail("expected numbers to combine, given bool");
  const DType wide = mode == ScatterMode::set ? t : combined_dtype(t);
  Recorder& recorder = x.recorder();
  const Value updates = recorder.value(x.fitted(given)).astype(wide, at);
  const Value start = x.value().astype(wide, at);
  const ValueId mask = x.in_bounds();
  const auto body = [&](Ref memory) -> Value {
    const ValueId ref = recorder.id(memory, "scatter", at), view = x.selected(ref);
    recorder.builder().store(ref, x.id(start), graph::no_value, at);
    if (mode == ScatterMode::set)
      recorder.builder().store(view, x.id(updates), mask, at);
    else
      recorder.builder().atomic(update_of(mode), view, x.id(updates), mask, graph::no_value, at);
    recorder.note_write(ref);
    return recorder.value(recorder.builder().load(ref, graph::no_value, graph::no_value, at));
  };
  const Value all =
      run_scoped(body, {gpu::SMEM(start.shape(at), wide)}, {}, detail::Expression(at));
  return all.astype(t, at);
}

}  // namespace
}  // namespace palladium::trace

namespace palladium {

Value gather(const Operand& x, std::initializer_list<Operand> indices, Axes axes) {
  return trace::Indexed("gather", x, indices, axes).gathered();
}

Value scatter(const Operand& x, std::initializer_list<Operand> indices, const Operand& updates,
              ScatterOptions options) {
  const trace::Indexed elements("scatter", x, indices, options.axes);
  return trace::scattered(elements, trace::resolve(updates), options.mode);
}

}  // namespace palladium
