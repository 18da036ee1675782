// Reductions, scans, and what is made of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

// What a fold takes instead of what is beyond a length.
std::uint64_t identity_of(Op op, DType t) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool is_max = op == Op::ReduceMax || op == Op::CumMax;
  if (op == Op::ReduceSum || op == Op::CumSum) return 0;
  if (op == Op::ReduceProd || op == Op::CumProd) return graph::to_bits(t, 1.0);
  if (t.is_bool()) return is_max ? 0 : 1;
  return graph::to_bits(t, is_max ? -infinity : infinity);
}

}  // namespace

ValueId summed(Recorder& recorder, Op op, ValueId x, Attr attr, Location at) {
  const ValueId v =
      recorder.filled_beyond(x, attr.ints, identity_of(op, recorder.graph[x].type.dtype), at);
  return recorder.builder().add(op, {v}, std::move(attr), {}, at);
}

Value reduced(Op op, const char* what, const Value& x, const ReduceOptions& options, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  const ValueId v = recorder.typed(x, what, at);
  const Extents shape = recorder.graph[v].type.shape;
  std::vector<std::int64_t> axes = normalized(options.axis, shape.size(), what, at);
  if (options.axis.size() == 0)
    for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return recorder.value(v);  // a scalar
  std::sort(axes.begin(), axes.end());
  const ValueId folded = summed(recorder, op, computable(recorder, v, at), Attr{axes, 0}, at);
  const ValueId reduced = rounded_as(recorder, folded, recorder.graph[v].type.dtype, at);
  if (!options.keepdims) return recorder.value(reduced);
  Extents kept = shape;
  for (const std::int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
  Attr positions;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i)))
      positions.ints.push_back(static_cast<std::int64_t>(i));
  const Type type = Type::value(recorder.graph[reduced].type.dtype, std::move(kept));
  return recorder.value(
      recorder.builder().add(Op::Broadcast, {reduced}, std::move(positions), type, at));
}

