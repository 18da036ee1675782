// The CPU half of the device library: macros and the way into a kernel. Compiled by the host
// compiler without any header.

#define PL_FN static inline
#define PL_KERNEL(threads) static void
#define PL_UNROLL
#define PL_NOUNROLL
#define PL_LINE i32 line = __builtin_LINE()
#define PL_EXPORT(kernel)                                                                   \
  extern "C" __attribute__((visibility("default"))) void palladium_emulator_run(void** p) { \
    pl::detail::run(kernel, p);                                                             \
  }
