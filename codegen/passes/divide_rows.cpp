// Decides which divisions of f32 are one call of the device library for what a thread holds of a
// row that is divided by one number, in front of the loops along it, which then are the innermost.
//
// Precondition: assign_layouts.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "codegen/passes/coordinates.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using graph::Inst;
using graph::Op;

// Elements of a call: of fewer the guard costs more than it saves, and dividends that no registers
// hold anyway wait in them for the others.
constexpr std::int64_t fewest = 4, most_in_registers = 64, most_computed = 32;

// Operations of a divisor that are looked at.
constexpr int most_looked_at = 256;

class RowDivisions {
 public:
  RowDivisions(const Program& l, LoopNest& p)
      : l_(l),
        g_(l.graph),
        p_(p),
        rank_(p.layout.rank()),
        vector_bits_(vector_bits(l, p, p.layout)) {}

  void run() {
    std::vector<ValueId> divisions = found();
    if (divisions.empty()) return;
    std::vector<Around> loops = loops_around(divisions);
    const auto rows = std::ranges::stable_partition(loops, [](const Around& a) { return !a.row; });
    const bool held =
        std::ranges::all_of(divisions, [&](ValueId v) { return is_in_registers(g_[v].args[0]); });
    const std::int64_t most = held ? most_in_registers : most_computed;
    const std::size_t first_of_rows = loops.size() - rows.size();
    std::size_t first = loops.size();
    std::int64_t count = vector();
    while (first > first_of_rows && count * loops[first - 1].count <= most)
      count *= loops[--first].count;
    if (count < fewest) return;
    p_.divided = std::move(divisions);
    for (const Around& a : loops) p_.loops.push_back(a.over);
    p_.row_loops = static_cast<int>(loops.size() - first);
  }

 private:
  /// A loop around the vectors of the nest.
  struct Around {
    int over = over_groups;
    std::int64_t count = 1;
    bool row = true;  // unrolled, and no divisor changes with it
  };

  std::int64_t vector() const { return std::int64_t{1} << vector_bits_; }

  // Divisions of elements by what is the same for all of a vector, operands first.
  std::vector<ValueId> found() const {
    const bool enter =
        !std::holds_alternative<Update>(p_.sink) && enters(l_, p_, storage_filled(p_.sink));
    std::vector<ValueId> divisions, stack{p_.value};
    std::set<ValueId> seen;
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      const Inst& i = g_[v];
      const bool whole = l_.storage_of[v] && !(v == p_.value && enter);
      if (whole || !graph::is_elementwise(i.op) || !seen.insert(v).second) continue;
      stack.insert(stack.end(), i.args.begin(), i.args.end());
      if (i.op != Op::Div || i.type.dtype != f32) continue;
      if (vector() == 1 || !dimensions_of(i.args[1]).back()) divisions.push_back(v);
    }
    // An operand has been seen after what uses it.
    std::ranges::reverse(divisions);
    return divisions;
  }

  // The dimensions of the nest along which a value may change.
  std::vector<bool> dimensions_of(ValueId v) const {
    std::vector<bool> changing(static_cast<std::size_t>(rank_));
    std::vector<std::pair<ValueId, DimMap>> stack{{v, identity_map(rank_)}};
    const auto all = std::vector<bool>(changing.size(), true);
    for (int seen = 0; !stack.empty(); ++seen) {
      if (seen == most_looked_at) return all;
      const auto [next, map] = std::move(stack.back());
      stack.pop_back();
      const Inst& i = g_[next];
      const bool moves = i.op == Op::Broadcast || i.op == Op::Transpose || i.op == Op::Reshape;
      if (!l_.storage_of[next] && (moves || graph::is_elementwise(i.op))) {
        for (std::size_t a = 0; a < i.args.size(); ++a)
          stack.emplace_back(i.args[a], map_of_operand(g_, next, a, map));
        continue;
      }
      if (i.op == Op::Constant) continue;
      if (i.op == Op::Load || i.op == Op::Swap)  // what stands in for masked elements, too
        for (std::size_t a = 1; a < i.args.size(); ++a)
          if (g_[i.args[a]].type.is_value())
            stack.emplace_back(i.args[a], map_of_operand(g_, next, a, map));
      for (std::size_t d = 0; d < map.size(); ++d) {
        if (i.type.shape[d] == 1) continue;
        if (map[d] == opaque_dim) return all;
        if (map[d] >= 0) changing[static_cast<std::size_t>(map[d])] = true;
      }
    }
    return changing;
  }

  // From the outermost to the innermost.
  std::vector<Around> loops_around(const std::vector<ValueId>& divisions) const {
    std::vector<bool> changing(static_cast<std::size_t>(rank_));
    for (const ValueId v : divisions) {
      const std::vector<bool> dimensions = dimensions_of(g_[v].args[1]);
      for (std::size_t d = 0; d < dimensions.size(); ++d)
        changing[d] = changing[d] || dimensions[d];
    }
    std::vector<Around> loops;
    for (int d = 0; d < rank_; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const bool rolled = at < p_.rolled.size() && p_.rolled[at] > 0;
      if (p_.layout.repetitions(d) > 1)
        loops.push_back({d, p_.layout.repetitions(d), !rolled && !changing[at] && !ends(d)});
    }
    const layout::Bits& reg = p_.layout.reg;
    const auto vector_bits = static_cast<std::size_t>(vector_bits_);
    if (reg.size() == vector_bits) return loops;
    bool row = true;
    for (std::size_t bit = vector_bits; bit < reg.size(); ++bit)
      for (int d = 0; d < rank_; ++d)
        row = row && (p_.layout.field(d, reg[bit]) == 0 || !changing[static_cast<std::size_t>(d)]);
    loops.push_back({over_groups, std::int64_t{1} << (reg.size() - vector_bits), row});
    return loops;
  }

  // Of what is beyond the end nothing is divided.
  bool ends(int d) const { return std::ranges::count(p_.ends, d, &NestEnd::dimension) > 0; }

  // Whether registers hold the value where the nest evaluates it.
  bool is_in_registers(ValueId v) const {
    StorageId storage = l_.storage_of[v];
    if (!storage) return false;
    for (const auto& [from, copy] : p_.redirects)
      if (from == storage && copy.map == identity_map(rank_)) {
        storage = copy.storage;
        break;
      }
    return l_.storages[storage].in_registers();
  }

  const Program& l_;
  const graph::Graph& g_;
  LoopNest& p_;
  const int rank_, vector_bits_;
};

// Kinds that compute an element of each vector of the nest.
bool computes_elements(const LoopNest& p) { return p.value != graph::no_value && !is_fold(p.sink); }

void visit(Program& l, Statements& list) {
  for (Statement& s : list) {
    for_each_body(s, [&](Statements& body) { visit(l, body); });
    if (LoopNest* const p = std::get_if<LoopNest>(&s.what); p != nullptr && computes_elements(*p))
      RowDivisions(l, *p).run();
  }
}

}  // namespace

void divide_rows(Program& l) {
  const auto divides = [](const Inst& i) { return i.op == Op::Div && i.type.dtype == f32; };
  if (l.graph.approx_math || std::ranges::none_of(l.graph.insts, divides)) return;
  for_each_list(l, [&](Statements& list) { visit(l, list); });
}

}  // namespace palladium::passes
