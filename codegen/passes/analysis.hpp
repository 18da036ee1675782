// Facts about a graph that several passes ask for.
#pragma once

#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::passes {

/// Positions in program order, and who uses what.
struct Analysis {
  explicit Analysis(const graph::Graph& g);

  std::vector<int> position;  // per instruction, -1 if unreachable
  std::vector<int> last;      // per instruction: last position in its regions
  std::vector<int> loop;      // per instruction: innermost Loop around it, or -1
  std::vector<std::vector<graph::ValueId>> users;  // per instruction, in program order
  std::vector<graph::ValueId> order;               // instructions by position
  std::vector<graph::ValueId> yielded_by;          // per instruction: the Loop that yields it
  std::vector<graph::ValueId> writes;              // Store and Swap, in program order

  /// Whether `inner` runs inside Loop `loop_inst`.
  bool inside(graph::ValueId inner, graph::ValueId loop_inst) const;
  /// The outermost Loop around `user` in which `value` is not made; no_value if there is none.
  graph::ValueId loop_between(graph::ValueId value, graph::ValueId user) const;

 private:
  void visit(const graph::Graph& g, graph::RegionId region, int loop_inst);
};

/// The Ref operand of a memory operation, down to the body's parameter.
graph::ValueId root_of(const graph::Graph& g, graph::ValueId memory_op);

/// Whether the memory operation takes its whole root Ref, unmasked.
bool is_whole_access(const graph::Graph& g, graph::ValueId memory_op);

}  // namespace palladium::passes
