// Shapes, dot, and values from nothing.
#include <algorithm>
#include <cmath>

#include "codegen/base/checked.hpp"
#include "codegen/base/format.hpp"
#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {

Extents completed(const Shape& shape, std::int64_t count, const char* what, Location at) {
  Extents result = extents(shape);
  const auto unknown = std::find(result.begin(), result.end(), -1);
  if (unknown == result.end()) return result;
  *unknown = 1;
  if (std::find(result.begin(), result.end(), -1) != result.end())
    throw CompileError(
        at, std::string(what) + ": at most one dimension can be -1, given " + to_string(shape));
  const std::int64_t rest = checked_product(result).value_or(0);
  if (rest <= 0 || count % rest != 0)
    throw CompileError(at, std::string(what) + ": the given dimensions of " + to_string(shape) +
                               " do not divide " + std::to_string(count) + " elements");
  *unknown = count / rest;
  return result;
}

std::vector<std::int64_t> normalized(const Axes& axes, std::size_t rank, const char* what,
                                     Location at) {
  std::vector<std::int64_t> result;
  const auto n = static_cast<std::int64_t>(rank);
  for (const int axis : axes) {
    const std::int64_t positive = axis < 0 ? axis + n : axis;
    if (positive < 0 || positive >= n)
      throw CompileError(at, std::string(what) + ": axis " + std::to_string(axis) +
                                 " is out of bounds for a value of " + std::to_string(n) +
                                 " dimensions");
    if (std::find(result.begin(), result.end(), positive) != result.end())
      throw CompileError(at,
                         std::string(what) + ": axis " + std::to_string(axis) + " is given twice");
    result.push_back(positive);
  }
  return result;
}

Value reshaped(const Value& x, const Shape& shape, Location at) {
  Recorder& recorder = Recorder::current("reshape", at);
  const ValueId v = recorder.typed(x, "reshape", at);
  const Type from = recorder.graph[v].type;
  const Type to =
      Type::value(from.dtype, completed(shape, graph::element_count(from.shape), "reshape", at));
  return recorder.value(recorder.builder().add(Op::Reshape, {v}, Attr{}, to, at));
}

