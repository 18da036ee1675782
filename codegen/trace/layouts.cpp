// What bodies say of how threads hold values.
#include <algorithm>

#include "codegen/graph/register_layout.hpp"
#include "codegen/trace/accumulators.hpp"
#include "palladium/error.hpp"
#include "palladium/gpu/layout.hpp"

namespace palladium {

using graph::RegisterLayout;
using trace::Attr;
using trace::Op;
using trace::Recorder;
using trace::ValueId;

gpu::Layout gpu::Layout::TILED(const std::vector<std::vector<int>>& tiles,
                               const std::vector<int>& warp_dims, const std::vector<int>& lane_dims,
                               int vector_dim) {
  return {Kind::tiled, RegisterLayout::encode({tiles, warp_dims, lane_dims, vector_dim})};
}

gpu::Layout gpu::Layout::reduce(Axes axes) const {
  Layout result = *this;
  for (const int axis : axes)
    if (std::ranges::count(result.reduced_, axis) == 0) result.reduced_.push_back(axis);
  std::ranges::sort(result.reduced_);
  return result;
}

std::vector<std::int64_t> gpu::Layout::encoded() const {
  return RegisterLayout{static_cast<RegisterLayout::Kind>(kind_), numbers_, reduced_}.encode();
}

namespace {

// Whether all elements are one scalar's.
bool is_splat(const graph::Graph& g, ValueId v) {
  while (g[v].op == Op::Broadcast || g[v].op == Op::Reshape) v = g[v].args[0];
  return g[v].op == Op::Constant || g[v].type.shape.empty();
}

Value cast(Recorder& recorder, ValueId x, const gpu::Layout& layout, const char* what,
           Location at) {
  const std::vector<std::int64_t> code = layout.encoded();
  const bool splat = code[0] == static_cast<std::int64_t>(RegisterLayout::Kind::splat);
  if (splat && !is_splat(recorder.graph, x))
    throw CompileError(
        at, std::string(what) + ": WG_SPLAT holds one value for all elements, given " +
                graph::to_string(recorder.graph[x].type) + ", whose elements may differ");
  // What is the same for all threads is in every layout.
  if (splat) return recorder.value(x);
  return recorder.value(recorder.builder().add(Op::LayoutCast, {x}, Attr{code, 0}, {}, at));
}

void print(Recorder& recorder, const char* text, ValueId of, Location at) {
  Attr attr;
  attr.text = text;
  attr.ints = {static_cast<std::int64_t>(attr.text.find("{}"))};
  recorder.builder().add(Op::PrintLayout, {of}, std::move(attr), {}, at);
}

}  // namespace

Value gpu::layout_cast(const Operand& x, const Layout& layout) {
  const Location at = trace::location(x);
  Recorder& recorder = trace::recorder_by_hand("layout_cast", at);
  return cast(recorder, recorder.typed(trace::resolve(x), "layout_cast", at), layout, "layout_cast",
              at);
}

Value gpu::broadcasted_iota(DType dtype, Shape shape, int dimension, LayoutOptions options,
                            Location at) {
  const char* const what = "broadcasted_iota";
  Recorder& recorder = trace::recorder_by_hand(what, at);
  const Value numbers = iota(dtype, std::move(shape), dimension, at);
  if (!options.layout) return numbers;
  return cast(recorder, recorder.id(numbers, what, at), *options.layout, what, at);
}

Value gpu::load(const Ref& ref, LayoutLoadOptions options, Location at) {
  Recorder& recorder = trace::recorder_by_hand("load", at);
  const Value loaded = palladium::load(ref, {}, detail::Expression(at));
  if (!options.layout) return loaded;
  return cast(recorder, recorder.id(loaded, "load", at), *options.layout, "load", at);
}

void gpu::print_layout(const char* text, const Operand& x) {
  const Location at = trace::location(x);
  Recorder& recorder = trace::recorder_by_hand("print_layout", at);
  print(recorder, text, recorder.typed(trace::resolve(x), "print_layout", at), at);
}

void gpu::print_layout(const char* text, const Ref& ref, Location at) {
  Recorder& recorder = trace::recorder_by_hand("print_layout", at);
  print(recorder, text, recorder.id(ref, "print_layout", at), at);
}

}  // namespace palladium
