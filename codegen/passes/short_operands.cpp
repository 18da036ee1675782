#include "codegen/passes/short_operands.hpp"

#include "codegen/graph/packed.hpp"
#include "codegen/passes/elements.hpp"
#include "codegen/passes/products.hpp"
#include "codegen/passes/slots.hpp"
#include "codegen/passes/turned_bytes.hpp"

namespace palladium::passes {

namespace {

using graph::Inst;
using graph::Op;

/// Operations of an element that take an instruction each; none where there are others, or where a
/// condition says whether an element is read.
std::optional<int> operations(const Program& l, ValueId v) {
  const graph::Graph& g = l.graph;
  if (graph::halves_of(g, v).bytes != graph::no_value) return 0;
  const Inst& i = g[v];
  int sum = 0;
  switch (i.op) {
  case Op::Constant:
  case Op::Param: return 0;
  case Op::Load:
    return graph::MemoryView::of(i).mask == graph::no_value ? std::optional(0) : std::nullopt;
  case Op::Cast:
  case Op::Broadcast: break;
  case Op::Neg:
  case Op::Add:
  case Op::Sub:
  case Op::Mul:
  case Op::Fma: sum = 1; break;
  default: return std::nullopt;
  }
  for (const ValueId a : i.args) {
    const std::optional<int> of_operand = operations(l, a);
    if (!of_operand) return std::nullopt;
    sum += *of_operand;
  }
  return sum;
}

bool is_plain_step(const Statement& s) {
  if (const Dot* const d = std::get_if<Dot>(&s.what))
    return d->unit == Dot::Unit::wgmma && d->accumulates;
  return std::holds_alternative<EnterWindow>(s.what) || std::holds_alternative<Scalar>(s.what) ||
         std::holds_alternative<Advance>(s.what);
}

}  // namespace

ShortOperands short_operands(const Program& l, const Statements& body,
                             const std::set<std::size_t>& copies) {
  ShortOperands all;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (copies.contains(i)) {
      i = end_of_copies(body, i) - 1;
      continue;
    }
    if (is_plain_step(body[i])) continue;
    const LoopNest* const p = std::get_if<LoopNest>(&body[i].what);
    const Stage* const stage = p == nullptr ? nullptr : std::get_if<Stage>(&p->sink);
    const RingId ring = stage == nullptr ? RingId() : l.storages[stage->storage].ring();
    if (!ring || stage->by.asynchronous || (all.ring && ring != all.ring)) return {};
    all.ring = ring;
    if (const std::optional<TurnedBytes> turned = turned_bytes(l, *p)) {
      all.elements += turned->squares_of_warp();
      continue;
    }
    const std::optional<int> of_each = operations(l, p->value);
    if (!of_each) return {};
    all.elements += elements_in_text(*p) * (1 + *of_each);
  }
  return all;
}

}  // namespace palladium::passes
