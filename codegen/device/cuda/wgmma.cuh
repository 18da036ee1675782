// What stands around a wgmma; the products themselves are made by device/wgmma.cpp.

namespace pl {

PL_FN u64 zero_of_iteration(i32 iteration) {
  u64 zero;
  asm("mov.b64 %0, 0;" : "=l"(zero) : "r"(iteration));
  return zero;
}

PL_FN void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
PL_FN void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Of what ptxas (12.9 to 13.5) computes of a register of PTX that a product writes, it keeps a number
// for the basic block, across later products into that register (codegen/thread/apart.cpp). A grid
// has blocks, which it does not know.
PL_FN void wgmma_apart() {
  u32 blocks;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
  if (blocks == 0) asm volatile("trap;");
}

template <int N>
PL_FN void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

template <int R>
PL_FN void wgmma_registers(f32 (&d)[R]) {
  PL_UNROLL for (int i = 0; i < R; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int R>
PL_FN void wgmma_registers(i32 (&d)[R]) {
  PL_UNROLL for (int i = 0; i < R; ++i) asm volatile("" : "+r"(d[i])::"memory");
}
template <int R>
PL_FN void wgmma_registers(u32 (&d)[R]) {
  PL_UNROLL for (int i = 0; i < R; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

// Of elements that share registers.
template <class T, int R>
PL_FN void wgmma_registers(T (&d)[R]) {
  static_assert(sizeof d % 4 == 0 && sizeof(T) < 4, "wgmma_registers: whole registers");
  u32* const words = reinterpret_cast<u32*>(d);
  PL_UNROLL for (int i = 0; i < R * int(sizeof(T)) / 4; ++i)
      asm volatile("" : "+r"(words[i])::"memory");
}

}  // namespace pl
