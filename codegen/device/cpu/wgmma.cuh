// What stands around a wgmma; the products themselves are made by device/wgmma.cpp.

namespace pl {

PL_FN u64 zero_of_iteration(i32) { return 0; }

PL_FN void wgmma_fence(PL_LINE) { detail::host.wgmma_fence(line); }
PL_FN void wgmma_commit(PL_LINE) { detail::host.wgmma_commit(line); }

PL_FN void wgmma_apart() {}

template <int N>
PL_FN void wgmma_wait(PL_LINE) {
  detail::host.wgmma_wait(N, line);
}

// The emulator writes registers through pointers, which the compiler sees; it is told which they
// are, to see whether they change after a fence.
template <class D, int R>
PL_FN void wgmma_registers(D (&d)[R]) {
  detail::host.wgmma_registers(d, sizeof d / 4);
}

}  // namespace pl
