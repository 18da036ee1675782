// Blocks of a cluster: where they stand in it, and what they share.
#include <algorithm>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

Extents place_in_cluster(const Graph& g, std::int64_t rank) {
  Extents place(g.cluster.size());
  for (std::size_t axis = place.size(); axis-- > 0; rank /= g.cluster[axis])
    place[axis] = rank % g.cluster[axis];
  return place;
}

std::int64_t blocks_along(const Graph& g, std::int64_t axes) {
  std::int64_t blocks = 1;
  for (std::size_t axis = 0; axis < g.cluster.size(); ++axis)
    if ((axes >> axis & 1) != 0) blocks *= g.cluster[axis];
  return blocks;
}

int divided_among(const Extents& shape, std::int64_t blocks) {
  const auto found = std::ranges::find_if(shape, [&](std::int64_t n) { return n % blocks == 0; });
  return found == shape.end() ? -1 : static_cast<int>(found - shape.begin());
}

bool reach_other_blocks(const Graph& g) {
  return std::ranges::any_of(g.insts, [&](const Inst& inst) {
    return inst.op == Op::RefPeer ||
           (inst.op == Op::BarrierArrive && block_of_arrival(inst) != no_value) ||
           (inst.op == Op::CopyToShared && CopyView::of(inst).axes != 0);
  });
}

}  // namespace palladium::graph
