// Named barriers.

namespace pl {

template <int Warpgroups = 1>
PL_FN void warpgroup_sync(PL_LINE) {
  static_assert(Warpgroups >= 1 && Warpgroups <= 8, "a block has 1 to 8 warpgroups");
  detail::host.warpgroup_sync(Warpgroups, line);
}

template <int Warps>
PL_FN void program_sync(PL_LINE) {
  static_assert(Warps == 8 || Warps == 16, "a wide program has 8 or 16 warps");
  detail::host.barrier(1, 32 * Warps, true, line);
}

template <int Warps>
PL_FN void warpgroup_sync_in(PL_LINE) {
  static_assert(Warps == 8 || Warps == 16, "a wide program has 8 or 16 warps");
  detail::host.barrier(2 + warpgroup(), 128, true, line);
}

PL_FN void block_sync(PL_LINE) { detail::host.block_sync(line); }
PL_FN void warp_sync(PL_LINE) { detail::host.warp_sync(line); }

template <int Id>
PL_FN void barrier_sync(u32 threads, PL_LINE) {
  static_assert(Id >= 0 && Id <= 15, "named barriers are 0 to 15");
  detail::host.barrier(Id, threads, true, line);
}

template <int Id>
PL_FN void barrier_arrive(u32 threads, PL_LINE) {
  static_assert(Id >= 0 && Id <= 15, "named barriers are 0 to 15");
  detail::host.barrier(Id, threads, false, line);
}

}  // namespace pl
