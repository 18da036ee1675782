// Sorting: a bitonic network as a recorded loop, whose exchanges are choices of elements by number;
// and the first few, each the first of what is left.
#include <bit>
#include <limits>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/control.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

/// What is sorted along the last dimension, whose extent is a power of two: keys, and with them
/// the places at which they stood, which decide between equal ones.
struct Sorted {
  Value keys, places;
};

// What comes behind all elements, or as far behind as any.
std::uint64_t last_key(DType t, bool descending) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (t.is_bool()) return descending ? 0 : 1;
  if (!t.is_float()) return graph::to_bits(t, descending ? -infinity : infinity);
  return graph::to_bits(t, descending ? -infinity : std::numeric_limits<double>::quiet_NaN());
}

/// In which order elements stand.
class Order {
 public:
  Order(const char* what, Location at, bool descending, bool stable)
      : what_(what), at_(at), descending_(descending), stable_(stable) {}

 protected:
  template <class... V>
  Value op(Op op, const V&... v) const {
    return elementwise(op, {Value(v)...}, at_);
  }
  // NaN is above all others.
  Value before(const Value& a, const Value& b) const {
    const bool floats = a.dtype(at_).is_float();
    const Value less = a.dtype(at_).is_bool() ? op(Op::And, op(Op::Not, a), b) : op(Op::Lt, a, b);
    if (!floats) return less;
    return op(Op::Or, less, op(Op::And, op(Op::Ne, b, b), op(Op::Eq, a, a)));
  }
  // Whether the element (a, i) comes first.
  Value precedes(const Value& a, const Value& i, const Value& b, const Value& j) const {
    const Value first = descending_ ? before(b, a) : before(a, b);
    if (!stable_) return first;
    const Value other = descending_ ? before(a, b) : before(b, a);
    return op(Op::Or, first, op(Op::And, op(Op::Not, other), op(Op::Lt, i, j)));
  }

  const char* what_;
  Location at_;
  bool descending_, stable_;
};

class Sorting : Order {
 public:
  using Order::Order;

  Sorted run(const Value& keys) {
    const Extents shape = extents(keys.shape(at_));
    const std::int64_t n = shape.back();
    places_ = counted(shape, shape.size() - 1, at_);
    if (n == 1) return {keys, places_};
    // Runs of `run` elements are merged: elements `apart` from each other are compared, then those
    // at half that distance.
    const int bits = std::countr_zero(static_cast<std::uint64_t>(n));
    const Value first = Value(1).astype(i32, at_), two = Value(2).astype(i32, at_);
    const detail::Bound from(0, at_), to(bits * (bits + 1) / 2, at_);
    if (!stable_) {
      const auto [sorted, run, apart] = loop(
          from, to, {},
          [&](Index, Value x, Value run, Value apart) {
            const Value next = exchanged(x, {}, run, apart).keys;
            return carry(next, next_run(run, apart), next_apart(run, apart));
          },
          keys, two, first);
      return {sorted, {}};
    }
    const auto [sorted, order, run, apart] = loop(
        from, to, {},
        [&](Index, Value x, Value i, Value run, Value apart) {
          const Sorted next = exchanged(x, i, run, apart);
          return carry(next.keys, next.places, next_run(run, apart), next_apart(run, apart));
        },
        keys, places_, two, first);
    return {sorted, order};
  }

 private:
  Value next_run(const Value& run, const Value& apart) const {
    return selected(what_, op(Op::Eq, apart, 1), op(Op::Mul, run, 2), run, at_);
  }
  Value next_apart(const Value& run, const Value& apart) const {
    return selected(what_, op(Op::Eq, apart, 1), run, op(Op::Div, apart, 2), at_);
  }

  Value partner(const Value& x, const Value& at) const {
    Recorder& recorder = Recorder::current(what_, at_);
    const ValueId v = recorder.id(x, what_, at_);
    const auto along = static_cast<std::int64_t>(recorder.graph[v].type.shape.size()) - 1;
    return recorder.value(recorder.builder().add(Op::TakeAlong, {v, recorder.id(at, what_, at_)},
                                                 Attr{{along}, 0}, {}, at_));
  }

