// Named barriers.

namespace pl {

template <int Warpgroups = 1>
PL_FN void warpgroup_sync(PL_LINE) {
  static_assert(Warpgroups >= 1 && Warpgroups <= 8, "a block has 1 to 8 warpgroups");
  detail::host.warpgroup_sync(Warpgroups, line);
}

PL_FN void block_sync(PL_LINE) { detail::host.block_sync(line); }
PL_FN void warp_sync(PL_LINE) { detail::host.warp_sync(line); }

}  // namespace pl
