#include "codegen/graph/cost.hpp"

#include <algorithm>

#include "codegen/base/checked.hpp"
#include "palladium/error.hpp"

namespace palladium::graph {
namespace {

int flops_of(Op op) {
  switch (op) {
  case Op::Fma: return 2;
  case Op::Neg:
  case Op::Not:
  case Op::Floor:
  case Op::Ceil:
  case Op::Round:
  case Op::Add:
  case Op::Sub:
  case Op::Mul:
  case Op::Div:
  case Op::Max:
  case Op::Min:
  case Op::And:
  case Op::Or:
  case Op::Xor: return 1;
  default: return 0;
  }
}

class Count {
 public:
  explicit Count(const Graph& g) : g_(g) {}

  CostEstimate run() {
    Checked programs = 1;
    for (const Dim& d : g_.mapping.grid) programs *= size(d);
    for (const Body& body : g_.bodies) region(body.region, programs * body.warpgroups);
    Checked bytes = 0;
    for (const BlockMapping& m : g_.mapping.block_mappings) {
      Checked all = 1;
      for (const Dim& d : m.array_aval.shape) all *= size(d);
      const DType dtype = m.array_aval.dtype;
      bytes = bytes + (dtype.is_packed() ? all / 2 : all * dtype.bytes());
    }
    return {flops_.value_or(INT64_MAX), transcendentals_.value_or(INT64_MAX),
            bytes.value_or(INT64_MAX)};
  }

 private:
  std::int64_t size(const Dim& d) const {
    if (d.is_static()) return d.value();
    throw CompileError(g_.at, "kernel '" + g_.name + "': what it costs depends on the sizes of a " +
                                  "call, and '" + to_string(d) + "' is none");
  }

  void region(RegionId r, Checked times) {
    for (const ValueId v : g_[r].insts) {
      const Inst& in = g_[v];
      const Checked elements = in.type.is_ref() ? Checked(0) : times * element_count(in.type.shape);
      if (is_elementwise(in.op) && info(in.op).ulp > 0)
        transcendentals_ = transcendentals_ + elements;
      else
        flops_ = flops_ + elements * flops_of(in.op);
      if (in.op == Op::Dot) {
        const DotView dot = DotView::of(in);
        const Extents& a = g_[dot.a].type.shape;
        flops_ = flops_ + elements * 2 * a[dot.trans_a ? 0 : 1];
      }
      if (!in.regions.empty()) region(in.regions.back(), times * trips(g_, v).value_or(1));
    }
  }

  const Graph& g_;
  Checked flops_ = 0, transcendentals_ = 0;
};

}  // namespace

std::optional<std::int64_t> trips(const Graph& g, ValueId loop) {
  if (g[loop].op != Op::Loop) return {};
  const LoopView view = LoopView::of(g[loop]);
  if (g[view.low].op != Op::Constant || g[view.high].op != Op::Constant) return {};
  const std::int64_t low = to_int(i32, g[view.low].attr.bits),
                     high = to_int(i32, g[view.high].attr.bits);
  return high <= low ? 0 : cdiv(high - low, view.step);
}

CostEstimate estimate_cost(const Graph& g) { return Count(g).run(); }

}  // namespace palladium::graph
