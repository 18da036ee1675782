// The GPU half of the device library: macros. Compiled by NVRTC without any header.

#define PL_FN __device__ __forceinline__
#define PL_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
#define PL_EXPORT(kernel)
#define PL_TENSOR_MAP(name) const __grid_constant__ pl::TensorMap name
#define PL_UNROLL _Pragma("unroll")
#define PL_NOUNROLL _Pragma("unroll 1")
// The CPU half's way of telling reports the line; nothing here.
#define PL_LINE
#define PL_AND_LINE
#define PL_PASS_LINE
#define PL_AND_PASS_LINE
