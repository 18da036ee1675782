// The GPU half of the device library: macros. Compiled by NVRTC without any header.

#define PL_FN __device__ __forceinline__
// Threads of a block, and how many blocks of a multiprocessor registers leave room for; one, where
// that is not said.
#define PL_BOUNDS(threads, blocks, ...) __launch_bounds__(threads, blocks)
#define PL_KERNEL(...) extern "C" __global__ void PL_BOUNDS(__VA_ARGS__, 1, 0)
#define PL_EXPORT(kernel)
#define PL_TENSOR_MAP(name) const __grid_constant__ pl::TensorMap name
#define PL_UNROLL _Pragma("unroll")
#define PL_NOUNROLL _Pragma("unroll 1")
// The CPU half's way of telling reports the line; nothing here.
#define PL_LINE
#define PL_AND_LINE
#define PL_PASS_LINE
#define PL_AND_PASS_LINE
