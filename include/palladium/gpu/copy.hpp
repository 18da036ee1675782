// Copies between arrays and shared memory that go on while threads work. Those to shared memory
// complete a barrier; those to global memory are awaited in groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palladium/spec.hpp"

namespace palladium::gpu {

struct CopyGmemToSmemOptions {
  /// Cluster axes: all blocks that differ along these alone say the same copy, and each brings a
  /// part of it to all of them. Each waits at a barrier of its own for all of it, and fills memory
  /// that others must be done with: a ClusterBarrier tells.
  std::vector<std::string> collective_axes = {};
  /// A dimension of `src` along which each of these blocks has a part, which it brings to itself:
  /// `dst` has the extent of a part.
  std::optional<int> partitioned = {};
  OOBFillMode oob_mode = OOBFillMode::PROMISE_IN_BOUNDS;
  MaybeValue predicate =
      {};  ///< a scalar bool: where it does not hold, the copy arrives and no more
};
/// `dst`, in SMEM, becomes `src`, in GMEM, of the same shape and dtype. The copy arrives at the
/// barrier once, for the calling thread, when it is done: who reads `dst` waits for that.
///
/// TMA copies it where the rows of the array, and what is chosen of them, begin and end at
/// multiples of 16 bytes, threads where they do not (a remark says why; it is done then when the
/// call is).
PALLADIUM_API void copy_gmem_to_smem(const Ref& src, const Ref& dst, const Ref& barrier,
                                     CopyGmemToSmemOptions options = {}, Location at = here());

struct CopyOptions {
  MaybeValue predicate = {};  ///< a scalar bool: where it does not hold, nothing is copied
};
/// The same without a barrier, from sm_80 on: the copy is a group of the calling thread, for which
/// that waits by wait_gmem_to_smem. Threads copy, 4 to 16 bytes at once, and go on meanwhile.
PALLADIUM_API void copy_gmem_to_smem(const Ref& src, const Ref& dst, CopyOptions options = {},
                                     Location at = here());
/// Waits until all copies to shared memory without a barrier, but the last n, are there.
PALLADIUM_API void wait_gmem_to_smem(int n, Location at = here());

/// `ref`, in GMEM, is in the L2 cache when it is read, if there is room.
PALLADIUM_API void async_prefetch(const Ref& ref, Location at = here());

struct CopySmemToGmemOptions {
  MaybeValue predicate = {};  ///< a scalar bool: where it does not hold, nothing is copied
  bool commit_group = true;   ///< ends a group of the calling thread's copies with this one
  /// "add", "min", "max", "and", "or" or "xor": `dst` becomes itself and `src`, element by element,
  /// each at once, whoever else does so. Of i32 and u32 as natural numbers "inc": one more, or 0 of
  /// what is not less than `src`; "dec": one less, or `src` of 0 and of what is greater.
  const char* reduction_op = nullptr;
  /// Slices of `dst` may leave the array, where nothing is stored.
  bool clipped = false;
};
/// `dst`, in GMEM, becomes `src`, in SMEM, of the same shape and dtype. Until wait_smem_to_gmem
/// nobody writes `src`, nor reads `dst`. What threads stored to `src` is there for the copy behind
/// commit_smem().
PALLADIUM_API void copy_smem_to_gmem(const Ref& src, const Ref& dst,
                                     CopySmemToGmemOptions options = {}, Location at = here());

/// What the calling thread stored to shared memory is there for copies that begin behind this.
PALLADIUM_API void commit_smem(Location at = here());

/// The copies that the calling thread began with `.commit_group = false` are a group.
PALLADIUM_API void commit_smem_to_gmem_group(Location at = here());

struct WaitSmemToGmemOptions {
  bool wait_read_only = false;  ///< until `src` has been read; `dst` may not be there yet
};
/// Waits for all groups of the calling thread but the last n of them.
PALLADIUM_API void wait_smem_to_gmem(int n, WaitSmemToGmemOptions options = {},
                                     Location at = here());

}  // namespace palladium::gpu
