// Values beyond their lengths: what reductions, products and stores see instead of them.
#include <algorithm>

#include "codegen/trace/recorder.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {

using graph::no_value;

namespace {

// Less than the extent by what is in front of the first element: i32[].
ValueId end_of(Recorder& recorder, const Length& l, Location at) {
  graph::Builder builder = recorder.builder();
  ValueId end = recorder.id(recorder.value_of(l.extent, false, at), "length", at);
  const auto apply = [&](Op op, ValueId x, std::int64_t n) {
    return builder.elementwise(op, {x, builder.constant(i32, n, {}, at)}, at);
  };
  if (l.first != 0) end = apply(Op::Sub, end, l.first);
  for (const Length::Addend& a : l.addends) {
    ValueId x = a.value;
    if (a.most >= 0) x = apply(Op::Min, apply(Op::Max, x, 0), a.most);
    if (a.times != 1) x = apply(Op::Mul, x, a.times);
    end = builder.elementwise(Op::Sub, {end, x}, at);
  }
  return end;
}

}  // namespace

// Where elements of this shape are in all of these lengths; none: everywhere.
ValueId Recorder::is_within(const Extents& shape, const Lengths& of, Location at) {
  ValueId all = no_value;
  for (std::size_t d = 0; d < of.size(); ++d)
    for (const Length& l : of[d]) {
      ValueId place = builder().add(Op::Iota, {}, Attr{{static_cast<std::int64_t>(d)}, 0},
                                    Type::value(i32, shape), at);
      if (l.stride != 1)
        place =
            builder().elementwise(Op::Mul, {place, builder().constant(i32, l.stride, {}, at)}, at);
      const ValueId end = end_of(*this, l, at);
      const ValueId holds = builder().elementwise(Op::Lt, {place, end}, at);
      all = all == no_value ? holds : builder().elementwise(Op::And, {all, holds}, at);
    }
  return all;
}

ValueId Recorder::filled_beyond(ValueId v, std::span<const std::int64_t> dimensions,
                                std::uint64_t bits, Location at) {
  const Lengths all = lengths.of(v);
  Lengths asked(all.size()), left = all;
  for (const std::int64_t d : dimensions)
    if (static_cast<std::size_t>(d) < all.size())
      std::swap(asked[static_cast<std::size_t>(d)], left[static_cast<std::size_t>(d)]);
  if (!has_any(asked)) return v;
  const Type type = graph[v].type;
  const ValueId inside = is_within(type.shape, asked, at);
  const ValueId other = builder().add(Op::Constant, {}, Attr{{}, bits}, type, at);
  const ValueId filled = builder().elementwise(Op::Select, {inside, v, other}, at);
  lengths.set(filled, std::move(left));
  return filled;
}

ValueId Recorder::carried_on(ValueId next, ValueId carry, Location at) {
  const Lengths more = without(lengths.of(next), lengths.of(carry));
  if (!has_any(more)) return next;
  const ValueId inside = is_within(graph[next].type.shape, more, at);
  return builder().elementwise(Op::Select, {inside, next, carry}, at);
}

ValueId Recorder::given_out(ValueId v, Location at) {
  const Lengths all = lengths.of(v);
  Lengths outer = all;
  std::vector<std::int64_t> inner;
  for (std::size_t d = 0; d < all.size(); ++d)
    if (std::erase_if(outer[d], [](const Length& l) { return !l.addends.empty(); }) > 0)
      inner.push_back(static_cast<std::int64_t>(d));
  if (inner.empty()) return v;
  const ValueId filled = filled_beyond(v, inner, 0, at);
  lengths.set(filled, std::move(outer));
  return filled;
}

ValueId Recorder::within(ValueId value, ValueId view, ValueId mask, Location at) {
  const Lengths more = without(lengths.of(value), lengths.of(view));
  if (!has_any(more)) return mask;
  const ValueId inside = is_within(graph[value].type.shape, more, at);
  return mask == no_value ? inside : builder().elementwise(Op::And, {mask, inside}, at);
}

Value Recorder::length(ValueId v, std::size_t dimension, Location at) {
  const Lengths all = lengths.of(v);
  const std::int64_t most = graph[v].type.shape[dimension];
  if (all.empty() || all[dimension].empty()) return Value(most);
  Value least;
  for (const Length& l : all[dimension]) {
    Value n = l.is_plain() ? value_of(l.extent, true, at) : value(end_of(*this, l, at));
    if (!l.is_plain()) {
      if (l.stride != 1) n = cdiv(Operand(n, at), Operand(l.stride, at));
      n = clamp(Operand(0, at), Operand(n, at), Operand(most, at));
    }
    least = &l == all[dimension].data() ? n : elementwise(Op::Min, {least, n}, at);
  }
  return least;
}

}  // namespace palladium::trace

namespace palladium {

using trace::Recorder;

namespace {

Value length_of(Recorder& recorder, trace::ValueId v, int axis, Location at) {
  const std::size_t rank = recorder.graph[v].type.shape.size();
  return recorder.length(
      v, static_cast<std::size_t>(trace::normalized(axis, rank, "length", at)[0]), at);
}

}  // namespace

Value length(const Operand& x, int axis) {
  const Location at = trace::location(x);
  const Value v = trace::resolve(x);
  Recorder& recorder = Recorder::current("length", at);
  return length_of(recorder, recorder.typed(v, "length", at), axis, at);
}

Value length(const Ref& x, int axis, Location at) {
  Recorder& recorder = Recorder::current("length", at);
  return length_of(recorder, recorder.id(x, "length", at), axis, at);
}

}  // namespace palladium