namespace {

Value transposed(const Value& x, const Axes& permutation, Location at) {
  Recorder& recorder = Recorder::current("transpose", at);
  const ValueId v = recorder.typed(x, "transpose", at);
  const std::size_t rank = recorder.graph[v].type.shape.size();
  Attr attr{normalized(permutation, rank, "transpose", at), 0};
  if (permutation.size() == 0)
    for (std::size_t i = rank; i-- > 0;) attr.ints.push_back(static_cast<std::int64_t>(i));
  return recorder.value(recorder.builder().add(Op::Transpose, {v}, std::move(attr), {}, at));
}

Value splat(Shape shape, std::int64_t number, DType dtype, const char* what, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  return recorder.value(recorder.builder().constant(dtype, number, extents(shape), at));
}

const Type& type_of(const Value& v, const char* what, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  return recorder.graph[recorder.id(v, what, at)].type;
}

// What an operation is like: the shape and dtype of a value or of a Ref.
ShapeDtype pattern(const Operand& x, const char* what) {
  const Value v = resolve(x);
  expect_given(v, what, location(x));
  return {v.shape(location(x)), v.dtype(location(x))};
}

Value splat_like(const ShapeDtype& x, std::int64_t number, DType dtype, const char* what,
                 Location at) {
  return splat(x.shape, number, dtype == DType() ? x.dtype : dtype, what, at);
}

Value filled_like(const ShapeDtype& x, const Operand& operand, DType dtype) {
  const Location at = location(operand);
  const Value value = resolve(operand);
  expect_given(value, "full_like", at);
  Recorder& recorder = Recorder::current("full_like", at);
  if (dtype == DType()) dtype = x.dtype;
  if (is_literal(value))
    return recorder.value(recorder.typed(value, dtype, "full_like", at, extents(x.shape)));
  const ValueId v = recorder.builder().cast(recorder.id(value, "full_like", at), dtype, at);
  return recorder.value(recorder.builder().broadcast_to(v, extents(x.shape), at));
}

// ---- arange

Literal number_of(const Operand& operand, const char* role) {
  const Location at = location(operand);
  const Value v = resolve(operand);
  expect_given(v, "arange", at);
  if (!is_literal(v))
    throw CompileError(at, std::string("arange: ") + role +
                               " must be a C++ number, since the extent comes of it, given " +
                               graph::to_string(type_of(v, "arange", at)) +
                               "; pl::iota(dtype, {n}) + start counts from a Value");
  const Literal l = literal(v);
  if (l.kind == Literal::Kind::truth || !std::isfinite(l.number()))
    throw CompileError(at, std::string("arange: ") + role + " must be a finite number, given " +
                               (l.kind == Literal::Kind::truth ? "a bool"
                                : std::isnan(l.number())       ? "NaN"
                                                               : "an infinite one"));
  return l;
}

bool is_floating(const Literal& l) { return l.kind == Literal::Kind::floating; }

bool is_whole(const Literal& l) { return !is_floating(l) || std::trunc(l.floating) == l.floating; }

// long double holds every integer of 64 bits.
long double whole(const Literal& l) {
  return l.kind == Literal::Kind::natural ? static_cast<long double>(l.natural())
                                          : static_cast<long double>(l.integer);
}
Literal integer(long double x) {
  if (x < 0x1p63L) return {Literal::Kind::integer, static_cast<std::int64_t>(x)};
  return {Literal::Kind::natural, static_cast<std::int64_t>(static_cast<std::uint64_t>(x))};
}

// How many numbers start, start + step, ... lie before the stop; of floats as numpy counts them.
std::int64_t count_before(const Literal& start, const Literal& stop, const Literal& step,
                          Location at) {
  if (step.number() == 0) throw CompileError(at, "arange: the step is 0");
  const bool floats = is_floating(start) || is_floating(stop) || is_floating(step);
  const long double count = floats ? std::ceil((stop.number() - start.number()) / step.number())
                                   : std::ceil((whole(stop) - whole(start)) / whole(step));
  if (count < 1 || count > INT32_MAX)
    throw CompileError(at, std::string("arange: ") +
                               (count < 1 ? "there is no number before the stop, and a value has "
                                            "at least one element"
                                          : "there are more numbers before the stop than a value "
                                            "has elements"));
  return static_cast<std::int64_t>(count);
}

Value arange(const Operand& from, const Operand& to, const Operand& by, DType dtype) {
  const Location at = location(to);
  Recorder& recorder = Recorder::current("arange", at);
  const Literal start = number_of(from, "the start"), stop = number_of(to, "the stop"),
                step = number_of(by, "the step");
  const bool floats = is_floating(start) || is_floating(step);
  const std::int64_t count = count_before(start, stop, step, at);
  if (dtype == DType()) dtype = floats || is_floating(stop) ? f32 : i32;
  if (dtype.is_bool()) throw CompileError(at, "arange: expected a number's dtype, given bool");
  const long double steps = static_cast<long double>(count - 1);
  const Literal last = floats ? Literal{Literal::Kind::floating, 0,
                                        start.number() + step.number() * static_cast<double>(steps)}
                              : integer(whole(start) + whole(step) * steps);
  if (dtype.is_integer() && (!is_whole(start) || !is_whole(step)))
    throw CompileError(at, fmt::format("arange: numbers from {} on by steps of {} are no {}; "
                                       ".astype({}) rounds them",
                                       start.number(), step.number(), dtype.name(), dtype.name()));
  // All are of the dtype if the first and the last are.
  for (const Literal& end : {start, last}) (void)to_bits(end, dtype, "arange", at);
  // Floats of 8 and 16 bits are counted in f32, so that each number is rounded once.
  DType counted = graph::computed_as(dtype);
  if (counted.is_float() && counted.bits() < 32) counted = f32;
  const auto constant = [&](const Literal& l) {
    const Literal number =
        counted.is_float() || !is_floating(l) ? l : integer(static_cast<long double>(l.floating));
    return recorder.builder().add(Op::Constant, {}, Attr{{}, converted_bits(number, counted)},
                                  Type::value(counted, {count}), at);
  };
  ValueId v = recorder.builder().add(Op::Iota, {}, Attr{{0}, 0}, Type::value(counted, {count}), at);
  if (start.number() == 0 && step.number() == 1) {
    // They are the numbers counted.
  } else if (counted.is_float()) {
    v = recorder.builder().add(Op::Fma, {v, constant(step), constant(start)}, Attr{}, {}, at);
  } else {
    v = recorder.builder().add(Op::Mul, {v, constant(step)}, Attr{}, {}, at);
    v = recorder.builder().add(Op::Add, {v, constant(start)}, Attr{}, {}, at);
  }
  return recorder.value(counted == dtype ? v : recorder.builder().cast(v, dtype, at));
}

}  // namespace
}  // namespace palladium::trace