namespace {

Value reduce(Op op, const char* what, const Operand& operand, const ReduceOptions& options) {
  const Location at = location(operand);
  return reduced(op, what, resolve(operand), options, at);
}

Value scan(Op op, const char* what, const Operand& operand, const CumulativeOptions& options) {
  const Location at = location(operand);
  const Value x = resolve(operand);
  Recorder& recorder = Recorder::current(what, at);
  const ValueId v = recorder.typed(x, what, at);
  const std::size_t rank = recorder.graph[v].type.shape.size();
  Attr attr{normalized(options.axis, rank, what, at), 0};
  attr.ints.push_back(options.reverse);
  ValueId x_in = computable(recorder, v, at);
  if (options.reverse)
    x_in = recorder.filled_beyond(x_in, std::span(attr.ints).first(1),
                                  identity_of(op, recorder.graph[x_in].type.dtype), at);
  const ValueId sums = recorder.builder().add(op, {x_in}, std::move(attr), {}, at);
  return recorder.value(rounded_as(recorder, sums, recorder.graph[v].type.dtype, at));
}

// Of bools the maximum is whether any holds, the minimum whether all do.
Value fold_of_truths(Op op, const char* what, const Operand& operand,
                     const ReduceOptions& options) {
  const Location at = location(operand);
  Value x = resolve(operand);
  expect_given(x, what, at);
  if (!x.dtype(at).is_bool()) x = elementwise(Op::Ne, {x, Value(0)}, at);
  return reduced(op, what, x, options, at);
}

// Where an extreme of floats stands, by one comparison: all others have reached the number behind
// it, and NaNs reach nothing. Behind a NaN, which is the extreme if there is any, it is infinite.
Value stands_at(Op op, Value x, Value extreme, Location at) {
  const DType type = x.dtype(at) == f64 ? f64 : f32, bits = type == f64 ? i64 : i32;
  x = x.astype(type, at);
  extreme = extreme.astype(type, at);
  const bool is_max = op == Op::ReduceMax;
  // Of the largest the opposite; no zero with a sign.
  const Value least = is_max ? elementwise(Op::Sub, {0, extreme}, at)
                             : elementwise(Op::Add, {extreme, 0}, at),
              as_bits = least.bitcast(bits, at),
              step = elementwise(
                  Op::Or,
                  {elementwise(Op::ShiftRight, {as_bits, Value(8 * type.bytes() - 1)}, at), 1}, at),
              next = elementwise(Op::Add, {as_bits, step}, at).bitcast(type, at);
  const Value nan = elementwise(Op::Ne, {least, least}, at),
              behind = selected("fold", nan, Value(-HUGE_VAL), next, at);
  const Value reached = is_max ? elementwise(Op::Le, {x, elementwise(Op::Neg, {behind}, at)}, at)
                               : elementwise(Op::Ge, {x, behind}, at);
  return elementwise(Op::Not, {reached}, at);
}

// The least index of those at which the extreme stands. If there is a NaN, it is the extreme.
Value place_of_extreme(Op op, const char* what, const Operand& operand, ReduceOptions options) {
  const Location at = location(operand);
  Value x = resolve(operand);
  Recorder& recorder = Recorder::current(what, at);
  x = recorder.value(recorder.typed(x, what, at));
  if (options.axis.size() > 1)
    throw CompileError(at, std::string(what) +
                               ": expected one axis, or none for all elements, "
                               "given " +
                               std::to_string(options.axis.size()));
  const Extents shape = extents(x.shape(at));
  const bool all = options.axis.size() == 0;
  if (all) x = reshaped(x, {-1}, at);
  const Axes axis = all ? Axes(0) : options.axis;
  const Extents folded = extents(x.shape(at));
  const auto along = static_cast<std::size_t>(normalized(axis, folded.size(), what, at)[0]);
  const Value extreme = reduced(op, what, x, {.axis = axis, .keepdims = true}, at);
  const Value found = x.dtype(at).is_float() ? stands_at(op, x, extreme, at)
                                             : elementwise(Op::Eq, {x, extreme}, at);
  const Value candidate =
      selected(what, found, counted(folded, along, at), Value(folded[along]), at);
  const Value least =
      reduced(Op::ReduceMin, what, candidate, {.axis = axis, .keepdims = options.keepdims}, at);
  if (!all || !options.keepdims) return least;
  return reshaped(least, to_shape(Extents(shape.size(), 1)), at);
}

// How many elements fold into each, less so many: of the value's dtype, which is a float.
Value count_of(const Value& x, const Axes& axis, std::int64_t less, const char* what, Location at) {
  Recorder& recorder = Recorder::current(what, at);
  const ValueId v = recorder.typed(x, what, at);
  const Type type = recorder.graph[v].type;
  std::vector<std::int64_t> axes = normalized(axis, type.shape.size(), what, at);
  if (axis.size() == 0)
    for (std::size_t d = 0; d < type.shape.size(); ++d)
      axes.push_back(static_cast<std::int64_t>(d));
  Value n = 1;
  for (const std::int64_t d : axes)
    n = elementwise(Op::Mul, {n, recorder.length(v, static_cast<std::size_t>(d), at)}, at);
  if (is_literal(n))
    return Value(static_cast<double>(std::max<std::int64_t>(literal(n).integer - less, 0)));
  if (less != 0) n = elementwise(Op::Max, {elementwise(Op::Sub, {n, Value(less)}, at), 0}, at);
  return n.astype(type.dtype, at);
}

// What means are computed in: f32, but for what has 64 bits.
Value widened(const Value& x, Location at) {
  const DType t = x.dtype(at);
  return x.astype(t.bytes() == 8 ? f64 : f32, at);
}

// The dtype of a mean: floats stay.
DType mean_dtype(DType t) { return t.is_float() ? t : t.bytes() == 8 ? f64 : f32; }

Value mean_of(const char* what, const Value& wide, const ReduceOptions& options, std::int64_t less,
              Location at) {
  const Value sum = reduced(Op::ReduceSum, what, wide, options, at);
  return elementwise(Op::Div, {sum, count_of(wide, options.axis, less, what, at)}, at);
}

}  // namespace
}  // namespace palladium::trace

