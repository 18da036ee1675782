// Who am I.

extern "C" {
extern __shared__ __align__(1024) u8 palladium_shared[];
}

namespace pl {

PL_FN u32 thread() { return threadIdx.x & 127; }
PL_FN u32 program_thread() { return threadIdx.x; }

// A shuffle makes these uniform in the compiler's eyes: branches on them need no predication. It
// waits for the whole warp, so a kernel asks once, where its warps are whole.
PL_FN u32 warpgroup() { return __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0); }
PL_FN u32 warp() { return __shfl_sync(0xffffffffu, (threadIdx.x >> 5) & 3, 0); }

PL_FN u32 lane() { return threadIdx.x & 31; }
PL_FN i32 block_x() { return static_cast<i32>(blockIdx.x); }
PL_FN i32 block_y() { return static_cast<i32>(blockIdx.y); }
PL_FN i32 block_z() { return static_cast<i32>(blockIdx.z); }
PL_FN i32 grid_x() { return static_cast<i32>(gridDim.x); }
PL_FN i32 grid_y() { return static_cast<i32>(gridDim.y); }
PL_FN i32 grid_z() { return static_cast<i32>(gridDim.z); }

PL_FN u32 cluster_rank() {
  u32 r = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
#endif
  return r;
}

PL_FN u32 cluster_size() {
  u32 r = 1;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
#endif
  return r;
}

PL_FN bool elect_one() {
  u32 elected;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(elected));
  return elected != 0;
}

PL_FN u32 warp_uniform(u32 x) { return __shfl_sync(0xffffffffu, x, 0); }

PL_FN u32 shared_base() { return static_cast<u32>(__cvta_generic_to_shared(palladium_shared)); }

}  // namespace pl
