// Semaphores: counters in global memory, of one block or of all.

namespace pl {

// Adds n once what the threads of the program did is done.
template <Scope S, int Warpgroups, int NumWarps = 4>
PL_FN void semaphore_signal(i32* p, i32 n PL_AND_LINE) {
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  if (detail::is_first_of_program<NumWarps>()) pl::red_add<release, S>(p, n PL_AND_PASS_LINE);
}

// Waits until the count is at least n; Takes: then takes n from it.
template <Scope S, bool Takes, int Warpgroups, int NumWarps = 4>
PL_FN void semaphore_wait(i32* p, i32 n PL_AND_LINE) {
  if (detail::is_first_of_program<NumWarps>()) {
    i32 seen = pl::load_acquire<S>(p PL_AND_PASS_LINE);
    if constexpr (Takes) {
      for (;;) {
        if (seen < n) {
          seen = pl::load_acquire<S>(p PL_AND_PASS_LINE);
          continue;
        }
        const i32 old =
            pl::atomic_compare_exchange<acq_rel, S>(p, seen, seen - n PL_AND_PASS_LINE);
        if (old == seen) break;
        seen = old;
      }
    } else {
      while (seen < n) seen = pl::load_acquire<S>(p PL_AND_PASS_LINE);
    }
  }
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
}

// The count, one for all threads of the program, through 4 bytes of shared memory at `scratch`.
template <Scope S, int Warpgroups, int NumWarps = 4>
PL_FN i32 semaphore_read(const i32* p, u32 scratch PL_AND_LINE) {
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  const bool first = detail::is_first_of_program<NumWarps>();
  i32 count = 0;
  if (first) count = pl::load_acquire<S>(p PL_AND_PASS_LINE);
  pl::store_shared(scratch, &count, first PL_AND_PASS_LINE);
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  pl::load_shared(&count, scratch, true PL_AND_PASS_LINE);
  return count;
}

}  // namespace pl
