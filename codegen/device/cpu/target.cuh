// The CPU half of the device library: macros and the way into a kernel. Compiled by the host
// compiler without any header.

#define PL_FN inline
#define PL_KERNEL(...) static void
#define PL_TENSOR_MAP(name) const pl::TensorMap& name
#define PL_UNROLL
#define PL_NOUNROLL
// Reports name the line of the kernel's text: a function that may report takes it as its last
// parameter, and one that is made of such functions hands its caller's on.
#define PL_LINE i32 line = __builtin_LINE()
#define PL_AND_LINE , PL_LINE
#define PL_PASS_LINE line
#define PL_AND_PASS_LINE , line
#define PL_EXPORT(kernel)                                                                   \
  extern "C" __attribute__((visibility("default"))) void palladium_emulator_run(void** p) { \
    pl::detail::run(kernel, p);                                                             \
  }