namespace palladium {

using trace::Attr;
using trace::Extents;
using trace::Op;
using trace::Recorder;
using trace::Type;
using trace::ValueId;

void Axes::too_many() {
  throw CompileError("axes: expected at most " + std::to_string(Shape::max_rank) + " of them");
}

Shape Value::shape(Location at) const {
  if (trace::is_literal(*this)) return {};
  return trace::to_shape(trace::type_of(*this, "shape", at).shape);
}

DType Value::dtype(Location at) const {
  if (trace::is_literal(*this)) return trace::literal(*this).dtype();
  return trace::type_of(*this, "dtype", at).dtype;
}

Value Value::named(const char* name, Location at) const {
  if (!name) throw CompileError(at, "named: the name is a null pointer");
  if (trace::is_literal(*this)) return *this;
  Recorder& recorder = Recorder::current("named", at);
  const std::uint32_t id = graph::index(recorder.id(*this, "named", at));
  if (recorder.graph.names.size() <= id) recorder.graph.names.resize(id + 1);
  recorder.graph.names[id] = name;
  return *this;
}

Value Value::reshape(Shape shape, Location at) const { return trace::reshaped(*this, shape, at); }
Value Value::transpose(Axes permutation, Location at) const {
  return trace::transposed(*this, permutation, at);
}
Value Value::bitcast(DType dtype, Location at) const {
  Recorder& recorder = Recorder::current("bitcast", at);
  return recorder.value(recorder.builder().add(Op::Bitcast, {recorder.typed(*this, "bitcast", at)},
                                               Attr{}, Type::value(dtype), at));
}
Value bitcast(const Operand& x, DType dtype) {
  return trace::resolve(x).bitcast(dtype, trace::location(x));
}
Value reshape(const Operand& x, Shape shape) {
  return trace::reshaped(trace::resolve(x), shape, trace::location(x));
}
Value transpose(const Operand& x, Axes permutation) {
  return trace::transposed(trace::resolve(x), permutation, trace::location(x));
}

Value broadcast_to(const Operand& operand, Shape shape) {
  const Location at = trace::location(operand);
  const Value x = trace::resolve(operand);
  Recorder& recorder = Recorder::current("broadcast_to", at);
  const ValueId v = recorder.typed(x, "broadcast_to", at);
  return recorder.value(recorder.builder().broadcast_to(v, trace::extents(shape), at));
}

Value full(Shape shape, const Operand& operand, DType dtype) {
  const Location at = trace::location(operand);
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "full", at);
  Recorder& recorder = Recorder::current("full", at);
  if (trace::is_literal(x)) {
    const DType own = trace::literal(x).dtype();
    return recorder.value(
        recorder.typed(x, dtype == DType() ? own : dtype, "full", at, trace::extents(shape)));
  }
  ValueId v = recorder.id(x, "full", at);
  if (dtype != DType()) v = recorder.builder().cast(v, dtype, at);
  return recorder.value(recorder.builder().broadcast_to(v, trace::extents(shape), at));
}

Value zeros(Shape shape, DType dtype, Location at) {
  return trace::splat(shape, 0, dtype, "zeros", at);
}
Value empty(Shape shape, DType dtype, Location at) {
  return trace::splat(shape, 0, dtype, "empty", at);
}
Value empty_like(const Operand& x) {
  return trace::splat_like(trace::pattern(x, "empty_like"), 0, {}, "empty_like",
                           trace::location(x));
}
Value empty_like(const Ref& x, Location at) {
  return trace::splat_like({x.shape(at), x.dtype(at)}, 0, {}, "empty_like", at);
}
Value ones(Shape shape, DType dtype, Location at) {
  return trace::splat(shape, 1, dtype, "ones", at);
}

Value zeros_like(const Operand& x, DType dtype) {
  return trace::splat_like(trace::pattern(x, "zeros_like"), 0, dtype, "zeros_like",
                           trace::location(x));
}
Value zeros_like(const Ref& x, DType dtype, Location at) {
  return trace::splat_like({x.shape(at), x.dtype(at)}, 0, dtype, "zeros_like", at);
}
Value ones_like(const Operand& x, DType dtype) {
  return trace::splat_like(trace::pattern(x, "ones_like"), 1, dtype, "ones_like",
                           trace::location(x));
}
Value ones_like(const Ref& x, DType dtype, Location at) {
  return trace::splat_like({x.shape(at), x.dtype(at)}, 1, dtype, "ones_like", at);
}
Value full_like(const Operand& x, const Operand& value, DType dtype) {
  return trace::filled_like(trace::pattern(x, "full_like"), value, dtype);
}
Value full_like(const Ref& x, const Operand& value, DType dtype) {
  const Location at = trace::location(value);
  return trace::filled_like({x.shape(at), x.dtype(at)}, value, dtype);
}

Value arange(const Operand& stop, DType dtype) { return trace::arange(0, stop, 1, dtype); }
Value arange(const Operand& start, const Operand& stop, const Operand& step, DType dtype) {
  return trace::arange(start, stop, step, dtype);
}

Value iota(DType dtype, Shape shape, int dimension, Location at) {
  Recorder& recorder = Recorder::current("iota", at);
  Attr attr{trace::normalized(dimension, static_cast<std::size_t>(shape.rank()), "iota", at), 0};
  const DType counted = graph::computed_as(dtype);
  const ValueId numbers = recorder.builder().add(
      Op::Iota, {}, std::move(attr), Type::value(counted, trace::extents(shape)), at);
  return recorder.value(trace::rounded_as(recorder, numbers, dtype, at));
}

}  // namespace palladium
