// Registers, dependent launches, delays, and names for reports.

namespace pl {

template <int N>
PL_FN void setmaxnreg_inc() {
  static_assert(N >= 24 && N <= 256 && N % 8 == 0, "setmaxnreg: a multiple of 8, 24 to 256");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N) : "memory");
}

template <int N>
PL_FN void setmaxnreg_dec() {
  static_assert(N >= 24 && N <= 256 && N % 8 == 0, "setmaxnreg: a multiple of 8, 24 to 256");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N) : "memory");
}

PL_FN void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
PL_FN void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// At most a millisecond at once.
PL_FN void delay(i32 nanos) {
  for (; nanos > 0; nanos -= 1000000)
    asm volatile("nanosleep.u32 %0;" ::"r"(nanos < 1000000 ? nanos : 1000000) : "memory");
}

namespace detail {

PL_FN u64 clock() {
  u64 t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}
PL_FN u64 nanoseconds() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}
PL_FN u32 multiprocessor() {
  u32 n;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(n));
  return n;
}

}  // namespace detail

PL_FN void name_shared(u32, u32, const char*, i32 = -1) {}

}  // namespace pl
