#include "codegen/graph/warps.hpp"

#include <algorithm>

namespace palladium::graph {
namespace {

bool is_array(const Type& t) { return t.is_value() && !t.shape.empty(); }

std::string problem_of(const Graph& g, const Inst& in) {
  const auto arrays = [&](const char* what, const Type& t) {
    return std::string(what) + " with a WarpMesh, given " + to_string(t);
  };
  if (in.op == Op::Warps) return "a WarpMesh is not inside of another";
  if (in.op == Op::Scoped)
    return "memory of a scope is that of the whole thread: run_scoped stands outside of a WarpMesh";
  if (in.op == Op::Load && is_array(in.type)) return arrays("can only load scalars", in.type);
  for (const ValueId arg : in.args) {
    const Type& t = g[arg].type;
    if (is_array(t))
      return arrays(
          is_pure(in.op) ? "can only close over scalars and Refs" : "can only store scalars", t);
    if (t.is_ref() && is_own(g[g.root(arg)].type.space))
      return "registers are those of the whole thread, given " + to_string(g[g.root(arg)].type) +
             "; with a WarpMesh memory is in SMEM or GMEM";
  }
  if (is_array(in.type)) return arrays("can only compute scalars", in.type);
  return "";
}

}  // namespace

std::string warps_problem(const Graph& g, RegionId r, ValueId& at) {
  for (const ValueId v : g[r].insts) {
    at = v;
    if (std::string problem = problem_of(g, g[v]); !problem.empty()) return problem;
    for (const RegionId inner : g[v].regions)
      if (std::string problem = warps_problem(g, inner, at); !problem.empty()) return problem;
  }
  return "";
}

bool has_warps(const Graph& g) {
  return std::ranges::any_of(g.insts, [](const Inst& in) { return in.op == Op::Warps; });
}

}  // namespace palladium::graph
