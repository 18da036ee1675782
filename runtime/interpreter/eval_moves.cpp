// Elements that come from elsewhere in their value: slices, parts put together, elements chosen by
// number.
#include <algorithm>
#include <cstring>

#include "runtime/interpreter/eval.hpp"
#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

// In bytes, as DynamicSlice and DynamicUpdateSlice have them: a part that would reach over an end
// of the whole is moved back.
std::int64_t offset_of_part(Frame& f, const graph::Extents& whole, const graph::Extents& part,
                            std::span<const ValueId> starts,
                            std::span<const std::int64_t> strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < whole.size(); ++d)
    offset += std::clamp<std::int64_t>(f.number(starts[d]), 0, whole[d] - part[d]) * strides[d];
  return offset;
}

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  return n;
}

}  // namespace

void eval_Bitcast(Frame& f, ValueId v, const Inst& inst) {
  std::memcpy(f.bytes(v), f.bytes(inst.args[0]), f.plan().bytes(v));
}

void eval_Slice(Frame& f, ValueId v, const Inst& inst) {
  const int bytes = inst.type.dtype.bytes();
  const graph::SliceView slice = graph::SliceView::of(inst);
  std::vector<std::int64_t> strides = dense_strides(f.type(inst.args[0]).shape, bytes);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    offset += slice.starts[d] * strides[d];
    strides[d] *= slice.strides[d];
  }
  gather(f.bytes(v), f.bytes(inst.args[0]), inst.type.shape, strides, offset, bytes);
}

void eval_Concatenate(Frame& f, ValueId v, const Inst& inst) {
  const auto along = static_cast<std::size_t>(graph::concatenated(inst));
  const std::span<const std::int64_t> shape = inst.type.shape;
  const std::int64_t outer = product(shape.first(along));
  const std::int64_t inner = product(shape.subspan(along + 1)) * inst.type.dtype.bytes();
  std::byte* to = f.bytes(v);
  for (const ValueId part : inst.args) {
    const std::int64_t run = f.type(part).shape[along] * inner;
    const std::byte* from = f.bytes(part);
    for (std::int64_t i = 0; i < outer; ++i)
      std::memcpy(to + i * shape[along] * inner, from + i * run, static_cast<std::size_t>(run));
    to += run;
  }
}

void eval_DynamicSlice(Frame& f, ValueId v, const Inst& inst) {
  const int bytes = inst.type.dtype.bytes();
  const graph::Extents& whole = f.type(inst.args[0]).shape;
  const std::vector<std::int64_t> strides = dense_strides(whole, bytes);
  const std::int64_t offset =
      offset_of_part(f, whole, inst.type.shape, std::span(inst.args).subspan(1), strides);
  gather(f.bytes(v), f.bytes(inst.args[0]), inst.type.shape, strides, offset, bytes);
}

void eval_DynamicUpdateSlice(Frame& f, ValueId v, const Inst& inst) {
  const int bytes = inst.type.dtype.bytes();
  const graph::Extents& part = f.type(inst.args[1]).shape;
  const std::vector<std::int64_t> strides = dense_strides(inst.type.shape, bytes);
  const std::int64_t offset =
      offset_of_part(f, inst.type.shape, part, std::span(inst.args).subspan(2), strides);
  std::memcpy(f.bytes(v), f.bytes(inst.args[0]), f.plan().bytes(v));
  for_each_run(part, strides, offset, [&](const Run& run) {
    copy_run(f.bytes(v) + run.offset, run.stride, f.bytes(inst.args[1]) + run.first * bytes, bytes,
             run.count, bytes);
  });
}

void eval_TakeAlong(Frame& f, ValueId v, const Inst& inst) {
  const auto along = static_cast<std::size_t>(graph::taken(inst));
  const graph::Extents& from = f.type(inst.args[0]).shape;
  const std::int64_t inner = product(std::span(from).subspan(along + 1));
  const std::int64_t chosen = inst.type.shape[along];
  const auto* indices = f.operand<std::int32_t>(inst, 1);
  with_size(inst.type.dtype.bytes(), [&]<class T>() {
    const T* x = f.operand<T>(inst, 0);
    T* out = f.data<T>(v);
    const std::int64_t n = f.count(v);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t outer = i / (inner * chosen);
      const std::int64_t at = std::clamp<std::int64_t>(indices[i], 0, from[along] - 1);
      out[i] = x[(outer * from[along] + at) * inner + i % inner];
    }
  });
}

}  // namespace palladium::interpreter
