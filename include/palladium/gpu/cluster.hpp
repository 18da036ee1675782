// What blocks of a cluster do for each other: memory that they see of each other, and barriers at
// which all of them arrive. From sm_90 on.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "palladium/gpu/barrier.hpp"

namespace palladium::gpu {

/// A cluster axis, `"x"`, or several as one, `{"x", "y"}`.
class ClusterAxes {
 public:
  ClusterAxes(const char* name) : names{name} {}
  ClusterAxes(std::initializer_list<const char*> list) : names(list.begin(), list.end()) {}

  std::vector<std::string> names;
};

struct ClusterBarrierOptions {
  /// Who arrives does so at the barriers of all blocks that differ from its own along one of these
  /// alone, and of its own.
  std::vector<ClusterAxes> collective_axes = {};
  int num_arrivals = 1;           ///< of threads and copies of each of these blocks
  BarrierCount num_barriers = 1;  ///< 1 to 32 in all
};

/// Barriers of the block at which other blocks arrive, too, as scratch: with axes of sizes n, m,
/// ... `num_arrivals` times 1 + (n - 1) + (m - 1) + ... arrivals complete one of them.
inline Scoped ClusterBarrier(ClusterBarrierOptions options, Location at = here()) {
  Scoped barriers{Space::barrier, {std::move(options.num_barriers.shape), u64}, at};
  barriers.arrivals = options.num_arrivals;
  for (ClusterAxes& axes : options.collective_axes)
    barriers.collective_axes.push_back(std::move(axes.names));
  return barriers;
}

/// Of a block of the cluster: its place along an axis.
struct ClusterIndex {
  const char* axis = "";
  Value index = {};
};
/// The same memory, in SMEM, of the block that stands there along these axes, and along others
/// where this one does: it is loaded and stored to. Barriers say when it is there.
PALLADIUM_API Ref cluster_ref(const Ref& ref, std::initializer_list<ClusterIndex> block,
                              Location at = here());

struct AsyncStoreOptions {
  MaybeValue cluster_idx = {};  ///< with a cluster_dim, the block; or `ref` is one's already
  const char* cluster_dim = nullptr;
  /// "add", "min", "max", "and", "or" or "xor": `ref` becomes itself and the value, element by
  /// element and each at once, of i32, u32, i64 and u64.
  const char* atomic = nullptr;
};
/// `ref`, of a block of the cluster, becomes the value, and the same barrier of that block, of one
/// arrival, is completed when it is there: who is there waits for that.
PALLADIUM_API void async_store_smem(const Operand& value, const Ref& ref, const Ref& barrier,
                                    AsyncStoreOptions options = {});

}  // namespace palladium::gpu
