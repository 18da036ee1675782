// What a kernel tells the host, in a buffer of the launch: numbers of 8 bytes, zero at its start.
// runtime/launch/debug_buffer.hpp reads it.

namespace pl {

namespace detail {

enum DebugSlot : i32 {
  debug_taken,    // numbers that records have taken or wanted, from the buffer's first
  debug_size,     // numbers of the buffer
  debug_lost,     // records without a place in it
  debug_failed,   // 1 + the site of the check that failed first
  debug_program,  // its program, by grid axis
  debug_records = 16,
};

// A place for a record: its head says the site, behind that stand its slots. -1: there is none, or
// a check has failed, behind which nothing is told.
PL_FN i32 take_record(u64* buffer, u32 site, i32 slots PL_AND_LINE) {
  if (pl::load_acquire(buffer + debug_failed PL_AND_PASS_LINE) != 0) return -1;
  const u64 size = pl::load_acquire(buffer + debug_size PL_AND_PASS_LINE);
  const u64 at = pl::atomic_add(buffer + debug_taken, u64(slots) + 1 PL_AND_PASS_LINE);
  if (at + u64(slots) + 1 > size) {
    pl::atomic_add(buffer + debug_lost, u64(1) PL_AND_PASS_LINE);
    return -1;
  }
  pl::store_release(buffer + at, u64(site) + 1 PL_AND_PASS_LINE);
  return i32(at) + 1;
}

}  // namespace detail

// For the first thread of the program; the others tell nothing.
template <int NumWarps = 4>
PL_FN i32 debug_record(u64* buffer, u32 site, i32 slots PL_AND_LINE) {
  if (!detail::is_first_of_program<NumWarps>()) return -1;
  return detail::take_record(buffer, site, slots PL_AND_PASS_LINE);
}

// The same for all of them, through 4 bytes of shared memory at `scratch`.
template <int Warpgroups, int NumWarps = 4>
PL_FN i32 debug_record_all(u64* buffer, u32 site, i32 slots, u32 scratch PL_AND_LINE) {
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  const bool first = detail::is_first_of_program<NumWarps>();
  i32 record = -1;
  if (first) record = detail::take_record(buffer, site, slots PL_AND_PASS_LINE);
  pl::store_shared(scratch, &record, first PL_AND_PASS_LINE);
  detail::sync_to_reduce<Warpgroups, NumWarps>(PL_PASS_LINE);
  pl::load_shared(&record, scratch, true PL_AND_PASS_LINE);
  return record;
}

// Where the program stands of a check that fails first of all.
template <int NumWarps = 4>
PL_FN i32 debug_fail(u64* buffer, u32 site, bool ok PL_AND_LINE) {
  if (ok || !detail::is_first_of_program<NumWarps>()) return -1;
  const u64 was = pl::atomic_compare_exchange(buffer + detail::debug_failed, u64(0),
                                              u64(site) + 1 PL_AND_PASS_LINE);
  return was == 0 ? i32(detail::debug_program) : -1;
}

PL_FN void debug_put(u64* buffer, i32 record, i32 slot, u64 bits, bool test = true PL_AND_LINE) {
  pl::store_global(buffer + record + slot, &bits, test && record >= 0 PL_AND_PASS_LINE);
}

}  // namespace pl
