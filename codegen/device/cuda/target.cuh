// The GPU half of the device library: macros. Compiled by NVRTC without any header.

#define PL_FN __device__ __forceinline__
#define PL_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
#define PL_EXPORT(kernel)
#define PL_UNROLL _Pragma("unroll")
#define PL_NOUNROLL _Pragma("unroll 1")
