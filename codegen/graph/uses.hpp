// Who uses what: the users of every value and the region in which every instruction stands.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/graph/graph.hpp"

namespace palladium::graph {

/// A snapshot: later changes of the graph do not show. Only what is reachable from the bodies and
/// the regions of the GridMapping counts.
class Uses {
 public:
  explicit Uses(const Graph& g);

  /// Instructions that have `v` as an argument, in order of their regions; one that has it twice is
  /// listed twice. Yields are not among them.
  std::span<const ValueId> users(ValueId v) const;
  /// Number of uses as an argument or as a yield.
  int count(ValueId v) const { return counts_[index(v)]; }

  /// The region that lists `v`, as an instruction or parameter; no_region_id for dead ones.
  RegionId region(ValueId v) const { return region_[index(v)]; }
  /// The instruction whose region `r` is; no_value for bodies and index maps.
  ValueId owner(RegionId r) const { return owner_[index(r)]; }
  /// Does the region `outer` enclose, or equal, `inner`?
  bool encloses(RegionId outer, RegionId inner) const;

  static constexpr RegionId no_region_id{no_region};

 private:
  std::vector<std::uint32_t> first_;  // per value: start of its users in list_
  std::vector<ValueId> list_;
  std::vector<int> counts_;
  std::vector<RegionId> region_;
  std::vector<ValueId> owner_;
};

/// Regions without an owner, in order: bodies, index maps, the other regions of the GridMapping.
std::vector<RegionId> root_regions(const Graph& g);
/// Is `r` the region of a body, rather than one of the GridMapping's?
bool is_body(const Graph& g, RegionId r);

}  // namespace palladium::graph
