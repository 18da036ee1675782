// Shapes, dot, and values from nothing.
#include <algorithm>

#include "codegen/base/checked.hpp"
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
  const Location at = trace::location(x);
  const Value v = trace::resolve(x);
  return empty(v.shape(at), v.dtype(at), at);
}
Value ones(Shape shape, DType dtype, Location at) {
  return trace::splat(shape, 1, dtype, "ones", at);
}

Value iota(DType dtype, Shape shape, int dimension, Location at) {
  Recorder& recorder = Recorder::current("iota", at);
  Attr attr{trace::normalized(dimension, static_cast<std::size_t>(shape.rank()), "iota", at), 0};
  const DType counted = graph::computed_as(dtype);
  const ValueId numbers = recorder.builder().add(
      Op::Iota, {}, std::move(attr), Type::value(counted, trace::extents(shape)), at);
  return recorder.value(trace::rounded_as(recorder, numbers, dtype, at));
}

Value dot(const Operand& a, const Operand& b, DotOptions options) {
  const Location at = trace::location(a);
  const Value x = trace::resolve(a), y = trace::resolve(b);
  Recorder& recorder = Recorder::current("dot", at);
  ValueId p = recorder.typed(x, "dot", at), q = recorder.typed(y, "dot", at);
  const auto is_byte_float = [&](ValueId v) {
    return graph::is_byte_float(recorder.graph[v].type.dtype);
  };
  if (is_byte_float(p) && is_byte_float(q)) {  // f16 holds them, and tensor cores multiply it
    p = recorder.builder().cast(p, f16, at);
    q = recorder.builder().cast(q, f16, at);
  }
  const auto precision =
      options.precision == tf32 ? graph::Precision::tf32 : graph::Precision::ieee;
  Attr attr{{options.trans_a, options.trans_b, static_cast<std::int64_t>(precision)}, 0};
  return recorder.value(recorder.builder().add(Op::Dot, {p, q}, std::move(attr), {}, at));
}

}  // namespace palladium
