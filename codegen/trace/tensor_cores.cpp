// Accumulators, and products by hand.
#include <optional>
#include <vector>

#include "codegen/trace/accumulators.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu/wgmma.hpp"

namespace palladium::trace {

bool is_accumulator(const Recorder& recorder, ValueId view) {
  return recorder.graph[view].type.space == Space::accumulator;
}

std::string accumulator_problem(const ShapeDtype& type) {
  const std::string given = "is an accumulator of " + to_string(type);
  if (type.dtype != f32 && type.dtype != f16 && type.dtype != i32)
    return given + "; accumulators are of f32 or f16, or of i32 for integers";
  if (type.shape.rank() != 2 || type.shape[0].value() % 64 != 0 || type.shape[1].value() % 8 != 0)
    return given + "; an accumulator has a multiple of 64 rows and of 8 columns";
  return "";
}

void begin_accumulator(Recorder& recorder, ValueId accumulator, const MaybeValue& init,
                       Location at) {
  const Type type = recorder.graph[accumulator].type;
  const ValueId value = detail::Access::given(init)
                            ? recorder.typed(detail::Access::value(init), "ACC.init", at)
                            : recorder.builder().constant(type.dtype, 0, type.shape, at);
  recorder.builder().store(accumulator, value, graph::no_value, at);
  recorder.note_write(accumulator);
}

namespace {

// Where a view begins, of slices alone.
Extents starts_of(const Recorder& recorder, ValueId view, Location at) {
  const graph::Graph& g = recorder.graph;
  Extents starts(g[view].type.shape.size());
  for (; g[view].op != Op::Param; view = g[view].args[0]) {
    std::vector<graph::SubscriptDim> dims;
    if (g[view].op == Op::At) dims = graph::Subscript::of(g[view]).dims;
    if (dims.size() != starts.size())
      throw CompileError(at, "load: an accumulator is read as a whole, or by slices, given " +
                                 graph::to_string(g[view].type));
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].is_slice || dims[d].dynamic || dims[d].stride != 1)
        throw CompileError(at,
                           "load: slices of an accumulator begin at numbers, and leave out no "
                           "element within");
      starts[d] += dims[d].start;
    }
  }
  return starts;
}

void wait(Recorder& recorder, int pending, Location at) {
  recorder.builder().add(Op::AwaitProducts, {}, Attr{{pending}, 0}, {}, at);
}

}  // namespace

ValueId load_accumulator(Recorder& recorder, ValueId view, int pending, Location at) {
  if (pending >= 0) wait(recorder, pending, at);
  const Extents starts = starts_of(recorder, view, at);
  const ValueId root = recorder.graph.root(view);
  const Type part = recorder.graph[view].type;
  const ValueId all = recorder.builder().load(root, graph::no_value, graph::no_value, at);
  if (root == view) return all;
  const graph::SliceView slice{starts, Extents(starts.size(), 1)};
  return recorder.builder().add(Op::Slice, {all}, Attr{slice.encode(), 0},
                                Type::value(part.dtype, part.shape), at);
}

ValueId load_of(const Recorder& recorder, ValueId v) {
  return recorder.graph[v].op == Op::Slice ? recorder.graph[v].args[0] : v;
}

}  // namespace palladium::trace

