#include "codegen/passes/lowered.hpp"

namespace palladium::passes {

using graph::Graph;
using graph::Inst;
using graph::Op;

DimMap identity_map(int rank) {
  DimMap m(rank);
  for (int d = 0; d < rank; ++d) m[d] = d;
  return m;
}

namespace {

// A reshape that only adds or removes dimensions of extent 1 maps dimensions; any other mixes them.
DimMap map_through_reshape(const Extents& operand, const Extents& result, const DimMap& map) {
  DimMap out(operand.size(), zero_dim);
  std::size_t r = 0;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] == 1) continue;
    while (r < result.size() && result[r] == 1) ++r;
    if (r == result.size() || result[r] != operand[d]) {
      for (std::size_t k = 0; k < operand.size(); ++k)
        out[k] = operand[k] == 1 ? zero_dim : opaque_dim;
      return out;
    }
    out[d] = map[r++];
  }
  return out;
}

}  // namespace

DimMap map_of_operand(const Graph& g, ValueId v, std::size_t arg, const DimMap& map) {
  const Inst& inst = g[v];
  const Extents& operand = g[inst.args[arg]].type.shape;
  switch (inst.op) {
  case Op::Broadcast: {
    DimMap out(operand.size(), zero_dim);
    for (std::size_t d = 0; d < operand.size(); ++d)
      if (operand[d] != 1) out[d] = map[inst.attr.ints[d]];
    return out;
  }
  case Op::Transpose: {
    DimMap out(operand.size());
    for (std::size_t d = 0; d < operand.size(); ++d) out[inst.attr.ints[d]] = map[d];
    return out;
  }
  case Op::Reshape: return map_through_reshape(operand, inst.type.shape, map);
  default: break;
  }
  if (operand.size() == map.size()) return map;
  return DimMap(operand.size(), zero_dim);  // a scalar operand (mask, other)
}

std::string name_of(const Graph& g, ValueId v) {
  return index(v) < g.names.size() ? g.names[index(v)] : "";
}

bool is_reduce(Op op) { return op == Op::ReduceSum || op == Op::ReduceMax || op == Op::ReduceMin; }

bool is_elementwise(Op op) { return op >= Op::Neg && op <= Op::Select; }

std::int64_t registers_estimate(const graph::Type& type) {
  const std::int64_t per_thread = cdiv(graph::element_count(type.shape), layout::threads);
  return per_thread * (type.dtype.bytes() == 8 ? 2 : 1);
}

}  // namespace palladium::passes
