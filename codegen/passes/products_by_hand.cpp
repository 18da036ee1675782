// Products that a user has written.
#include "codegen/graph/products.hpp"
#include "codegen/layout/constructors.hpp"
#include "codegen/passes/async_copies.hpp"

namespace palladium::passes {
namespace {

// Registers that hold an A: of 16 bits what a thread has of an accumulator of its shape, in the
// same order.
StorageId held(Program& l, ValueId a, Location at, Statements& out) {
  const graph::Type& type = l.graph[a].type;
  const layout::Warps warps{l.num_warps, 1};
  const bool pairs = type.dtype.bytes() == 2;
  const LayoutVariableId variable =
      l.add_variable(pairs ? layout::accumulator(type.shape, warps)
                           : layout::operand_a(type.shape, type.dtype.bits(), warps, false));
  const StorageId storage = l.add_storage({.in = Registers{.packed = pairs},
                                           .dtype = type.dtype,
                                           .shape = type.shape,
                                           .of = a,
                                           .variable = variable});
  out.push_back({LoopNest{.sink = Assign{storage},
                          .value = a,
                          .domain = type.shape,
                          .valid = type.shape,
                          .variable = variable},
                 at});
  return storage;
}

}  // namespace

void add_product_by_hand(Program& l, ValueId v, Statements& out) {
  const graph::Inst& inst = l.graph[v];
  const Location at = l.graph.location(v);
  if (inst.op == graph::Op::AwaitProducts) {
    out.push_back(
        {WaitGroup{.kind = device::Completion::wgmma_group, .pending = graph::products_left(inst)},
         at});
    return;
  }
  const auto storage_of = [&](ValueId view) {
    return l.windows[l.window_of[l.graph.base(view)]].storage();
  };
  const graph::DotView dot = graph::DotView::of(inst);
  const StorageId a = inst.op == graph::Op::Wgmma ? storage_of(dot.a) : held(l, dot.a, at, out);
  out.push_back({Dot{.inst = v,
                     .a = a,
                     .b = storage_of(dot.b),
                     .result = storage_of(inst.args[0]),
                     .accumulates = true,
                     .unit = Dot::Unit::wgmma},
                 at});
}

}  // namespace palladium::passes