namespace palladium {

using detail::Access;
using trace::Attr;
using trace::Op;
using trace::Recorder;
using trace::Touched;
using trace::ValueId;

namespace {

// A matrix as it lies: what a transposition views, and whether there is one.
struct Matrix {
  ValueId ref = graph::no_value;
  bool transposed = false;
};

Matrix matrix_of(const Recorder& recorder, ValueId ref) {
  const graph::Inst& view = recorder.graph[ref];
  if (view.op != Op::RefTranspose || view.type.shape.size() != 2) return {ref};
  return {view.args[0], graph::dimensions(view)[0] == 1};
}

void multiply(Recorder& recorder, Op op, const Ref& acc, Matrix a, const Ref& b, Location at) {
  const ValueId sum = recorder.id(acc, "wgmma", at);
  const Matrix right = matrix_of(recorder, recorder.id(b, "wgmma", at));
  const auto tf32 = static_cast<std::int64_t>(graph::Precision::tf32);
  recorder.builder().add(op, {sum, a.ref, right.ref},
                         Attr{{a.transposed, right.transposed, tf32}, 0}, {}, at);
  Touched touched{{recorder.memory_of(right.ref)}, {}};
  if (op == Op::Wgmma) touched.reads.push_back(recorder.memory_of(a.ref));
  recorder.note(touched);
  recorder.note_write(sum);
}

}  // namespace

Scoped gpu::Accumulators::init(const Operand& value) const {
  const Value given = trace::resolve(value);
  const Location at = trace::location(value);
  Scoped result{Space::accumulator, {given.shape(at), given.dtype(at)}, at};
  result.init = MaybeValue(given, at);
  return result;
}

void gpu::wgmma(const Ref& acc, const Ref& a, const Ref& b, Location at) {
  Recorder& recorder = trace::recorder_by_hand("wgmma", at);
  const ValueId left = recorder.id(a, "wgmma", at);
  multiply(recorder, Op::Wgmma, acc, matrix_of(recorder, left), b, at);
}

void gpu::wgmma(const Ref& acc, const Operand& a, const Ref& b) {
  const Location at = trace::location(a);
  Recorder& recorder = trace::recorder_by_hand("wgmma", at);
  const ValueId left = recorder.id(trace::resolve(a), "wgmma", at);
  multiply(recorder, Op::WgmmaHeld, acc, {left}, b, at);
}

void gpu::wgmma_wait(int n, Location at) {
  Recorder& recorder = trace::recorder_by_hand("wgmma_wait", at);
  recorder.builder().add(Op::AwaitProducts, {}, Attr{{n}, 0}, {}, at);
}

Effect gpu::wgmma_accumulator_load(const Ref& acc, AccumulatorLoadOptions options,
                                   const detail::Expression& expression) {
  const char* const what = "wgmma_accumulator_load";
  const Location at = Access::at(expression);
  Recorder& recorder = trace::recorder_by_hand(what, at);
  const ValueId view = recorder.id(acc, what, at);
  if (!trace::is_accumulator(recorder, view))
    throw CompileError(at, std::string(what) + ": expected an accumulator, given " +
                               graph::to_string(recorder.graph[view].type));
  if (options.wait_n.value_or(0) < 0)
    throw CompileError(at, std::string(what) +
                               ": expected 0 or more products that may be under "
                               "way, given " +
                               std::to_string(*options.wait_n));
  const Touched touched{{recorder.memory_of(view)}, {}};
  recorder.check_effect(what, touched, {}, at);
  const ValueId v = trace::load_accumulator(recorder, view, options.wait_n.value_or(-1), at);
  recorder.note(touched);
  return Access::effect(recorder.value(v),
                        [&](detail::Mark& mark) { recorder.mark_effect(what, touched, mark, at); });
}

Value gpu::mma(const Operand& acc, const Operand& a, const Operand& b) {
  const Location at = trace::location(acc);
  const Value sum = trace::resolve(acc), left = trace::resolve(a), right = trace::resolve(b);
  const Value product = dot(Operand(left, at), Operand(right, at));
  const auto text = [&](const Value& v) { return to_string(ShapeDtype{v.shape(at), v.dtype(at)}); };
  const ShapeDtype expected{product.shape(at), product.dtype(at)};
  if (text(sum) != to_string(expected))
    throw CompileError(at, "mma: expected an acc " + to_string(expected) + " for " + text(left) +
                               " and " + text(right) + ", given " + text(sum));
  return trace::elementwise(Op::Add, {sum, product}, at);
}

}  // namespace palladium