namespace palladium {

using trace::Op;

Value detail::folds::sum(const Operand& x, ReduceOptions options) {
  return trace::reduce(Op::ReduceSum, "sum", x, options);
}
Value detail::folds::prod(const Operand& x, ReduceOptions options) {
  return trace::reduce(Op::ReduceProd, "prod", x, options);
}
Value detail::folds::max(const Operand& x, ReduceOptions options) {
  return trace::reduce(Op::ReduceMax, "max", x, options);
}
Value detail::folds::min(const Operand& x, ReduceOptions options) {
  return trace::reduce(Op::ReduceMin, "min", x, options);
}
Value detail::folds::any(const Operand& x, ReduceOptions options) {
  return trace::fold_of_truths(Op::ReduceMax, "any", x, options);
}
Value detail::folds::all(const Operand& x, ReduceOptions options) {
  return trace::fold_of_truths(Op::ReduceMin, "all", x, options);
}
Value detail::folds::argmax(const Operand& x, ReduceOptions options) {
  return trace::place_of_extreme(Op::ReduceMax, "argmax", x, options);
}
Value detail::folds::argmin(const Operand& x, ReduceOptions options) {
  return trace::place_of_extreme(Op::ReduceMin, "argmin", x, options);
}

Value detail::folds::mean(const Operand& operand, ReduceOptions options) {
  const Location at = trace::location(operand);
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "mean", at);
  return trace::mean_of("mean", trace::widened(x, at), options, 0, at)
      .astype(trace::mean_dtype(x.dtype(at)), at);
}

Value detail::folds::var(const Operand& operand, VarianceOptions options) {
  const Location at = trace::location(operand);
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "var", at);
  const Value wide = trace::widened(x, at);
  const Value mean = trace::mean_of("var", wide, {options.axis, true}, 0, at);
  const Value apart = trace::elementwise(Op::Sub, {wide, mean}, at);
  const Value squares = trace::elementwise(Op::Mul, {apart, apart}, at);
  return trace::mean_of("var", squares, {options.axis, options.keepdims}, options.ddof, at)
      .astype(trace::mean_dtype(x.dtype(at)), at);
}

Value detail::folds::softmax(const Operand& operand, SoftmaxOptions options) {
  const Location at = trace::location(operand);
  const Value x = trace::resolve(operand);
  trace::expect_given(x, "softmax", at);
  trace::expect_floats(x, "softmax", at);
  const Value wide = trace::widened(x, at);
  const ReduceOptions kept{options.axis, true};
  const Value most = trace::reduced(Op::ReduceMax, "softmax", wide, kept, at);
  const Value e = trace::elementwise(Op::Exp, {trace::elementwise(Op::Sub, {wide, most}, at)}, at);
  const Value all = trace::reduced(Op::ReduceSum, "softmax", e, kept, at);
  return trace::elementwise(Op::Div, {e, all}, at).astype(x.dtype(at), at);
}

// The maximum is taken out of the exponents where it is finite: -infinity and infinity stay what
// they are, of exp(x) alone. What has the factor 0 counts as -infinity.
Value detail::folds::logsumexp(const Operand& operand, LogSumExpOptions options) {
  const char* what = "logsumexp";
  const Location at = trace::location(operand);
  const auto with = [&](Op op, std::initializer_list<Value> of) {
    return trace::elementwise(op, of, at);
  };
  const Value x = trace::resolve(operand);
  trace::expect_given(x, what, at);
  trace::expect_floats(x, what, at);
  Value wide = trace::widened(x, at), factors;
  const bool has_factors = detail::Access::given(options.b);
  if (has_factors) {
    const std::vector<Value> both = trace::alike(what, {x, detail::Access::value(options.b)}, at);
    wide = trace::widened(both[0], at);
    factors = trace::widened(both[1], at);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    wide = trace::selected(what, with(Op::Eq, {factors, 0}), -infinity, wide, at);
  }
  const Value most = trace::reduced(Op::ReduceMax, what, wide, {options.axis, true}, at);
  const Value finite = trace::selected(what, with(Op::IsFinite, {most}), most, 0, at);
  Value e = with(Op::Exp, {with(Op::Sub, {wide, finite})});
  if (has_factors) e = with(Op::Mul, {e, factors});
  const Value all = trace::reduced(Op::ReduceSum, what, e, {options.axis, options.keepdims}, at);
  const Value taken = trace::reshaped(finite, all.shape(at), at);
  return with(Op::Add, {with(Op::Log, {all}), taken}).astype(x.dtype(at), at);
}

Value detail::folds::cumsum(const Operand& x, CumulativeOptions options) {
  return trace::scan(Op::CumSum, "cumsum", x, options);
}
Value detail::folds::cumprod(const Operand& x, CumulativeOptions options) {
  return trace::scan(Op::CumProd, "cumprod", x, options);
}
Value detail::folds::cummax(const Operand& x, CumulativeOptions options) {
  return trace::scan(Op::CumMax, "cummax", x, options);
}
Value detail::folds::cummin(const Operand& x, CumulativeOptions options) {
  return trace::scan(Op::CumMin, "cummin", x, options);
}

}  // namespace palladium
