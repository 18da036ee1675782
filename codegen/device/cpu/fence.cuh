// Fences between threads, and between a thread's accesses and asynchronous ones.

namespace pl {

PL_FN void fence_mbarrier_init(PL_LINE) { detail::host.fence(detail::Fence::mbarrier_init, line); }
PL_FN void fence_async_shared(PL_LINE) { detail::host.fence(detail::Fence::async_shared, line); }
PL_FN void fence_async_global(PL_LINE) { detail::host.fence(detail::Fence::async_global, line); }
PL_FN void fence_async(PL_LINE) { detail::host.fence(detail::Fence::async, line); }
PL_FN void fence_block(PL_LINE) { detail::host.fence(detail::Fence::block, line); }
PL_FN void fence_cluster(PL_LINE) { detail::host.fence(detail::Fence::cluster, line); }
PL_FN void fence_gpu(PL_LINE) { detail::host.fence(detail::Fence::gpu, line); }
PL_FN void fence_system(PL_LINE) { detail::host.fence(detail::Fence::system, line); }

}  // namespace pl
