// Who am I.

namespace pl {

PL_FN u32 thread() { return detail::host.ids()->thread; }
PL_FN u32 program_thread() {
  return 128 * detail::host.ids()->warpgroup + detail::host.ids()->thread;
}
// Collectives, as the shuffles are that these are on a GPU.
PL_FN u32 warpgroup(PL_LINE) {
  return detail::host.warp_uniform(detail::host.ids()->warpgroup, detail::Uniform::warpgroup, line);
}
PL_FN u32 warp(PL_LINE) {
  return detail::host.warp_uniform(detail::host.ids()->warp, detail::Uniform::warp, line);
}
PL_FN u32 lane() { return detail::host.ids()->lane; }
PL_FN i32 block_x() { return detail::host.ids()->block[0]; }
PL_FN i32 block_y() { return detail::host.ids()->block[1]; }
PL_FN i32 block_z() { return detail::host.ids()->block[2]; }
PL_FN i32 grid_x() { return detail::host.ids()->grid[0]; }
PL_FN i32 grid_y() { return detail::host.ids()->grid[1]; }
PL_FN i32 grid_z() { return detail::host.ids()->grid[2]; }
PL_FN u32 cluster_rank() { return detail::host.ids()->cluster_rank; }
PL_FN u32 cluster_size() { return detail::host.ids()->cluster_size; }
PL_FN bool elect_one(PL_LINE) { return detail::host.elect_one(line); }
PL_FN u32 warp_uniform(u32 x, PL_LINE) {
  return detail::host.warp_uniform(x, detail::Uniform::value, line);
}
PL_FN u32 shared_base() { return detail::host.ids()->shared_base; }

}  // namespace pl