  // One element of each two keeps the first, by the half of their run in which they stand.
  Sorted exchanged(const Value& x, const Value& i, const Value& run, const Value& apart) const {
    const Value other_at = op(Op::Xor, places_, apart);
    const Value y = partner(x, other_at), j = stable_ ? partner(i, other_at) : Value();
    const Value is_low = op(Op::Eq, op(Op::And, places_, apart), 0);
    const Value ascends = op(Op::Eq, op(Op::And, places_, run), 0);
    const Value keeps_first = op(Op::Eq, is_low, ascends);
    const Value other_first = precedes(y, j, x, i), own_first = precedes(x, i, y, j);
    const Value takes_other = selected(what_, keeps_first, other_first, own_first, at_);
    return {selected(what_, takes_other, y, x, at_),
            stable_ ? selected(what_, takes_other, j, i, at_) : Value()};
  }

  Value places_;
};

/// The k largest along the last dimension, one after the other: the largest of those that the last
/// one precedes.
class Selecting : Order {
 public:
  Selecting(const char* what, Location at) : Order(what, at, true, true) {}

  Sorted run(const Value& keys, std::int64_t k) {
    Extents shape = extents(keys.shape(at_));
    const std::size_t along = shape.size() - 1;
    places_ = counted(shape, along, at_);
    const Sorted first = first_of(keys, Value(true));
    if (k == 1) return first;
    shape[along] = k;
    const Value numbers = counted(shape, along, at_);
    const auto chosen = [&](const Value& number, const Value& one, const Value& others) {
      return selected(what_, op(Op::Eq, numbers, number), one, others, at_);
    };
    const detail::Bound from(1, at_), to(k, at_);
    const auto [last, place, values, places] = loop(
        from, to, {},
        [&](Index n, Value last, Value place, Value values, Value places) {
          const Sorted next = first_of(keys, precedes(last, place, keys, places_));
          return carry(next.keys, next.places, chosen(n, next.keys, values),
                       chosen(n, next.places, places));
        },
        first.keys, first.places, chosen(0, first.keys, first.keys),
        chosen(0, first.places, first.places));
    return {values, places};
  }

 private:
  Sorted first_of(const Value& keys, const Value& left) const {
    const ReduceOptions along{.axis = -1, .keepdims = true};
    Recorder& recorder = Recorder::current(what_, at_);
    const Type type = recorder.graph[recorder.id(keys, what_, at_)].type;
    const Value least = recorder.value(
        recorder.builder().add(Op::Constant, {}, Attr{{}, last_key(type.dtype, true)}, type, at_));
    const Value top =
        reduced(Op::ReduceMax, what_, selected(what_, left, keys, least, at_), along, at_);
    Value is_top = op(Op::Eq, keys, top);
    if (type.dtype.is_float())
      is_top = op(Op::Or, is_top, op(Op::And, op(Op::Ne, keys, keys), op(Op::Ne, top, top)));
    const Value none(type.shape.back());
    const Value place =
        reduced(Op::ReduceMin, what_,
                selected(what_, op(Op::And, left, is_top), places_, none, at_), along, at_);
    return {top, place};
  }

  Value places_;
};

// The first n along the last dimension.
Value split_off(const Value& x, std::int64_t n, const char* what, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  Extents shape = extents(x.shape(at));
  const graph::SliceView view{Extents(shape.size(), 0), Extents(shape.size(), 1)};
  shape.back() = n;
  const Type type = Type::value(x.dtype(at), shape);
  return recorder.value(recorder.builder().add(Op::Slice, {recorder.id(x, what, at)},
                                               Attr{view.encode(), 0}, type, at));
}

