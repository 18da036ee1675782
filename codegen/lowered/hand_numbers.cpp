#include "codegen/lowered/hand_numbers.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "codegen/graph/extents.hpp"
#include "codegen/graph/fold.hpp"
#include "palladium/grid_mapping.hpp"

namespace palladium::lowered::hand {
namespace {

using graph::Inst;
using graph::Op;
using graph::RegionId;

bool is_number(const graph::Type& t) {
  return t.is_scalar() && (t.dtype.is_integer() || t.dtype.is_bool()) && t.dtype.bits() >= 8;
}

// Backwards from what decides to what it is made of.
class Deciding {
 public:
  explicit Deciding(const graph::Graph& g) : g_(g), all_(g.insts.size()), given_(g.insts.size()) {}

  std::vector<bool> run() {
    for (const graph::Body& b : g_.bodies) visit(b.region);
    while (!open_.empty()) {
      const ValueId v = open_.back();
      open_.pop_back();
      follow(v);
    }
    return std::move(all_);
  }

 private:
  void want(ValueId v) {
    if (all_[graph::index(v)] || !is_number(g_[v].type)) return;
    all_[graph::index(v)] = true;
    open_.push_back(v);
  }

  void visit(RegionId r) {
    for (const ValueId v : g_[r].insts) {
      const Inst& i = g_[v];
      if (i.op == Op::When || i.op == Op::Switch) want(i.args[0]);
      if (i.op == Op::Loop) {
        want(i.args[0]);
        want(i.args[1]);
      }
      if (i.op == Op::While) want(g_[i.regions[0]].yields[0]);
      if (i.op == Op::At || i.op == Op::RefPeer || graph::is_barrier_op(i.op) ||
          i.op == Op::CopyToShared)
        for (const ValueId a : i.args) want(a);
      if (i.op == Op::Store && g_[g_.root(i.args[0])].type.space == Space::regs) want(i.args[1]);
      give(i);
      for (const RegionId inner : i.regions) visit(inner);
    }
  }

  // Parameters of what repeats become what it begins with, and what its body yields.
  void give(const Inst& i) {
    if (!graph::repeats(i.op)) return;
    const auto [region, first] = graph::Repeated::of(i);
    const std::size_t carries = i.op == Op::Loop ? 2 : 0;
    for (const RegionId r : i.regions)
      for (std::size_t c = first; c < g_[r].params.size(); ++c)
        given_[graph::index(g_[r].params[c])] = {i.args[carries + c - first],
                                                 g_[region].yields[c - first]};
  }

  void follow(ValueId v) {
    const Inst& i = g_[v];
    if (i.op == Op::Param)
      for (const ValueId from : given_[graph::index(v)]) want(from);
    if (i.op == Op::Get) return follow_result(g_[i.args[0]], graph::result_of(i));
    if (!graph::is_pure(i.op)) return;
    for (const ValueId a : i.args) want(a);
  }
  void follow_result(const Inst& of, std::size_t number) {
    if (of.op == Op::Loop) want(of.args[2 + number]);
    if (of.op == Op::While) want(of.args[number]);
    const std::size_t tests = of.op == Op::While ? 1 : 0;
    for (std::size_t r = tests; r < of.regions.size(); ++r) want(g_[of.regions[r]].yields[number]);
    // A carry is what the parameter of an iteration is.
    if (graph::repeats(of.op)) {
      const auto [region, first] = graph::Repeated::of(of);
      want(g_[region].params[first + number]);
    }
  }

