// Fences between threads, and between a thread's accesses and asynchronous ones.

namespace pl {

PL_FN void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
PL_FN void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
PL_FN void fence_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
PL_FN void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
PL_FN void fence_block() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }
PL_FN void fence_cluster() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }
PL_FN void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
PL_FN void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

}  // namespace pl
