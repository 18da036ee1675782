// reshape broadcast transpose: moves of whole values.
#include <cstring>

#include "runtime/interpreter/eval.hpp"

namespace palladium::interpreter {

void eval_Reshape(Frame& f, ValueId v, const Inst& inst) {
  std::memcpy(f.bytes(v), f.bytes(inst.args[0]), f.plan().bytes(v));
}

void eval_Broadcast(Frame& f, ValueId v, const Inst& inst) {
  const graph::Extents& from = f.type(inst.args[0]).shape;
  const int bytes = inst.type.dtype.bytes();
  const std::vector<std::int64_t> dense = dense_strides(from, bytes);
  std::int64_t strides[Shape::max_rank] = {};  // 0: repeated
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1) strides[graph::dimensions(inst)[i]] = dense[i];
  gather(f.bytes(v), f.bytes(inst.args[0]), inst.type.shape, {strides, inst.type.shape.size()}, 0,
         bytes);
}

void eval_Transpose(Frame& f, ValueId v, const Inst& inst) {
  const int bytes = inst.type.dtype.bytes();
  const std::vector<std::int64_t> dense = dense_strides(f.type(inst.args[0]).shape, bytes);
  std::int64_t strides[Shape::max_rank] = {};
  const std::span<const std::int64_t> from = graph::dimensions(inst);
  for (std::size_t i = 0; i < from.size(); ++i)
    strides[i] = dense[static_cast<std::size_t>(from[i])];
  gather(f.bytes(v), f.bytes(inst.args[0]), inst.type.shape, {strides, inst.type.shape.size()}, 0,
         bytes);
}

}  // namespace palladium::interpreter