  const graph::Graph& g_;
  std::vector<bool> all_;
  std::vector<std::vector<ValueId>> given_;
  std::vector<ValueId> open_;
};

// Kinds of questions: beyond those of the ways through a lowered program.
enum Asked : int { program = 100, programs_of, size, loaded, argument, value };

}  // namespace

std::vector<bool> deciding(const graph::Graph& g) { return Deciding(g).run(); }

Facts::Facts(const graph::Graph& g)
    : deciding(hand::deciding(g)), subscripts(g.insts.size()), views(g.insts.size()) {
  for (std::size_t i = 0; i < g.insts.size(); ++i) {
    const Inst& inst = g.insts[i];
    if (inst.op == Op::At) subscripts[i] = graph::Subscript::of(inst);
    if (!inst.type.is_ref()) continue;
    for (auto v = static_cast<ValueId>(i); g.is_view(v); v = g[v].args[0]) views[i].push_back(v);
    std::ranges::reverse(views[i]);
  }
}

std::int64_t Numbers::programs(int axis) {
  const Dim& d = g_.mapping.grid[static_cast<std::size_t>(axis)];
  if (d.is_static()) return d.value();
  constexpr std::array<std::int64_t, 2> tried = {3, 1};
  return tried[static_cast<std::size_t>(answers_.ask({programs_of, axis}, tried.size()))];
}

std::optional<std::int64_t> Numbers::position(const Inst& inst) {
  const auto one_of = [&](std::int64_t count, std::vector<int> question) {
    if (count <= 1) return std::int64_t{0};
    return answers_.ask(question, 2) == 0 ? std::int64_t{0} : count - 1;
  };
  if (inst.op == Op::DimValue) {
    constexpr std::array<std::int64_t, 2> tried = {1000, 1};
    const int symbol = static_cast<int>(graph::symbol_of(inst));
    return tried[static_cast<std::size_t>(answers_.ask({size, symbol}, tried.size()))];
  }
  const auto [kind, axis] = graph::AxisView::of(inst);
  const bool is_index = inst.op == Op::ProgramId || inst.op == Op::AxisIndex;
  switch (kind) {
  case graph::AxisKind::grid:
    return is_index ? one_of(programs(axis), {program, axis}) : programs(axis);
  case graph::AxisKind::cluster: {
    const int blocks = g_.cluster[static_cast<std::size_t>(axis)];
    if (is_index && at_.block >= 0)
      return graph::place_in_cluster(g_, at_.block)[static_cast<std::size_t>(axis)];
    return is_index ? one_of(blocks, {program, 100 + axis}) : blocks;
  }
  case graph::AxisKind::thread: return is_index ? at_.thread : at_.threads;
  case graph::AxisKind::warp: return is_index ? at_.warp : graph::num_warps;
  }
  return {};
}

void Numbers::suppose(ValueId v, std::vector<int> question) {
  supposed_ = v;
  question.insert(question.begin(), loaded);
  constexpr std::array<std::int64_t, 3> tried = {3, 0, 1};
  const bool is_bool = g_[v].type.dtype.is_bool();
  const int taken = answers_.ask(question, is_bool ? 2 : static_cast<int>(tried.size()));
  set_number(v, is_bool ? taken : tried[static_cast<std::size_t>(taken)]);
}

void Numbers::compute(ValueId v, int iteration) {
  const Inst& inst = g_[v];
  if (inst.op == Op::Constant) return set(v, inst.attr.bits);
  if (inst.op == Op::ProgramId || inst.op == Op::NumPrograms || inst.op == Op::AxisIndex ||
      inst.op == Op::AxisSize || inst.op == Op::DimValue) {
    if (const auto n = position(inst)) return set_number(v, *n);
  } else if (graph::is_hint(inst.op)) {
    return set(v, bits(inst.args[0]));
  } else if (graph::is_elementwise(inst.op)) {
    std::array<std::uint64_t, 3> operands = {};
    bool all = true;
    for (std::size_t i = 0; i < inst.args.size(); ++i) {
      all = all && is_number(g_[inst.args[i]].type);
      if (all) operands[i] = bits(inst.args[i]);
    }
    if (all)
      if (const auto folded = graph::fold(inst.op, g_[inst.args.back()].type.dtype, inst.type.dtype,
                                          {operands.data(), inst.args.size()}))
        return set(v, *folded);
  }
  suppose(v, {value, static_cast<int>(graph::index(v)), iteration % 2});
}

}  // namespace palladium::lowered::hand
