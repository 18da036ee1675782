// Barriers in shared memory that count arrivals and bytes.

namespace pl {

PL_FN void mbarrier_init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

PL_FN void mbarrier_inval(u32 bar) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(bar) : "memory");
}

PL_FN void mbarrier_arrive(u32 bar, u32 count = 1) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(count)
               : "memory");
#else
  PL_NOUNROLL for (u32 k = 0; k < count; ++k) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(bar) : "memory");
  }
#endif
}

PL_FN void mbarrier_arrive_cluster(u32 remote_bar, u32 count = 1) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(remote_bar),
               "r"(count)
               : "memory");
}

PL_FN void mbarrier_arrive_remote(u32 remote_bar, u32 count = 1) {
  asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0], %1;" ::"r"(remote_bar),
               "r"(count)
               : "memory");
}

PL_FN void mbarrier_expect_tx(u32 bar, u32 bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

PL_FN void mbarrier_expect_tx_cluster(u32 remote_bar, u32 bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(remote_bar),
               "r"(bytes)
               : "memory");
}

PL_FN void mbarrier_arrive_expect_tx(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
               "r"(bytes)
               : "memory");
}

PL_FN void mbarrier_arrive_expect_tx_cluster(u32 remote_bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                   remote_bar),
               "r"(bytes)
               : "memory");
}

PL_FN bool mbarrier_test_wait(u32 bar, u32 parity) {
  u32 ended;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{.reg .pred p; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; "
      "selp.u32 %0, 1, 0, p;}"
      : "=r"(ended)
      : "r"(bar), "r"(parity)
      : "memory");
#else
  asm volatile(
      "{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
      : "=r"(ended)
      : "r"(bar), "r"(parity)
      : "memory");
#endif
  return ended != 0;
}

PL_FN bool mbarrier_try_wait(u32 bar, u32 parity) {
#if __CUDA_ARCH__ >= 900
  u32 ended;
  asm volatile(
      "{.reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; "
      "selp.u32 %0, 1, 0, p;}"
      : "=r"(ended)
      : "r"(bar), "r"(parity)
      : "memory");
  return ended != 0;
#else
  return mbarrier_test_wait(bar, parity);
#endif
}

// The loop is the assembler's own, so that the compiler neither unrolls nor predicates it.
PL_FN void mbarrier_wait(u32 bar, u32 parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{.reg .pred p;\n"
      "wait: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra wait;}" ::"r"(bar),
      "r"(parity)
      : "memory");
#else
  asm volatile(
      "{.reg .pred p;\n"
      "wait: mbarrier.test_wait.parity.shared.b64 p, [%0], %1;\n"
      "@!p bra wait;}" ::"r"(bar),
      "r"(parity)
      : "memory");
#endif
}

PL_FN void mbarrier_wait_cluster(u32 bar, u32 parity) {
  asm volatile(
      "{.reg .pred p;\n"
      "wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra wait;}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

}  // namespace pl
