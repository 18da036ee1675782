// Facts about a graph that several passes ask for.
#pragma once

#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::passes {

/// The end of a region, where what it yields is wanted.
struct End {
  graph::ValueId owner = graph::no_value;
  int position = 0;
  int loop = -1;  // in which the region runs
};

/// Positions in program order, and who uses what.
struct Analysis {
  explicit Analysis(const graph::Graph& g);

  std::vector<int> position;  // per instruction, -1 if unreachable
  std::vector<int> last;      // per instruction: last position in its regions
  std::vector<int> loop;      // per instruction: innermost one around it that repeats, or -1
  std::vector<graph::RegionId> region;             // per instruction: that it stands in
  std::vector<std::vector<graph::ValueId>> users;  // per instruction, in program order
  std::vector<std::vector<End>> yielded;           // per instruction: by which regions
  std::vector<graph::ValueId> order;               // instructions by position
  std::vector<graph::ValueId> writes;              // of memory, in program order
  std::vector<int> syncs;                          // positions where others may go on, ascending

  /// How often it is an operand or yielded.
  std::size_t uses(graph::ValueId v) const {
    return users[graph::index(v)].size() + yielded[graph::index(v)].size();
  }
  /// Whether `inner` runs inside `loop_inst`, which repeats.
  bool inside(graph::ValueId inner, graph::ValueId loop_inst) const;
  /// The outermost Loop around `user` in which `value` is not made; no_value if there is none.
  graph::ValueId loop_between(graph::ValueId value, graph::ValueId user) const;

 private:
  void visit(const graph::Graph& g, graph::RegionId region, int loop_inst);

  int positions_ = 0;  // those of instructions, and one for the end of each region
};

/// The instruction `v` in front of `before` in the region in which that stands.
void insert_before(graph::Graph& g, graph::ValueId v, graph::ValueId before);

/// The Ref operand of a memory operation, down to the body's parameter.
graph::ValueId root_of(const graph::Graph& g, graph::ValueId memory_op);
/// Those of all that an operation writes.
std::vector<graph::ValueId> roots_written(const graph::Graph& g, graph::ValueId v);
/// Whether a load gives all of what it views, and the same wherever it stands: nobody writes there.
bool reads_unwritten(const graph::Graph& g, const Analysis& a, graph::ValueId load);

/// Whether the memory operation takes its whole root Ref, unmasked.
bool is_whole_access(const graph::Graph& g, graph::ValueId memory_op);

}  // namespace palladium::passes
