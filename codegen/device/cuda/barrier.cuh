// Named barriers.

namespace pl {
namespace detail {

// The identifier must be an immediate: from a register ptxas reserves all 16 barriers.
template <int Id, int Last>
PL_FN void warpgroup_barrier(u32 id) {
  if (Id == Last || id == Id) {
    asm volatile("bar.sync %0, 128;" ::"n"(Id) : "memory");
  } else {
    warpgroup_barrier<(Id < Last ? Id + 1 : Id), Last>(id);
  }
}

}  // namespace detail

template <int Warpgroups = 1>
PL_FN void warpgroup_sync() {
  static_assert(Warpgroups >= 1 && Warpgroups <= 8, "a block has 1 to 8 warpgroups");
  if constexpr (Warpgroups == 1) {
    asm volatile("bar.sync 1, 128;" ::: "memory");
  } else {
    const u32 warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    detail::warpgroup_barrier<1, Warpgroups>(1 + warpgroup);
  }
}

template <int Warps>
PL_FN void program_sync() {
  static_assert(Warps == 8 || Warps == 16, "a wide program has 8 or 16 warps");
  asm volatile("bar.sync 1, %0;" ::"n"(32 * Warps) : "memory");
}

template <int Warps>
PL_FN void warpgroup_sync_in() {
  static_assert(Warps == 8 || Warps == 16, "a wide program has 8 or 16 warps");
  const u32 warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  detail::warpgroup_barrier<2, 1 + Warps / 4>(2 + warpgroup);
}

PL_FN void block_sync() { __syncthreads(); }
PL_FN void warp_sync() { __syncwarp(); }

template <int Id>
PL_FN void barrier_sync(u32 threads) {
  static_assert(Id >= 0 && Id <= 15, "named barriers are 0 to 15");
  asm volatile("bar.sync %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}

template <int Id>
PL_FN void barrier_arrive(u32 threads) {
  static_assert(Id >= 0 && Id <= 15, "named barriers are 0 to 15");
  asm volatile("bar.arrive %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}

}  // namespace pl
