// What operations that fold elements along dimensions are, and cost.
#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/base/format.hpp"
#include "codegen/layout/transfer.hpp"
#include "codegen/lowered/program.hpp"

namespace palladium::lowered {

using graph::Op;
using layout::Layout;

thread::Fold fold_of(Op op) {
  switch (op) {
  case Op::ReduceProd:
  case Op::CumProd: return thread::Fold::product;
  case Op::ReduceMax:
  case Op::CumMax: return thread::Fold::max;
  case Op::ReduceMin:
  case Op::CumMin: return thread::Fold::min;
  default: return thread::Fold::sum;
  }
}

DType accumulator_dtype(const graph::Graph& g, ValueId fold) {
  const DType t = g[fold].type.dtype;
  return !is_idempotent(fold_of(g[fold].op)) && (t == f16 || t == bf16) ? f32 : t;
}

LoopNest fold_nest(Program& l, ValueId v) {
  const graph::Inst& i = l.graph[v];
  const StorageId storage = l.storage_of[v];
  const Extents& domain = l.graph[i.args[0]].type.shape;
  const LayoutVariableId variable = l.add_variable();
  const StorageId scratch =
      l.add_storage({.in = Shared{}, .dtype = l.storages[storage].dtype, .of = v});
  Storage& s = l.storages[storage];
  s.variable = variable;
  LoopNest p{.value = i.args[0], .domain = domain, .valid = domain, .variable = variable};
  const bool scans = i.type.shape.size() == domain.size();
  if (scans && !s.is_scalar()) {
    const graph::ScanView along = graph::ScanView::of(i);
    p.sink = Scan{.inst = v,
                  .storage = storage,
                  .dimension = along.dimension,
                  .reverse = along.reverse,
                  .scratch = scratch};
    return p;
  }
  const auto along = graph::dimensions(i);
  s.dropped.assign(along.begin(), along.end());
  if (s.is_scalar()) {
    // Every thread gets a single value, whatever threads hold the padding of its dimensions.
    s.dropped.resize(domain.size());
    std::iota(s.dropped.begin(), s.dropped.end(), 0);
  }
  p.sink = Reduce{.inst = v, .storage = storage, .reduced = s.dropped, .scratch = scratch};
  return p;
}

// ---- reductions

double Reduce::cost(const Program&, const Layout& all) const {
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
std::int64_t Reduce::scratch_elements(const Program& l, const Layout& all) const {
  const Layout result = layout::drop(all, reduced);
  bool warps = false;
  std::int64_t lanes = 1;
  for (int b = 0; b < all.thread_bits(); ++b) {
    if (b < layout::lane_bits && result.thread()[b] != 0) lanes *= 2;
    if (b >= layout::lane_bits && all.thread()[b] != 0 && result.thread()[b] == 0) warps = true;
  }
  std::int64_t registers = std::int64_t{1} << result.reg.size();
  if (!l.storages[storage].in_shared()) registers = result.registers();
  return warps ? all.warps() * lanes * registers : 0;
}

// ---- scans

std::vector<Scan::Level> Scan::levels(const Program& l, const Layout& all) const {
  std::vector<Level> out(1);
  if (!layout::is_unit(all)) return {};
  const layout::Bits threads = all.thread();
  int highest = -1;  // thread bit of the last level
  for (int p = 0; p < all.tile_bits[static_cast<std::size_t>(dimension)]; ++p) {
    const std::uint32_t image = 1u << (all.field_shift(dimension) + p);
    const auto at = std::ranges::find(threads, image);
    if (at == threads.end()) {
      out.back().count *= 2;
      continue;
    }
    const int bit = static_cast<int>(at - threads.begin());
    if (out.size() == 1 || out.back().count > 1 || bit < highest)
      out.push_back(
          {.run = out.size() == 1 ? out.back().count : out.back().run * out.back().count});
    highest = bit;
    if (bit < layout::lane_bits)
      out.back().lanes |= 1u << bit;
    else
      out.back().warps |= 1u << (bit - layout::lane_bits);
  }
  if (!l.storages[storage].in_shared()) out.back().count *= all.repetitions(dimension);
  std::uint32_t distinct = 0;
  for (int b = 0; b < layout::lane_bits; ++b) distinct |= threads[b] != 0 ? 1u << b : 0;
  for (Level& level : out) level.distinct = distinct &= ~level.lanes;
  return out;
}

// A thread adds what is before its runs to every element.
double Scan::cost(const Program& l, const Layout& all) const {
  constexpr double never = 1e9;
  const Storage& to = l.storages[storage];
  const std::vector<Level> steps = levels(l, all);
  if (steps.empty()) return never;
  constexpr std::int64_t most_of_a_tile = 32;
  const bool whole = to.in_registers();
  const std::int64_t held = whole ? all.registers() : std::int64_t{1} << all.reg.size();
  if (held * words(to.dtype) > (whole ? max_whole_registers : most_of_a_tile)) return never;
  double cost = issued(all);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double runs = issued(all) / static_cast<double>(steps[i].run);
    cost += issued(all) + 6 * runs * std::popcount(steps[i].lanes);
    if (steps[i].warps != 0) cost += 60 + 4 * runs * (1 << std::popcount(steps[i].warps));
  }
  return cost;
}

std::int64_t Scan::scratch_elements(const Program& l, const Layout& all) const {
  const bool shared = l.storages[storage].in_shared();
  const std::int64_t registers = shared ? std::int64_t{1} << all.reg.size() : all.registers();
  std::int64_t most = 0;
  for (const Level& level : levels(l, all))
    if (level.warps != 0)
      most = std::max(most, registers / level.run * all.warps() << std::popcount(level.distinct));
  return most;
}

std::string Scan::along() const {
  return fmt::format("[{}]{}", dimension, reverse ? " reverse" : "");
}

}  // namespace palladium::lowered
