// When scopes of a body begin and end: a place of the launch's buffer for each warpgroup, or warp,
// at which its first thread writes. runtime/launch/scope_trace.hpp reads it.

namespace pl {

namespace detail {

// Behind these numbers stand a pair for each begin and end: 1 + its tag, and the clock.
enum ProfileSlot : i32 {
  profile_known,       // 1 + the multiprocessor: somebody was here
  profile_begin_time,  // nanoseconds, the same on all multiprocessors
  profile_begin_clock,
  profile_end_clock,
  profile_end_time,
  profile_told,  // begins and ends, also those without a place
  profile_events = 8,
};

PL_FN void put_pair(u64* at, u64 a, u64 b PL_AND_LINE) {
  const u64 pair[2] = {a, b};
  pl::store_global<2>(at, pair, true PL_AND_PASS_LINE);
}

}  // namespace detail

template <int Units, int Threads>
PL_FN i64 profile_begin(u64* buffer, i32 space PL_AND_LINE) {
  const u32 t = pl::program_thread();
  if (t % Threads != 0) return -1;
  const i64 unit = i64(pl::block_x()) * Units + t / Threads;
  const i64 at = unit * (detail::profile_events + 2 * i64(space));
  detail::put_pair(buffer + at + detail::profile_known, u64(detail::multiprocessor()) + 1,
                   detail::nanoseconds() PL_AND_PASS_LINE);
  detail::put_pair(buffer + at + detail::profile_begin_clock, detail::clock(),
                   0 PL_AND_PASS_LINE);
  return at;
}

PL_FN i32 profile_event(u64* buffer, i64 at, i32 count, i32 space, u32 tag PL_AND_LINE) {
  if (at >= 0 && count < space)
    detail::put_pair(buffer + at + detail::profile_events + 2 * i64(count), u64(tag) + 1,
                     detail::clock() PL_AND_PASS_LINE);
  return count + 1;
}

PL_FN void profile_end(u64* buffer, i64 at, i32 count PL_AND_LINE) {
  if (at < 0) return;
  const u64 clock = detail::clock();
  detail::put_pair(buffer + at + detail::profile_end_time, detail::nanoseconds(),
                   u64(count) PL_AND_PASS_LINE);
  pl::store_global(buffer + at + detail::profile_end_clock, &clock, true PL_AND_PASS_LINE);
}

}  // namespace pl
