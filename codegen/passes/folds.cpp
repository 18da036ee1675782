// What the passes ask of operations that fold elements along dimensions.
#include <numeric>

#include "codegen/base/format.hpp"
#include "codegen/layout/transfer.hpp"
#include "codegen/passes/lowered.hpp"

namespace palladium::passes {

using graph::Op;
using layout::Layout;

thread::Fold fold_of(Op op) {
  switch (op) {
  case Op::ReduceMax: return thread::Fold::max;
  case Op::ReduceMin: return thread::Fold::min;
  default: return thread::Fold::sum;
  }
}

DType accumulator_dtype(const graph::Graph& g, ValueId fold) {
  const DType t = g[fold].type.dtype;
  return fold_of(g[fold].op) == thread::Fold::sum && (t == f16 || t == bf16) ? f32 : t;
}

Pass fold_pass(Lowered& l, ValueId v) {
  const graph::Inst& i = l.graph[v];
  const int storage = l.storage_of[index(v)];
  const Extents& domain = l.graph[i.args[0]].type.shape;
  const int variable = l.add_variable();
  const int scratch =
      l.add_storage({.place = Place::shared, .dtype = l.storages[storage].dtype, .of = v});
  Storage& s = l.storages[storage];
  s.variable = variable;
  Pass p{.value = i.args[0], .domain = domain, .valid = domain, .variable = variable};
  const auto along = graph::dimensions(i);
  s.dropped.assign(along.begin(), along.end());
  if (s.place == Place::scalar) {
    // Every thread gets a single value, whatever threads hold the padding of its dimensions.
    s.dropped.resize(domain.size());
    std::iota(s.dropped.begin(), s.dropped.end(), 0);
  }
  p.sink = Reduce{.inst = v, .storage = storage, .reduced = s.dropped, .scratch = scratch};
  return p;
}

// ---- reductions

double Reduce::cost(const Lowered&, const Layout& all) const {
  const Layout result = layout::drop(all, reduced);
  int lanes = 0, warps = 0;
  for (int b = 0; b < all.thread_bits(); ++b)
    if (all.thread()[b] != 0 && result.thread()[b] == 0)
      (b < layout::lane_bits ? lanes : warps) += 1;
  const double r = issued(result);
  const double pressure = result.registers() > most_registers ? 16 * r : 0;
  return r * lanes * 5 + (warps > 0 ? 60 + 4 * r * (1 << warps) : 0) + pressure;
}

std::string Reduce::along() const { return fmt::format("[{}]", fmt::join(reduced, ",")); }

// The exchange between warps needs room for the partial results of the lanes that differ.
std::int64_t Reduce::scratch_elements(const Lowered& l, const Layout& all) const {
  const Layout result = layout::drop(all, reduced);
  bool warps = false;
  std::int64_t lanes = 1;
  for (int b = 0; b < all.thread_bits(); ++b) {
    if (b < layout::lane_bits && result.thread()[b] != 0) lanes *= 2;
    if (b >= layout::lane_bits && all.thread()[b] != 0 && result.thread()[b] == 0) warps = true;
  }
  std::int64_t registers = std::int64_t{1} << result.reg.size();
  if (l.storages[storage].place != Place::shared) registers = result.registers();
  return warps ? all.warps() * lanes * registers : 0;
}

}  // namespace palladium::passes
