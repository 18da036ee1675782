// Registers, dependent launches, delays, and names for reports.

namespace pl {

template <int N>
PL_FN void setmaxnreg_inc(PL_LINE) {
  static_assert(N >= 24 && N <= 256 && N % 8 == 0, "setmaxnreg: a multiple of 8, 24 to 256");
  detail::host.setmaxnreg(N, true, line);
}

template <int N>
PL_FN void setmaxnreg_dec(PL_LINE) {
  static_assert(N >= 24 && N <= 256 && N % 8 == 0, "setmaxnreg: a multiple of 8, 24 to 256");
  detail::host.setmaxnreg(N, false, line);
}

PL_FN void griddepcontrol_wait(PL_LINE) { detail::host.griddepcontrol(true, line); }
PL_FN void griddepcontrol_launch_dependents(PL_LINE) { detail::host.griddepcontrol(false, line); }

PL_FN void delay(i32) {}

namespace detail {

// Instructions of the threads of the launch that the emulator has seen.
PL_FN u64 clock() { return host.clock(); }
PL_FN u64 nanoseconds() { return host.clock(); }
PL_FN u32 multiprocessor() { return 0; }

}  // namespace detail

PL_FN void name_shared(u32 address, u32 bytes, const char* name, i32 index = -1) {
  detail::host.name_shared(address, bytes, name, index);
}

}  // namespace pl