// Along the last dimension, in values of their own extents.
Sorted sorted(const char* what, const Value& x, int axis, bool descending, bool stable,
              Location at) {
  Recorder& recorder = Recorder::current(what, at);
  const ValueId given = recorder.typed(x, what, at);
  ValueId v = computable(recorder, given, at);
  const DType t = recorder.graph[v].type.dtype;
  const Extents shape = recorder.graph[v].type.shape;
  const auto along = static_cast<std::size_t>(normalized(axis, shape.size(), what, at)[0]);
  const auto dimension = static_cast<std::int64_t>(along);
  v = recorder.filled_beyond(v, {&dimension, 1}, last_key(t, descending), at);
  const bool turns = along + 1 != shape.size();
  Value keys = recorder.value(v);
  if (turns) keys = swapaxes(Operand(keys, at), static_cast<int>(along), -1);
  const std::int64_t n = shape[along];
  const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  if (whole != n) {
    Extents rest = extents(keys.shape(at));
    rest.back() = whole - n;
    const ValueId last = recorder.builder().add(Op::Constant, {}, Attr{{}, last_key(t, descending)},
                                                Type::value(t, rest), at);
    keys = concatenate({Operand(keys, at), Operand(recorder.value(last), at)}, -1, at);
  }
  Sorted result = Sorting(what, at, descending, stable).run(keys);
  const auto own = [&](Value& s) {
    if (is_literal(s)) return;  // there is none
    if (whole != n) s = split_off(s, n, what, at);
    if (turns) s = swapaxes(Operand(s, at), static_cast<int>(along), -1);
  };
  own(result.keys);
  own(result.places);
  result.keys = recorder.value(rounded_as(recorder, recorder.id(result.keys, what, at),
                                          recorder.graph[given].type.dtype, at));
  for (const Value& s : {result.keys, result.places})
    if (!is_literal(s)) recorder.lengths.set(recorder.id(s, what, at), recorder.lengths.of(given));
  return result;
}

TopK first(const char* what, const Value& x, std::int64_t k, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  const ValueId given = recorder.typed(x, what, at);
  const ValueId v = computable(recorder, given, at);
  const Type type = recorder.graph[v].type;
  const std::int64_t along = static_cast<std::int64_t>(type.shape.size()) - 1;
  const ValueId keys = recorder.filled_beyond(v, {&along, 1}, last_key(type.dtype, true), at);
  const Sorted s = Selecting(what, at).run(recorder.value(keys), k);
  return {recorder.value(rounded_as(recorder, recorder.id(s.keys, what, at),
                                    recorder.graph[given].type.dtype, at)),
          s.places};
}

}  // namespace

}  // namespace palladium::trace

namespace palladium {

Value detail::folds::sort(const Operand& x, SortOptions options) {
  const Location at = trace::location(x);
  return trace::sorted("sort", trace::resolve(x), options.axis, options.descending, false, at).keys;
}

Value detail::folds::argsort(const Operand& x, SortOptions options) {
  const Location at = trace::location(x);
  return trace::sorted("argsort", trace::resolve(x), options.axis, options.descending, true, at)
      .places;
}

TopK top_k(const Operand& operand, std::int64_t k) {
  const Location at = trace::location(operand);
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "top_k", at);
  const trace::Extents shape = trace::extents(x.shape(at));
  if (shape.empty() || k < 1 || k > shape.back())
    throw CompileError(at, "top_k: expected a number of elements from 1 to " +
                               (shape.empty() ? "0" : std::to_string(shape.back())) + ", given " +
                               std::to_string(k));
  const auto length = static_cast<std::uint64_t>(shape.back());
  const int bits = std::bit_width(length - 1);
  // A round asks each element as often as a stage of a sort does, and moves none.
  if (k <= bits * (bits + 1) / 2 && !x.dtype(at).is_bool()) return trace::first("top_k", x, k, at);
  const trace::Sorted s = trace::sorted("top_k", x, -1, true, true, at);
  return {trace::split_off(s.keys, k, "top_k", at), trace::split_off(s.places, k, "top_k", at)};
}

}  // namespace palladium
