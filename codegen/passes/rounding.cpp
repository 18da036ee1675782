#include "codegen/passes/rounding.hpp"

namespace palladium::passes {
namespace {

using graph::Op;
using graph::ValueId;

// Whether the operation's result is as far off as its operand is, each in relation to its size.
bool keeps_ratio(const graph::Inst& i, std::size_t operand) {
  switch (i.op) {
  case Op::Mul:
  case Op::Div:
  case Op::Neg:
  case Op::Abs:
  case Op::Broadcast:
  case Op::Reshape:
  case Op::Transpose: return true;
  case Op::Select: return operand > 0;
  default: return false;
  }
}

bool rounds(const graph::Inst& i) {
  return i.op == Op::Cast && i.type.dtype.is_float() && i.type.dtype.bytes() <= 2;
}

}  // namespace

std::vector<bool> rounded_to_16_bits(const lowered::Program& l) {
  const graph::Graph& g = l.graph;
  std::vector<bool> rounded(g.insts.size());
  std::vector<ValueId> wanted;  // with all their bits
  const auto want = [&](ValueId v) {
    if (!rounded[graph::index(v)]) return;
    rounded[graph::index(v)] = false;
    wanted.push_back(v);
  };
  for (std::size_t v = 0; v < g.insts.size(); ++v)
    rounded[v] = g.insts[v].type.is_value() && g.insts[v].type.dtype == f32;
  std::vector<bool> yielded(g.insts.size());
  for (const graph::Region& r : g.regions)
    for (const ValueId v : r.yields) {
      yielded[graph::index(v)] = true;
      want(v);
    }
  for (std::uint32_t u = 0; u < g.insts.size(); ++u) {
    const graph::Inst& i = g.insts[u];
    const bool left_over = graph::is_pure(i.op) && l.uses[ValueId(u)] == 0 && !yielded[u];
    if (left_over || rounds(i)) continue;
    for (std::size_t a = 0; a < i.args.size(); ++a)
      if (!keeps_ratio(i, a)) want(i.args[a]);
  }
  while (!wanted.empty()) {
    const graph::Inst& i = g[wanted.back()];
    wanted.pop_back();
    for (std::size_t a = 0; a < i.args.size(); ++a)
      if (keeps_ratio(i, a)) want(i.args[a]);
  }
  return rounded;
}

}  // namespace palladium::passes
